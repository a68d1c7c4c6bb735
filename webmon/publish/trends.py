"""What history.html shows: what the GPUs did, when they are free, what is wasted, what it costs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from webmon.model import natural_order
from webmon.publish import chart, words
from webmon.publish.chart import STACK, Chart
from webmon.publish.people import title, user_name
from webmon.publish.week import free_maps
from webmon.usage import Use, grouped, total

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from webmon.publish.lab import Lab
    from webmon.publish.look import Look
    from webmon.publish.week import FreeMap
    from webmon.usage import Hour, Window

# How many hours a step of a window's chart is long, and how many parts its scale has.
_STEPS = {1: (1, 4), 7: (2, 7), 30: (12, 6)}


@dataclass(frozen=True, slots=True)
class StepRow:
    """One step of a chart, in numbers."""

    start: datetime
    states: Sequence[str]
    utilization: str


@dataclass(frozen=True, slots=True)
class Span:
    """What the GPUs did over some days."""

    anchor: str
    title: str
    summary: str
    coverage: str
    chart: Chart
    rows: Sequence[StepRow]


@dataclass(frozen=True, slots=True)
class Row:
    """What was used, or not, in a place or by somebody."""

    name: str
    level: str
    cells: Sequence[str]


@dataclass(frozen=True, slots=True)
class Sums:
    """A table of rows by one thing."""

    by: str
    rows: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Energy:
    """What was drawn each day."""

    summary: str
    chart: Chart
    rows: Sequence[tuple[datetime, str, str]]


@dataclass(frozen=True, slots=True)
class Trends:
    """Everything on history.html; `days` is how far it goes back."""

    days: str
    spans: Sequence[Span]
    maps: Sequence[FreeMap]
    zone: str
    wasted: Sequence[Row]
    energy: Energy | None
    has_cost: bool
    sums: Sequence[Sums]


def trends(lab: Lab, look: Look) -> Trends:
    """Work out what was."""
    windows, hours = lab.past.windows, lab.past.hours
    longest = max(windows, default=0)
    window = windows.get(longest)
    end = lab.taken_at.astimezone(look.zone)
    return Trends(
        days=title(longest),
        spans=[_span(days, one, hours) for days, one in windows.items()] if hours else [],
        maps=free_maps(lab, hours, look.zone),
        zone=end.tzname() or "UTC",
        wasted=_wasted(window) if window else [],
        energy=_energy(window, hours, look.site.price_per_kwh) if window else None,
        has_cost=look.site.price_per_kwh is not None,
        sums=_sums(lab, window) if window else [],
    )


def _span(days: int, window: Window, hours: Sequence[Hour]) -> Span:
    size, parts = _STEPS[days]
    steps = _steps(hours, window.end, size, 24 * days // size)
    stacks = [_stack(step) for _, step in steps]
    top = max((sum(stack) for stack in stacks if stack), default=0.0)
    used = [total(hour.total for hour in step).utilization_pct for _, step in steps]
    every = len(steps) // parts
    form = "%H:%M UTC" if days == 1 else "%a %H:%M" if days == 7 else "%b %d"
    summary = _summary(window)
    return Span(
        anchor=f"days-{days}",
        title=title(days),
        summary=summary,
        coverage=words.coverage(window),
        chart=Chart(
            width=len(steps),
            shapes=[*chart.stacked(stacks, top), chart.curve(used)],
            top=f"{words.mean_count(top)} GPU{'' if top == 1 else 's'}",
            right=f"{words.percent(100)} utilization",
            ticks=[f"{steps[place][0]:{form}}" for place in range(0, len(steps), every)],
            words=f"GPUs by state, and their utilization, in the last {title(days)}: {summary}. "
            "The table below has the numbers.",
        ),
        rows=[
            StepRow(
                start,
                [words.mean_count(part) for part in stack] if stack else [words.UNKNOWN] * len(STACK),
                words.percent(pct),
            )
            for (start, _), stack, pct in zip(steps, stacks, used, strict=True)
        ],
    )


def _summary(window: Window) -> str:
    use = window.total
    return (
        f"{words.percent(use.occupancy_pct)} in use ({words.percent(use.held_pct)} held but idle), "
        f"{words.percent(use.free_pct)} free, mean utilization {words.percent(use.utilization_pct)}"
    )


def _steps(hours: Sequence[Hour], end: datetime, size: int, number: int) -> list[tuple[datetime, list[Hour]]]:
    """Put the hours into steps, of which the last one has the end in it."""
    span = timedelta(hours=size)
    midnight = end.replace(hour=0, minute=0, second=0, microsecond=0)
    last = midnight + (end - midnight) // span * span
    steps: dict[datetime, list[Hour]] = {last - span * ago: [] for ago in reversed(range(number))}
    for hour in hours:
        start = midnight + (hour.start - midnight) // span * span
        if start in steps:
            steps[start].append(hour)
    return list(steps.items())


def _stack(step: Iterable[Hour]) -> list[float] | None:
    """Return how many GPUs were in each state, on average; None if there was no poll."""
    hours = list(step)
    polled = sum(hour.polled_hours for hour in hours)
    if not polled:
        return None
    use = total(hour.total for hour in hours)
    return [getattr(use, state) / polled for state in STACK]


def _wasted(window: Window) -> list[Row]:
    """Return who held cards without using them, and how long."""
    holders = [(user, use) for user, use in window.users.items() if use.held]
    holders.sort(key=lambda item: -item[1].held)
    return [
        Row(
            user_name(user),
            words.level(100 * use.held / holders[0][1].held),
            [words.hours(use.held), words.percent(100 * use.held / use.hours)],
        )
        for user, use in holders
    ]


def _energy(window: Window, hours: Sequence[Hour], price: float | None) -> Energy | None:
    """Return what was drawn on each day."""
    if window.total.kwh is None:
        return None
    number = round(window.hours / 24)
    # The window begins at some time of the day: of one day more there is a part.
    days = _steps(hours, window.end, 24, number + 1)
    drawn = [total(hour.total for hour in day).kwh for _, day in days]
    top = max((kwh for kwh in drawn if kwh), default=0.0)
    kwh = words.hours(window.total.kwh)
    cost = words.cost(window.total.kwh, price)
    summary = f"{kwh} kWh in the last {number} days{f', which cost {cost}' if cost else ''}"
    return Energy(
        summary=summary,
        chart=Chart(
            width=len(days),
            shapes=chart.bars(drawn, top),
            top=f"{words.hours(top)} kWh",
            right="",
            ticks=[f"{days[place][0]:%b %d}" for place in range(0, len(days), 5)],
            words=f"Energy by day: {summary}. The table below has the numbers.",
        ),
        rows=[
            (day, words.hours(kwh), words.cost(kwh, price)) for (day, _), kwh in zip(days, drawn, strict=True)
        ],
    )


def _sums(lab: Lab, window: Window) -> list[Sums]:
    """Return how much was used of each model, group and host."""
    groups_of = {one.host.host: one.host.group for one in lab.hosts}
    groups = grouped(window.hosts, lambda host: groups_of.get(host) or "no group")
    tables = {
        "model": grouped(window.models, lambda name: words.model(name or None)),
        "group": groups if len(groups) > 1 else {},
        "host": window.hosts,
    }
    return [
        Sums(by, [_sum(name, uses[name], window) for name in sorted(uses, key=natural_order)])
        for by, uses in tables.items()
        if uses
    ]


def _sum(name: str, use: Use, window: Window) -> Row:
    return Row(
        name,
        words.level(use.occupancy_pct),
        [
            words.percent(use.occupancy_pct),
            words.percent(use.utilization_pct),
            words.percent(use.free_pct),
            words.percent(use.held_pct),
            words.hours(use.in_use),
            words.hours(use.kwh),
            words.share(window.coverage_pct(use)),
        ],
    )
