"""The newest samples of a host: whole from the kept snapshots, older ones from the history."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import lru_cache
from time import monotonic
from typing import TYPE_CHECKING

from webmon.errors import DataError
from webmon.model import Gpu, Host
from webmon.publish import states
from webmon.publish.addresses import gpu_places
from webmon.publish.lab import LabGpu, LabHost, lab
from webmon.store import history, snapshot

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path


# What one answer may have of samples, all hosts together, and of their bytes; and how long it may take to
# find them. A host that is new, or has no cards, makes it look through all days.
MOST = 30_000
MOST_BYTES = 100_000_000
_SEARCH_S = 15.0


def with_samples(document: bytes, data: Path, count: int) -> str:
    """Return a file of states/ with up to `count` samples of each host that is in it.

    ValueError says that they are too many, DataError that the file is not as `render` writes it.
    """
    try:
        hosts = {
            host: (one["status"], one["ip_address"], one["data"])
            for host, one in json.loads(document).items()
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        raise DataError("the site's states are damaged", "Run `webmon render`") from None
    most = MOST // max(1, len(hosts))
    if count > most:
        raise ValueError(f"fetch_num is {most} at most for {len(hosts)} host{'' if len(hosts) == 1 else 's'}")
    samples = newest(data, hosts, count)
    return states.joined(
        [
            states.entry(host, status, address, samples[host] or map(states.written, shown))
            for host, (status, address, shown) in hosts.items()
        ]
    )


def newest(data: Path, hosts: Collection[str], count: int) -> dict[str, list[str]]:
    """Return up to `count` samples of each host, written, in the order of their times."""
    found: dict[str, dict[datetime, str]] = {host: {} for host in hosts}
    asked = frozenset(hosts)
    # What is read of all hosts at once is too large to be kept.
    read = _of_snapshot if len(hosts) == 1 else _of_snapshot.__wrapped__
    last = snapshot.latest_time(data)
    until = monotonic() + _SEARCH_S
    for folder in reversed(snapshot.kept(data)):
        try:
            time, written = read(folder, asked)
        except DataError:
            break  # it is damaged, or has just been removed: the history has it, and all before it
        if last and time > last:
            continue  # of a clock that was wrong: it would be the newest for years
        for host in asked & written.keys():
            found[host].setdefault(time, written[host])
        _check(found, until)
        if not _lacking(found, count):
            break
    for day in reversed(history.days(data)) if _lacking(found, count) else ():
        lacking = _lacking(found, count)
        if not lacking:
            break
        for host, polls in _of_day(history.read(data, lacking, day), last).items():
            missing = sorted(polls.keys() - found[host].keys())
            for time in missing[len(found[host]) - count :]:
                found[host][time] = states.sample(_as_seen(host, polls[time]), time)
        _check(found, until)
    return {host: [samples[time] for time in sorted(samples)[-count:]] for host, samples in found.items()}


def _lacking(found: Mapping[str, Mapping[datetime, str]], count: int) -> set[str]:
    return {host for host, samples in found.items() if len(samples) < count}


def _check(found: Mapping[str, Mapping[datetime, str]], until: float) -> None:
    if sum(len(sample) for samples in found.values() for sample in samples.values()) > MOST_BYTES:
        raise ValueError(f"these samples are more than {MOST_BYTES // 1_000_000} MB: ask for fewer")
    if monotonic() > until:
        raise ValueError(f"these samples are not found within {_SEARCH_S:.0f} s: ask for fewer")


@lru_cache(maxsize=64)
def _of_snapshot(folder: Path, hosts: frozenset[str]) -> tuple[datetime, Mapping[str, str]]:
    """Return a snapshot's time, and its samples of these hosts; it never changes."""
    read = lab(snapshot.read(folder, hosts))
    time = read.taken_at.replace(microsecond=0)
    return time, {one.host.host: states.sample(one, time) for one in read.hosts}


def _of_day(
    samples: Sequence[history.Sample], last: datetime | None
) -> dict[str, dict[datetime, list[history.Sample]]]:
    """Return the polls of each host by their times, up to the last one."""
    # A clock that went back may give two polls one time: of a GPU, the later one counts.
    polls: dict[str, dict[datetime, dict[tuple[int, str | None], history.Sample]]] = defaultdict(
        lambda: defaultdict(dict)
    )
    for one in samples:
        if last is None or one.time <= last:
            polls[one.host][one.time][one.index, one.uuid] = one
    return {
        host: {time: list(gpus.values()) for time, gpus in of_host.items()} for host, of_host in polls.items()
    }


def _as_seen(host: str, samples: Sequence[history.Sample]) -> LabHost:
    """Return a host as the history knows it: without processes."""
    gpus = [
        Gpu(
            one.host,
            one.index,
            one.uuid,
            one.name,
            one.state,
            one.utilization_pct,
            memory_used_mib=one.memory_used_mib,
            memory_total_mib=one.memory_total_mib,
            temperature_c=one.temperature_c,
            power_w=one.power_w,
        )
        for one in samples
    ]
    on_host = [LabGpu(gpu, place, (), False) for gpu, place in zip(gpus, gpu_places(gpus), strict=True)]
    return LabHost(Host(host, status="up"), host, None, on_host, ())
