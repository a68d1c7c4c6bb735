"""Tables in a terminal: as wide as it is, in colour where that is wanted, safe whatever is in the cells."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from webmon.columns import fitted, harmless, len_shown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TextIO

GREEN, BLUE, YELLOW, RED = "32", "34", "33", "31"

_GAP = "  "


def in_colour() -> bool:
    """Tell whether to use colours: on a terminal, unless NO_COLOR or FORCE_COLOR says otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return os.environ["FORCE_COLOR"] != "0"
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def screen_width(stream: TextIO) -> int | None:
    """Return how many columns there are; None where nobody looks: in a file, or a pipe."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdigit() and len(columns) < 6 and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


def table(
    rows: Sequence[Mapping[str, str]],
    colours: Sequence[str | None],
    *,
    least: Mapping[str, int],
    spared: Sequence[str],
    width: int | None,
) -> list[str]:
    """Return the lines of a table, its header first, no wider than `width`.

    `least` says to how few characters a column may be cut, the first one first. The `spared` ones go
    altogether, one after the other, where that is not enough.
    """
    rows = [{name: harmless(cell) for name, cell in row.items()} for row in rows]
    names = list(rows[0]) if rows else []
    widths = {name: max(len_shown(row[name]) for row in [*rows, {name: name}]) for name in names}
    if width is not None:
        _squeeze(widths, least, spared, width)
    lines = [_line({name: name for name in widths}, widths)]
    for row, colour in zip(rows, colours, strict=True):
        line = _line(row, widths)
        lines.append(f"\x1b[{colour}m{line}\x1b[0m" if colour else line)
    return lines


def _squeeze(widths: dict[str, int], least: Mapping[str, int], spared: Sequence[str], width: int) -> None:
    def excess(widths: Mapping[str, int]) -> int:
        return sum(widths.values()) + len(_GAP) * (len(widths) - 1) - width

    for name in spared:
        if excess({name: min(size, least.get(name, size)) for name, size in widths.items()}) <= 0:
            break
        widths.pop(name, None)
    for name, fewest in least.items():
        if name in widths:
            widths[name] -= min(max(0, excess(widths)), max(0, widths[name] - fewest))


def _line(cells: Mapping[str, str], widths: Mapping[str, int]) -> str:
    return _GAP.join(fitted(cells[name], width) for name, width in widths.items()).rstrip()
