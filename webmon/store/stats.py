"""Rollups → what was used by whom, where and when, over any number of days."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from webmon.store import history, snapshot
from webmon.store.days import lines, of_day
from webmon.store.samples import poll_times
from webmon.store.shares import HOUR
from webmon.store.sums import TOTAL_KEYS, joined, summed
from webmon.usage import NOTHING_PAST, Hour, Past, Use, Window, gpu_key

if TYPE_CHECKING:
    from pathlib import Path

    import pandas

    from webmon.store.rollup import Rollups

# What the pages tell of.
PAGE_DAYS = (1, 7, 30)

# How many hours the line of a GPU goes back.
LINE_HOURS = 24

# How a sum of `shares` is called in a Use; `hours` go to the state.
_FIELDS = {
    "sole_hours": "sole",
    "beside_hours": "beside",
    "measured_hours": "measured",
    "worked_hours": "worked",
    "metered_hours": "metered",
    "kwh": "energy",
    "shared": "shared",
}


def last_time(folder: Path) -> datetime | None:
    """Return when the last poll was: that of the snapshot, or else of the history."""
    time = snapshot.latest_time(folder)
    if time is not None:
        return time
    for day in reversed(history.days(folder)):
        times = {time for path in of_day(folder / "history", day) for time in poll_times(lines(path))}
        if times:
            return datetime.fromtimestamp(max(times), UTC)
    return None


def window(rollups: Rollups, days: int) -> Window:
    """Return what was used in the last days: 24 hours each, up to the last poll."""
    start = rollups.end - 86400 * days
    first = datetime.fromtimestamp(start, UTC).date()
    between = [day for day in rollups.known_days() if first < day <= rollups.today]
    frames = [rollups.totals_after(start), rollups.totals(between)]
    polled = sum(float(frame.drop_duplicates("day")["polled_hours"].sum()) for frame in frames)
    frame = joined([summed(one, TOTAL_KEYS) for one in frames])
    frame = frame.assign(shared=(frame["hours"] - frame["sole_hours"]).where(frame["user"] != "", 0.0))
    # Of what has no owner that is known, only what was in use is in somebody's account.
    owned = frame[(frame["user"] != "") | frame["state"].isin(["busy", "held"])]
    users = sorted(_uses(owned, "user").items(), key=lambda item: (-item[1].hours, item[0]))
    return Window(
        start=datetime.fromtimestamp(start, UTC),
        end=datetime.fromtimestamp(rollups.end, UTC),
        polled_hours=polled,
        total=_uses(frame.assign(all=""), "all").get("", Use()),
        users={user or None: use for user, use in users},
        hosts=_uses(frame, "host"),
        models=_uses(frame, "name"),
    )


def past(rollups: Rollups) -> Past:
    """Return what the pages tell of the past."""
    if not rollups.known_days():
        return NOTHING_PAST
    return Past(
        windows={days: window(rollups, days) for days in PAGE_DAYS},
        hours=_hours(rollups),
        lines=_lines(rollups),
    )


def _hours(rollups: Rollups) -> list[Hour]:
    """Return the hours of the longest window, as far as there are polls of them."""
    start = rollups.end - 86400 * max(PAGE_DAYS)
    first = datetime.fromtimestamp(start, UTC).date()
    frame = rollups.hours([day for day in rollups.known_days() if first <= day])
    frame = frame[frame["hour"] > start - HOUR]
    uses = _uses(frame, "hour")
    polled = dict(zip(frame["hour"].tolist(), frame["polled_hours"].tolist(), strict=True))
    free: dict[int, dict[str, float]] = defaultdict(dict)
    # A model of which no card is free has 0 of them, and is not left out.
    alone = frame.assign(hours=frame["hours"].where(frame["state"] == "free", 0.0))
    sums = alone.groupby(["hour", "name"], observed=True)["hours"].sum().reset_index()
    for hour, name, hours in zip(*(sums[column].tolist() for column in sums), strict=True):
        free[hour][name] = hours / polled[hour] if polled[hour] else 0.0
    return [
        Hour(datetime.fromtimestamp(hour, UTC), polled[hour], uses[hour], free[hour]) for hour in sorted(uses)
    ]


def _lines(rollups: Rollups) -> dict[tuple[str, str], list[float | None]]:
    """Return the mean utilization of each GPU in each of the last hours; None where it is not known."""
    last = rollups.end // HOUR * HOUR
    hours = [last - HOUR * ago for ago in reversed(range(LINE_HOURS))]
    days = {datetime.fromtimestamp(hour, UTC).date() for hour in hours}
    frame = joined([rollups.gpus(day) for day in sorted(days)])
    frame = frame[frame["hour"].isin(hours) & (frame["measured_hours"] > 0)]
    lines: dict[tuple[str, str], list[float | None]] = {}
    of_hour = {hour: place for place, hour in enumerate(hours)}
    keys = ["host", "index", "uuid", "hour"]
    sums = frame.groupby(keys, observed=True, sort=False)[["worked_hours", "measured_hours"]].sum()
    pcts = (100 * sums["worked_hours"] / sums["measured_hours"]).reset_index(name="pct")
    for row in zip(*(pcts[name].tolist() for name in [*keys, "pct"]), strict=True):
        host, index, uuid, hour, pct = row
        line = lines.setdefault((host, gpu_key(uuid, index)), [None] * LINE_HOURS)
        line[of_hour[hour]] = pct
    return lines


def _uses(frame: pandas.DataFrame, key: str) -> dict[Any, Use]:
    """Add up by a column."""
    columns = [name for name in ("hours", *_FIELDS) if name in frame]
    sums = frame.groupby([key, "state"], observed=True)[columns].sum().reset_index()
    found: dict[Any, dict[str, float]] = {}
    for row in sums.to_dict("records"):
        use = found.setdefault(row[key], defaultdict(float))
        use[row["state"]] += row["hours"]
        for name, field in _FIELDS.items():
            use[field] += row.get(name, 0.0)
    return {name: Use(**use) for name, use in found.items()}
