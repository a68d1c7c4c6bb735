"""One cell of nvidia-smi's CSV → a value, None for "not known", or a sign that the card is ill."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from webmon.clean import clean

if TYPE_CHECKING:
    from collections.abc import Mapping

# Anything in brackets, and these bare words, is "no value"; some of them say that the card is ill.
_LONGEST = 128

_NULLS = {"", "n/a", "unknown", "err!", "not supported"}
_FAULT = re.compile(
    r"^(?:\[?(?:gpu is lost|gpu requires reset|unknown error)\.?\]?|err!|\[err!\])$", re.IGNORECASE
)
_NUMBER = re.compile(r"^(-?[0-9]{1,12}(?:\.[0-9]{1,6})?)(?: ?(?:MiB|%|W|MHz|C))?$")

# Values that cannot be: a percentage of 5000, a temperature of a million.
_LIMITS = {
    "utilization.gpu": 100,
    "utilization.memory": 100,
    "memory.used": 100_000_000,
    "memory.total": 100_000_000,
    "temperature.gpu": 1000,
    "power.draw": 100_000,
    "power.limit": 100_000,
    "fan.speed": 1000,
    "clocks.sm": 100_000,
}


def is_fault(cell: str) -> bool:
    """Tell whether the card says with this cell that it is lost or in error."""
    # Most cells are numbers; this is asked of every one.
    return not cell[:1].isdigit() and _FAULT.match(cell) is not None


def text(cell: str | None) -> str | None:
    """Read a text; no card's name or number is longer than what is kept of it."""
    if cell is None or cell.lower() in _NULLS or (cell.startswith("[") and cell.endswith("]")):
        return None
    return clean(cell[:_LONGEST]) or None


def number(row: Mapping[str, str], column: str) -> float | None:
    """Read a number, with its unit or without; None if there is none, or none that can be."""
    match = _NUMBER.match(row.get(column, ""))
    if match is None:
        return None
    value = float(match[1])
    lowest = -100 if column == "temperature.gpu" else 0
    return value if lowest <= value <= _LIMITS[column] else None


def whole(row: Mapping[str, str], column: str) -> int | None:
    """Read a number and round it."""
    cell = row.get(column, "")
    if cell.isascii() and cell.isdigit() and len(cell) < 9:  # as nearly all of them are
        return int(cell) if int(cell) <= _LIMITS[column] else None
    value = number(row, column)
    return None if value is None else round(value)
