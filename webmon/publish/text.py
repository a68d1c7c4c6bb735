"""The site for curl: term.txt, term.ansi, detail.txt and hosts/<host>.txt, 80 columns wide."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webmon.columns import broken, cut, fitted, harmless
from webmon.publish import words
from webmon.publish.addresses import host_text
from webmon.publish.boxes import WIDTH, block, card, right

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webmon.model import Gpu
    from webmon.publish.lab import Lab, LabHost
    from webmon.publish.look import Look

_INNER = WIDTH - 2  # between the outer borders of the table
_COLUMNS = (18, 24, 17, 8, 7)
_HEADS = (" host", " gpu", " memory usage", " volat.", " temp.")

# A state is told by a character, that of a busy GPU being a space, and in term.ansi by a colour too.
_MARKS = {"free": "*", "busy": " ", "held": "=", "faulty": "!", "unknown": "?"}
_LEGEND = "* free   = idle, but held   ! faulty   ? unknown"
_COLOURS = {"free": "32", "busy": "34", "held": "33", "faulty": "31", "unknown": "31"}
_RED, _BOLD = "31", "1"
_NO_HOST = "No host has been asked yet."


class _Line(NamedTuple):
    """A line of the table, its colour, and where that begins; it ends before the last border."""

    text: str
    colour: str | None = None
    start: int = 1

    @property
    def coloured(self) -> str:
        """Return it with its colour."""
        if self.colour is None:
            return self.text
        return f"{self.text[: self.start]}\x1b[{self.colour}m{self.text[self.start : -1]}\x1b[0m|"


def text(lab: Lab, look: Look) -> Iterator[tuple[str, str]]:
    """Return the path and the text of each file."""
    lines = _table(lab, look.site.title)
    yield "term.txt", "".join(f"{line.text}\n" for line in lines)
    yield "term.ansi", "".join(f"{line.coloured}\n" for line in lines)
    blocks = [block(one, lab.taken_at) for one in lab.hosts]
    head = _head(lab, look.site.title, WIDTH) + "\n"
    yield "detail.txt", "\n".join([head, *(blocks or [f"{_NO_HOST}\n"])])
    for one, written in zip(lab.hosts, blocks, strict=True):
        yield host_text(one.name), f"{head}\n{written}"


def _head(lab: Lab, title: str, width: int) -> str:
    """Say what this is, how many are free, and as of when; a long title is cut, and nothing else."""
    free, moment = f": {lab.free} of {lab.total} GPUs free", words.moment(lab.taken_at)
    room = width - len(moment) - 1
    return fitted(cut(harmless(title), room - len(free)) + free, room) + " " + moment


def _table(lab: Lab, title: str) -> list[_Line]:
    ruler = _Line("+" + "+".join("-" * width for width in _COLUMNS) + "+")
    whole = _Line("+" + "-" * _INNER + "+")
    heads = "|".join(fitted(head, width) for head, width in zip(_HEADS, _COLUMNS, strict=True))
    lines = [whole, _Line(f"| {_head(lab, title, _INNER - 2)} |", _BOLD), ruler, _Line(f"|{heads}|"), ruler]
    for one in lab.hosts:
        lines += _host_lines(one)
        lines.append(ruler)
    if not lab.hosts:
        lines += [_Line(f"| {fitted(_NO_HOST, _INNER - 2)} |"), whole]
    return [*lines, _Line(f"| {fitted(_LEGEND, _INNER - 2)} |"), whole]


def _host_lines(one: LabHost) -> Iterator[_Line]:
    """Return a host's block: its name once, on as many lines as it takes, beside its GPUs."""
    host = one.host
    beside: list[tuple[str, str | None]] = []
    if host.status != "up":
        reason = f" ({harmless(host.reason)})" if host.reason else ""
        beside.append((_across(f" status: {host.status}{reason}"), _RED))
    if host.status == "down":
        cards = f", {len(one.gpus)} GPUs unknown" if one.gpus else ""
        beside.append((_across(f" last update: {words.moment(host.last_seen)}{cards}"), _RED))
    else:
        beside += [(_cells(on.gpu), _COLOURS[on.gpu.state]) for on in one.gpus]
        if not one.gpus:
            beside.append((_across(" no GPU has been seen"), None))
    names = broken(harmless(host.host), _COLUMNS[0])
    beside += [(_across(""), None)] * (len(names) - len(beside))
    names += [""] * (len(beside) - len(names))
    for name, (cells, colour) in zip(names, beside, strict=True):
        before = f"|{fitted(name, _COLUMNS[0])}|"
        yield _Line(f"{before}{cells}|", colour, len(before))


def _across(content: str) -> str:
    """Fill all columns beside the name."""
    return fitted(content, sum(_COLUMNS[1:]) + len(_COLUMNS) - 2)


def _cells(gpu: Gpu) -> str:
    name = fitted(f"{_MARKS[gpu.state]}{gpu.index}:{card(gpu, _COLUMNS[1] - 4)}", _COLUMNS[1])
    memory = f"{right(gpu.memory_used_mib, 7)} / {right(gpu.memory_total_mib, 6)} "
    return f"{name}|{memory}|{right(gpu.utilization_pct, 6)} %|{right(gpu.temperature_c, 4)} °C"
