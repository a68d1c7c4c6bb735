"""A host in full for terminals: what is known of it, and a box for each GPU, with its processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webmon.columns import broken, cut, fitted, harmless, len_shown, wrapped
from webmon.publish import words

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from webmon.model import Gpu, Process
    from webmon.publish.lab import LabGpu, LabHost

WIDTH = 80
_BOX = 74  # within the box of a GPU
_BAR = 61


def block(one: LabHost, taken_at: datetime) -> str:
    """Return what detail.txt has of a host."""
    host = one.host
    address = f" :: {harmless(one.address)}" if one.address else ""
    # A name that is too long goes on in the next line: it says which host this is.
    titles = [f"#### {part} " for part in broken(harmless(host.host) + address, WIDTH - 7)]
    lines = [title + "#" * (WIDTH - len_shown(title)) for title in titles]
    lines += [*_facts(one), "-" * WIDTH]
    if host.status != "down":
        for on in one.gpus:
            lines += _box(on, taken_at)
        if not one.gpus:
            lines += ["  no GPU has been seen", ""]
    if one.strays:
        lines += ["  on no GPU that is known:", *(f"  {line}" for line in _tree(one.strays, taken_at)), ""]
    return "\n".join([*lines, "_" * WIDTH, ""])


def _facts(one: LabHost) -> Iterator[str]:
    host = one.host
    yield from _indented(f"last update: {words.moment(host.last_seen)}")
    if host.status != "up":
        error = f": {words.sentence(host.error)}" if host.error else ""
        yield from _indented(f"status: {host.status}{error}")
    yield from _indented(" · ".join(part for part in (host.label, host.group) if part))
    free = f"{one.free} of {len(one.gpus)} free" if one.gpus and host.status != "down" else ""
    facts = words.facts(host, [on.gpu for on in one.gpus])
    yield from _indented(" · ".join(part for part in (free, facts) if part))


def _indented(line: str) -> list[str]:
    return [f"  {part}" for part in wrapped(harmless(line), WIDTH - 2)]


def _box(on: LabGpu, taken_at: datetime) -> list[str]:
    gpu = on.gpu
    split = ", MIG" if gpu.mig_mode == "Enabled" else ""
    state = f"[ {words.STATES[gpu.state]}{split} ]─"
    number = f"[ gpu:{gpu.index} "
    title = f"{number}{card(gpu, _BOX - len(number) - len(' ]─') - len(state))} ]"
    values = [
        (f"{_number(gpu.memory_used_mib):>6} / {_number(gpu.memory_total_mib, 'MiB'):>8}", 17),
        (_number(on.memory_free_mib, "MiB"), 35),
        (_number(gpu.utilization_pct, "%"), 49),
        (_number(gpu.temperature_c, "°C"), 62),
        (_number(gpu.power_w, " W"), 72),
    ]
    # As vesta does: a memory that is not full is not shown as full.
    percent = None if on.memory_pct is None else int(on.memory_pct)
    filled = int(_BAR * max(0.0, min(100.0, on.memory_pct or 0.0)) / 100)
    lines = [
        f"  ┌{title}{'─' * (_BOX - len_shown(title) - len(state))}{state}┐",
        _boxed("      memory used  memory available  gpu volatile  temperature     power"),
        _boxed(_ending_at(values)),
        _boxed(""),
        _boxed(f" mem [{'/' * filled}{' ' * (_BAR - filled)}]{right(percent, 5, '%')}"),
    ]
    if on.processes:
        lines += [f"  │{line}    │" for line in _tree(on.processes, taken_at)]
    elif not on.processes_are_known:
        lines.append(_boxed("  its processes are not known"))
    return [*lines, f"  └{'─' * _BOX}┘", ""]


def _boxed(line: str) -> str:
    # Nothing in it is of another width than 1, and `fitted` would look at each character.
    return f"  │{line.ljust(_BOX)}│"


def _ending_at(values: Sequence[tuple[str, int]]) -> str:
    """Write each value so that it ends in its column; one that is too wide takes room from the next."""
    line = ""
    for value, column in values:
        line += (f" {value}" if line else value).rjust(column - len(line))
    return line if len(line) <= _BOX else cut(line, _BOX)


def _tree(processes: Sequence[Process], taken_at: datetime) -> Iterator[str]:
    """Return a line for each process, 70 columns wide."""
    last = len(processes) - 1
    for number, process in enumerate(processes):
        branch = "└" if number == last else "├"
        program = fitted(harmless(words.program(process) or words.UNKNOWN), 24)
        user = fitted(harmless(words.user(process)), 20)
        running = cut(words.running(process, taken_at), 7)
        yield f"  {branch}── {program}{right(process.memory_mib, 11, 'MiB')} {user} {running:>7}"


def card(gpu: Gpu, width: int) -> str:
    """Return a card's name, shortened if it has to be."""
    if gpu.name is None:
        return words.UNKNOWN
    name = harmless(gpu.name).removeprefix("NVIDIA ")
    return name if len_shown(name) <= width else cut(words.model(name), width)


def right(value: float | None, width: int, unit: str = "") -> str:
    """Write a number at the right of its column; no number of this world is too wide for it."""
    return cut(_number(value, unit), width).rjust(width)


def _number(value: float | None, unit: str = "") -> str:
    return words.UNKNOWN if value is None else f"{value:.0f}{unit}"
