"""Charts, worked out: points as the paths of an SVG, and the words that say the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webmon.publish import words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

# How high a chart is, in its own units; it is stretched to where it stands.
HEIGHT = 200
_LINE_HEIGHT = 20

# From the bottom to the top.
STACK = ("busy", "held", "free", "unknown", "faulty")


@dataclass(frozen=True, slots=True)
class Shape:
    """A path, and the class that says what it is."""

    kind: str
    path: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its width in its own units, its shapes, the ends of its scales, and what it says in words."""

    width: int
    shapes: Sequence[Shape]
    top: str
    right: str
    ticks: Sequence[str]
    words: str


def line(values: Sequence[float | None]) -> Shape | None:
    """Draw percentages as steps; nothing where they are not known, and a hair where they are 0."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    heights = [
        None if value is None else max(1, round(_clipped(value) * _LINE_HEIGHT / 100)) for value in values
    ]
    return Shape(
        "spark", _area([0 if height is not None else None for height in heights], heights, _LINE_HEIGHT)
    )


def line_words(values: Sequence[float | None]) -> str:
    """Say what a line shows."""
    known = sum(value is not None for value in values)
    if not known:
        return ""
    text = f"last {len(values)} h: {line_mean(values)} utilization"
    return text if known == len(values) else f"{text}, known for {known} h"


def line_mean(values: Sequence[float | None]) -> str:
    """Write the mean of what is known."""
    known = [value for value in values if value is not None]
    return words.percent(sum(known) / len(known) if known else None)


def stacked(parts: Sequence[Sequence[float] | None], top: float) -> list[Shape]:
    """Draw areas one on the other, in the order of STACK; nothing where there are no polls."""
    scale = HEIGHT / top if top else 0.0
    shapes: list[Shape] = []
    floor: list[float | None] = [None if part is None else 0.0 for part in parts]
    for place, kind in enumerate(STACK):
        ceiling = [
            None if low is None or part is None else low + part[place] * scale
            for low, part in zip(floor, parts, strict=True)
        ]
        if any(high != low for high, low in zip(ceiling, floor, strict=True)):
            shapes.append(Shape(kind, _area(floor, ceiling, HEIGHT)))
        floor = ceiling
    return shapes


def curve(values: Sequence[float | None]) -> Shape:
    """Draw percentages as a line over the whole height."""
    path: list[str] = []
    before: float | None = None
    for place, value in enumerate(values):
        if value is not None:
            y = _number(HEIGHT - _clipped(value) * HEIGHT / 100)
            path.append(f"M{place} {y}h1" if before is None else f"V{y}h1")
        before = value
    return Shape("line", "".join(path))


def bars(values: Sequence[float | None], top: float) -> list[Shape]:
    """Draw a bar for each value, with room between them."""
    scale = HEIGHT / top if top else 0.0
    drawn = [(place, value) for place, value in enumerate(values) if value]
    path = "".join(f"M{place}.1 {HEIGHT}v-{_number(value * scale)}h.8V{HEIGHT}z" for place, value in drawn)
    return [Shape("bar", path)] if path else []


def _area(floor: Sequence[float | None], ceiling: Sequence[float | None], height: int) -> str:
    """Draw steps from a floor to a ceiling, in as many pieces as there are gaps."""
    return "".join(
        _piece(start, floor[start:end], ceiling[start:end], height) for start, end in _runs(ceiling)
    )


def _piece(start: int, floor: Sequence[float | None], ceiling: Sequence[float | None], height: int) -> str:
    up = _steps(ceiling, height, 1)
    down = _steps(floor[::-1], height, -1)
    first = _number(height - (floor[0] or 0.0))
    return f"M{start} {first}{up}{down}z"


def _steps(values: Sequence[float | None], height: int, direction: int) -> str:
    path: list[str] = []
    level, length = "", 0
    for value in [*values, None]:
        y = "" if value is None else _number(height - value)
        if y == level:
            length += direction
            continue
        if level:
            path.append(f"V{level}h{length}")
        level, length = y, direction
    return "".join(path)


def _runs(values: Sequence[float | None]) -> Iterable[tuple[int, int]]:
    """Return where there are values: from which place to which."""
    start: int | None = None
    for place, value in enumerate([*values, None]):
        if value is None and start is not None:
            yield start, place
            start = None
        elif value is not None and start is None:
            start = place


def _clipped(value: float) -> float:
    return max(0.0, min(100.0, value))


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
