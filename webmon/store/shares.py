"""Samples → GPU-hours of each GPU, state and user, as a data frame.

A card that several users share is split by the memory of each; equally, where that is not known.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any, get_args

from webmon.model import State
from webmon.store import history, table
from webmon.store.coverage import seconds

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from datetime import datetime

    import pandas

# What a row is about, and what is summed up in it; `beside_hours` are those on shared cards, not split.
KEYS = ["host", "index", "uuid", "name", "state", "user"]
SUMS = ["hours", "sole_hours", "beside_hours", "measured_hours", "worked_hours", "metered_hours", "kwh"]

HOUR = 3600

_TEXTS = ("time", "host", "uuid", "name", "state", "users")
_NUMBERS = ("utilization_pct", "power_w")
_TIME = 20


def used(
    lines: Sequence[bytes], before: Sequence[bytes] = (), *, after: int = 0, until: int | None = None
) -> pandas.DataFrame:
    """Sum up whole hours, or what of them is after one moment and not after another.

    `before` are lines of the hours before; what their polls stand for is not summed up. Moments, and the
    hours in the result, are seconds since the epoch.
    """
    samples = _frame(lines)
    spans = _spans(set(samples["time"].tolist()), poll_times(before))
    spans = {time: span for time, span in spans.items() if after < time and (until is None or time <= until)}
    polled: dict[int, float] = defaultdict(float)
    for time, span in spans.items():
        polled[_hour(time)] += span / HOUR
    samples = samples[samples["time"].isin(spans)]
    samples = samples.assign(
        hours=samples["time"].map(spans).astype("float64") / HOUR, hour=samples["time"] // HOUR * HOUR
    )
    summed = _split(_without_doubles(samples)).groupby(["hour", *KEYS], observed=True, sort=False)[SUMS].sum()
    summed = summed.reset_index()
    return summed.assign(polled_hours=summed["hour"].map(polled).astype("float64"))


def _spans(polls: Collection[int], before: Collection[int]) -> dict[int, float]:
    """Return how many seconds each poll stands for, which is found out an hour at a time."""
    by_hour: dict[int, set[int]] = defaultdict(set)
    for time in (*polls, *before):
        by_hour[_hour(time)].add(time)
    spans: dict[int, float] = {}
    for hour in {_hour(time) for time in polls}:
        spans |= seconds(by_hour[hour], by_hour.get(hour - HOUR, ()))
    return {time: spans[time] for time in polls}


def _hour(time: int) -> int:
    return time // HOUR * HOUR


def poll_times(lines: Iterable[bytes]) -> set[int]:
    """Return the times of the polls that these lines are of, in seconds since the epoch."""
    found: set[int] = set()
    for text in {line[:_TIME] for line in lines}:
        with contextlib.suppress(ValueError):
            found.add(_epoch(table.time_of(text.decode("ascii", "replace"))))
    return found


def _frame(lines: Sequence[bytes]) -> pandas.DataFrame:
    """Return the samples of some lines, their times in seconds; lines that are damaged are left out."""
    try:
        return _read(lines)
    except ValueError:
        # Which line can't be read is found out one by one: that takes fifty times as long.
        return _read_carefully(lines)


def _read(lines: Sequence[bytes]) -> pandas.DataFrame:
    """Return the samples of lines that are all well and simple; ValueError if one is not."""
    import pandas

    content = b"".join(lines)
    if not lines or b'"' in content:
        raise ValueError("it has to be read carefully")
    # What a later webmon may have added comes after our columns.
    width = max(len(history.Sample._fields), lines[0].count(b",") + 1)
    names = [*history.Sample._fields, *map(str, range(width))][:width]
    kinds: dict[str, Any] = {**dict.fromkeys(_TEXTS, "category"), **dict.fromkeys(_NUMBERS, "float64")}
    frame = pandas.read_csv(
        io.BytesIO(content),
        header=None,
        names=names,
        usecols=[*_TEXTS, *_NUMBERS, "index"],
        dtype={**kinds, "index": "int64"},
        keep_default_na=False,
        na_values={name: [""] for name in _NUMBERS},
        quoting=csv.QUOTE_NONE,
        index_col=False,
    )
    numbers = frame[list(_NUMBERS)]
    if not (
        set(frame["state"].cat.categories) <= set(get_args(State))
        and frame[list(_TEXTS)].notna().all(axis=None)
        and (numbers.isna() | (numbers.abs() < math.inf)).all(axis=None)
    ):
        raise ValueError("a line is damaged")
    times = {text: _epoch(table.time_of(text)) for text in frame["time"].cat.categories}
    frame["time"] = frame["time"].map(times).astype("int64")
    return frame


def _read_carefully(lines: Sequence[bytes]) -> pandas.DataFrame:
    import pandas

    rows = [
        (
            _epoch(sample.time),
            sample.host,
            sample.index,
            sample.uuid or "",
            sample.name or "",
            sample.state,
            sample.utilization_pct,
            sample.power_w,
            ";".join(sample.users),
        )
        for sample in history.parsed(lines)
    ]
    columns = ["time", "host", "index", "uuid", "name", "state", *_NUMBERS, "users"]
    kinds: dict[str, Any] = {**dict.fromkeys(_TEXTS, "category"), **dict.fromkeys(_NUMBERS, "float64")}
    return pandas.DataFrame(rows, columns=columns).astype({**kinds, "time": "int64", "index": "int64"})


def _without_doubles(samples: pandas.DataFrame) -> pandas.DataFrame:
    """Let samples of one GPU at one time share it: a clock that went back may strike twice."""
    same = ["time", "host", "index", "uuid"]
    if samples.duplicated(same).any():
        samples = samples.copy()
        samples["hours"] /= samples.groupby(same, observed=True)["hours"].transform("size")
    return samples


def _split(samples: pandas.DataFrame) -> pandas.DataFrame:
    """Make a row for each user of a GPU, and say what of its time is theirs."""
    import pandas

    texts = samples["users"].unique().tolist()
    parts = [(text, *part) for text in texts for part in _shares(text)]
    split = samples.merge(pandas.DataFrame(parts, columns=["users", "user", "share", "among"]), on="users")
    whole, part = split["hours"], split["hours"] * split["share"]
    return split.assign(
        hours=part,
        sole_hours=part.where(split["among"] == 1, 0.0),
        beside_hours=whole.where(split["among"] > 1, 0.0),
        measured_hours=part.where(split["utilization_pct"].notna(), 0.0),
        worked_hours=(part * split["utilization_pct"] / 100).fillna(0.0),
        metered_hours=part.where(split["power_w"].notna(), 0.0),
        kwh=(part * split["power_w"] / 1000).fillna(0.0),
    )


def _shares(users: str) -> list[tuple[str, float, int]]:
    """Read `alice=6400;bob=1618`: who, which part of the card is theirs, and how many share it."""
    if not users:
        return [("", 1.0, 0)]
    named = [part.rpartition("=") if "=" in part else (part, "", "") for part in users.split(";")]
    memory = [int(mib) if mib.isascii() and mib.isdigit() else None for _, _, mib in named]
    known = [mib for mib in memory if mib is not None]
    whole = sum(known)
    if len(known) < len(memory) or not whole:
        return [(user, 1 / len(named), len(named)) for user, _, _ in named]
    return [(user, mib / whole, len(named)) for (user, _, _), mib in zip(named, known, strict=True)]


def _epoch(time: datetime) -> int:
    return int(time.timestamp())
