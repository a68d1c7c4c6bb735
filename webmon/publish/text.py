"""The site for curl: term.txt, term.ansi, detail.txt and hosts/<host>.txt, 80 columns wide."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webmon.columns import broken, cut, fitted, harmless, len_shown, wrapped
from webmon.publish import words
from webmon.publish.addresses import host_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from webmon.model import Gpu, Process
    from webmon.publish.lab import Lab, LabGpu, LabHost
    from webmon.publish.look import Look

_WIDTH = 80
_INNER = _WIDTH - 2  # between the outer borders of the table
_COLUMNS = (18, 24, 17, 8, 7)
_HEADS = (" host", " gpu", " memory usage", " volat.", " temp.")
_BOX = 74  # within the box of a GPU
_BAR = 61

# A state is told by a character, that of a busy GPU being a space, and in term.ansi by a colour too.
_MARKS = {"free": "*", "busy": " ", "held": "=", "faulty": "!", "unknown": "?"}
_LEGEND = "* free   = idle, but held   ! faulty   ? unknown"
_COLOURS = {"free": "32", "busy": "34", "held": "33", "faulty": "31", "unknown": "31"}
_RED, _BOLD = "31", "1"


def text(lab: Lab, look: Look) -> Iterator[tuple[str, str]]:
    """Return the path and the text of each file."""
    rows = _table(lab, look.site.title)
    yield "term.txt", "".join(f"{line}\n" for line, _ in rows)
    yield "term.ansi", "".join(f"{_coloured(line, colour)}\n" for line, colour in rows)
    blocks = [_block(one, lab.taken_at) for one in lab.hosts]
    head = _head(lab, look.site.title)
    yield "detail.txt", "\n".join([head, *blocks])
    for one, block in zip(lab.hosts, blocks, strict=True):
        yield host_text(one.name), f"{head}\n{block}"


def _head(lab: Lab, title: str) -> str:
    """Return the first line: what this is, how many are free, and as of when."""
    return _ends(_title(lab, title), words.moment(lab.taken_at), _WIDTH) + "\n"


def _title(lab: Lab, title: str) -> str:
    return f"{harmless(title)}: {lab.free} of {lab.total} GPUs free"


def _ends(left: str, right: str, width: int) -> str:
    """Write one text at the left, one at the right."""
    return fitted(left, width - len_shown(right) - 1) + " " + right


# -- the table: a line and its colour ------------------------------------------------------------


def _table(lab: Lab, title: str) -> list[tuple[str, str | None]]:
    ruler = "+" + "+".join("-" * width for width in _COLUMNS) + "+"
    whole = "+" + "-" * _INNER + "+"
    rows: list[tuple[str, str | None]] = [
        (whole, None),
        (f"| {_ends(_title(lab, title), words.moment(lab.taken_at), _INNER - 2)} |", _BOLD),
        (ruler, None),
        (_row(_HEADS), None),
        (ruler, None),
    ]
    for one in lab.hosts:
        rows += _host_rows(one)
        rows.append((ruler, None))
    rows += [(f"| {fitted(_LEGEND, _INNER - 2)} |", None), (whole, None)]
    return rows


def _host_rows(one: LabHost) -> list[tuple[str, str | None]]:
    """Return a host's block: its name once, on as many lines as it takes, beside its GPUs."""
    host = one.host
    beside: list[tuple[str, str | None]] = []
    if host.status != "up":
        reason = f" ({harmless(host.reason)})" if host.reason else ""
        beside.append((_across(f" status: {host.status}{reason}"), _RED))
    if host.status == "down":
        beside.append((_across(f" last update: {words.moment(host.last_seen)}"), _RED))
    else:
        beside += [(_cells(on.gpu), _COLOURS[on.gpu.state]) for on in one.gpus]
        if not one.gpus:
            beside.append((_across(" no GPU has been seen"), None))
    names = broken(harmless(host.host), _COLUMNS[0])
    beside += [(_across(""), None)] * (len(names) - len(beside))
    names += [""] * (len(beside) - len(names))
    return [
        (f"|{fitted(name, _COLUMNS[0])}|{cells}|", colour)
        for name, (cells, colour) in zip(names, beside, strict=True)
    ]


def _across(content: str) -> str:
    """Fill all columns beside the name."""
    return fitted(content, sum(_COLUMNS[1:]) + len(_COLUMNS) - 2)


def _row(cells: Sequence[str]) -> str:
    return "|" + "|".join(fitted(cell, width) for cell, width in zip(cells, _COLUMNS, strict=True)) + "|"


def _cells(gpu: Gpu) -> str:
    name = fitted(f"{_MARKS[gpu.state]}{gpu.index}:{_name(gpu, _COLUMNS[1] - 4)}", _COLUMNS[1])
    memory = f"{_right(gpu.memory_used_mib, 7)} / {_right(gpu.memory_total_mib, 6)} "
    return f"{name}|{memory}|{_right(gpu.utilization_pct, 6)} %|{_right(gpu.temperature_c, 4)} °C"


def _coloured(line: str, colour: str | None) -> str:
    """Colour what is between the borders."""
    if colour is None:
        return line
    if colour == _BOLD:
        return f"|\x1b[1m{line[1:-1]}\x1b[0m|"
    host, rest = line[: line.index("|", 1) + 1], line[line.index("|", 1) + 1 : -1]
    return f"{host}\x1b[{colour}m{rest}\x1b[0m|"


# -- the blocks of detail.txt --------------------------------------------------------------------


def _block(one: LabHost, taken_at: datetime) -> str:
    host = one.host
    address = f" :: {harmless(one.address)}" if one.address else ""
    title = cut(f"#### {harmless(host.host)}{address} ", _WIDTH)
    lines = [title + "#" * (_WIDTH - len_shown(title)), *_facts(one), "-" * _WIDTH]
    for on in one.gpus if host.status != "down" else ():
        lines += _box(on, taken_at)
    if one.strays:
        lines += ["  on no GPU that is known:", *(f"  {line}" for line in _tree(one.strays, taken_at)), ""]
    return "\n".join([*lines, "_" * _WIDTH, ""])


def _facts(one: LabHost) -> Iterator[str]:
    host = one.host
    if host.label or host.group:
        yield from _indented(" · ".join(part for part in (host.label, host.group) if part))
    yield from _indented(f"last update: {words.moment(host.last_seen)}")
    if host.status != "up":
        error = f": {words.sentence(host.error)}" if host.error else ""
        yield from _indented(f"status: {host.status}{error}")
    yield from _indented(words.facts(host, [on.gpu for on in one.gpus]))


def _indented(line: str) -> list[str]:
    return [f"  {part}" for part in wrapped(harmless(line), _WIDTH - 2)]


def _box(on: LabGpu, taken_at: datetime) -> list[str]:
    gpu = on.gpu
    state = f"[ {words.STATES[gpu.state]} ]─"
    title = f"[ gpu:{gpu.index} {_name(gpu, _BOX - len(state) - 12)} ]"
    values = [
        f"{_right(gpu.memory_used_mib, 6)} / {_right(gpu.memory_total_mib, 8, 'MiB')}",
        _right(on.memory_free_mib, 18, "MiB"),
        _right(gpu.utilization_pct, 14, "%"),
        _right(gpu.temperature_c, 13, "°C"),
        _right(gpu.power_w, 10, " W"),
    ]
    percent = on.memory_pct
    filled = round(_BAR * max(0.0, min(100.0, percent or 0.0)) / 100)
    lines = [
        f"  ┌{title}{'─' * (_BOX - len_shown(title) - len(state))}{state}┐",
        _boxed("      memory used  memory available  gpu volatile  temperature     power"),
        _boxed("".join(values)),
        _boxed(""),
        _boxed(f" mem [{'/' * filled}{' ' * (_BAR - filled)}]{_right(percent, 5, '%')}"),
    ]
    if on.processes:
        lines += [f"  │{line}    │" for line in _tree(on.processes, taken_at)]
    elif not on.processes_are_known:
        lines.append(_boxed("  its processes are not known"))
    return [*lines, f"  └{'─' * _BOX}┘", ""]


def _boxed(line: str) -> str:
    # Nothing in it is of another width than 1, and `fitted` would look at each character.
    return f"  │{line.ljust(_BOX)}│"


def _tree(processes: Sequence[Process], taken_at: datetime) -> Iterator[str]:
    """Return a line for each process, 70 columns wide."""
    last = len(processes) - 1
    for number, process in enumerate(processes):
        branch = "└" if number == last else "├"
        program = fitted(harmless(words.program(process) or words.UNKNOWN), 24)
        user = fitted(harmless(process.user or words.HIDDEN), 20)
        running = words.duration(taken_at - process.started_at) if process.started_at else ""
        yield f"  {branch}── {program}{_right(process.memory_mib, 11, 'MiB')} {user} {cut(running, 7):>7}"


def _name(gpu: Gpu, width: int) -> str:
    """Return a card's name, shortened if it has to be."""
    if gpu.name is None:
        return words.UNKNOWN
    name = harmless(gpu.name).removeprefix("NVIDIA ")
    return name if len_shown(name) <= width else cut(words.model(name), width)


def _right(value: float | None, width: int, unit: str = "") -> str:
    """Write a number at the right of its column; no number of this world is too wide for it."""
    return cut(words.UNKNOWN if value is None else f"{value:.0f}{unit}", width).rjust(width)
