"""What was used, as a table in a terminal: units in the header, numbers at the right."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from webmon.cli import terminal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from webmon.usage import Window

# Columns of texts; the others are numbers.
_TEXTS = ("user", "host", "model", "group", "state", "on")

# To how few characters they may be cut on a narrow terminal, the first one first.
_LEAST = {"on": 12, "model": 12, "user": 8, "host": 8, "group": 8}

# Which columns go altogether where that is not enough, by the beginnings of their names.
_SPARED = (
    "processes", "gpu_hours_365", "kwh", "coverage", "gpu_hours_1d", "utilization", "sole", "shared",
    "gpu_hours_7", "memory", "held", "on", "free",
)  # fmt: skip

_HEADINGS = {
    "gpu_hours": "GPU-h",
    "held_hours": "held h",
    "sole_hours": "sole h",
    "shared_hours": "shared h",
    "gpus": "GPUs",
    "memory_mib": "memory",
    "kwh": "kWh",
    "occupancy_pct": "in use",
    "coverage_pct": "known",
}


def lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table, its header first, no wider than the terminal."""
    names = list(rows[0])
    columns = {name: _column(name, [row[name] for row in rows]) for name in names}
    shown = [{columns[name][0]: columns[name][place] for name in names} for place in range(1, len(rows) + 1)]
    least = {columns[name][0]: fewest for name, fewest in _LEAST.items() if name in columns}
    hours = [name for name in names if name.startswith("gpu_hours")]
    stays = hours if len(hours) == 1 else ()
    spared = [
        columns[name][0]
        for begin in _SPARED
        for name in names
        if name.startswith(begin) and name not in stays
    ]
    width = terminal.screen_width(sys.stdout)
    return terminal.table(shown, [None] * len(shown), least=least, spared=spared, width=width)


def coverage(windows: Mapping[int, Window]) -> Iterable[str]:
    """Say how much of the time is known: what was used in the rest is in no sum."""
    width = terminal.screen_width(sys.stdout)
    for number, window in windows.items():
        span = f"last {number} day{'' if number == 1 else 's'}"
        since = f", since {window.start:%Y-%m-%d %H:%M} UTC"
        parts = f"{window.polled_pct:.1f} % polled, {window.coverage_pct(window.total):.1f} % known"
        forms = [f"{span}{since}: {parts}", f"{span}: {parts}"]
        fitting = [form for form in forms if width is None or len(form) <= width]
        yield from fitting[:1] or (f"{span}:", f"  {parts}")


def _column(name: str, values: Iterable[Any]) -> list[str]:
    """Return a heading and the cells below it, all as wide as the widest if they are numbers."""
    column = [_heading(name), *(_cell(name, value) for value in values)]
    return column if name in _TEXTS else [cell.rjust(max(map(len, column))) for cell in column]


def _heading(name: str) -> str:
    """Write `gpu_hours_7d` as `GPU-h 7d`."""
    with_span = re.fullmatch(r"(.*)_(\d+d)", name)
    stem, span = with_span.groups() if with_span else (name, "")
    return f"{_HEADINGS.get(stem, stem.removesuffix('_pct').replace('_', ' '))} {span}".strip()


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "?" if name == "user" else "-"
    if name == "memory_mib":
        return f"{value / 1024:.1f} GB"
    if name.endswith("_pct"):
        return f"{value:.1f} %" if name == "coverage_pct" else f"{value:.0f} %"
    return f"{value:.1f}" if isinstance(value, float) else str(value)
