"""Samples → GPU-hours of each GPU, state and user, as a data frame.

A card that several users share is split by the memory of each; equally, where that is not known.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from webmon.store.coverage import seconds
from webmon.store.samples import frame, polls_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas

# What a row is about, and what is summed up in it; `beside_hours` are those on shared cards, not split.
KEYS = ["host", "index", "uuid", "name", "state", "user"]
SUMS = ["hours", "sole_hours", "beside_hours", "measured_hours", "worked_hours", "metered_hours", "kwh"]

HOUR = 3600

# Memory with more digits than that, in MiB, is not known.
_DIGITS = 12


def used(
    lines: Sequence[bytes], before: Sequence[bytes] = (), *, after: int = 0, until: int | None = None
) -> pandas.DataFrame:
    """Sum up whole hours, or what of them is after one moment and not after another.

    `before` are lines of the hours before; what their polls stand for is not summed up. Moments, and the
    hours in the result, are seconds since the epoch.
    """
    samples = frame(lines)
    hosts = samples["host"].tolist()
    times = samples["time"].tolist()
    polls, earlier = _times(zip(hosts, times, strict=True)), _times(polls_of(before))
    nothing: frozenset[int] = frozenset()
    pairs = {host: (polls[host], earlier.get(host, nothing)) for host in polls}
    # Most hosts are in the same polls.
    known = {pair: _within(_spans(*pair), after, until) for pair in {*pairs.values()}}
    spans = {host: known[pair] for host, pair in pairs.items()}
    together = _within(_spans(nothing.union(*polls.values()), nothing.union(*earlier.values())), after, until)
    # The lab was polled when any host was, and for no less time than any of them.
    polled: dict[int, float] = {}
    for some in (together, *known.values()):
        for hour, length in _by_hour(some).items():
            polled[hour] = max(length, polled.get(hour, 0.0))
    hours = [spans[host].get(time, 0.0) / HOUR for host, time in zip(hosts, times, strict=True)]
    samples = samples.assign(hours=hours, hour=samples["time"] // HOUR * HOUR)
    samples = samples[samples["hours"] > 0]
    summed = _split(_without_doubles(samples)).groupby(["hour", *KEYS], observed=True, sort=False)[SUMS].sum()
    summed = summed.reset_index()
    return summed.assign(polled_hours=summed["hour"].map(polled).astype("float64"))


def _times(polls: Iterable[tuple[str, int]]) -> dict[str, frozenset[int]]:
    """Return when each host was polled."""
    found: dict[str, set[int]] = defaultdict(set)
    for host, time in set(polls):
        found[host].add(time)
    return {host: frozenset(times) for host, times in found.items()}


def _within(spans: Mapping[int, float], after: int, until: int | None) -> dict[int, float]:
    """Return what is after one moment, and not after the other; what was before the first doesn't count."""
    return {
        time: min(span, time - after)
        for time, span in spans.items()
        if after < time and (until is None or time <= until)
    }


def _by_hour(spans: Mapping[int, float]) -> dict[int, float]:
    lengths: dict[int, float] = defaultdict(float)
    for time, span in spans.items():
        lengths[_hour(time)] += span / HOUR
    return lengths


def _spans(polls: frozenset[int], before: frozenset[int]) -> dict[int, float]:
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
    memory = [int(mib) if _is_known(mib) else None for _, _, mib in named]
    known = [mib for mib in memory if mib is not None]
    whole = sum(known)
    if len(known) < len(memory) or not whole:
        shares = [1 / len(named)] * len(named)
    else:
        shares = [mib / whole for mib in known]
    # What is in nobody's name is in nobody's account.
    return [
        (user, share, len(named) if user else 0) for (user, _, _), share in zip(named, shares, strict=True)
    ]


def _is_known(mib: str) -> bool:
    return mib.isascii() and mib.isdigit() and len(mib) <= _DIGITS
