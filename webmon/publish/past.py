"""The newest samples of a host: whole from the kept snapshots, older ones from the history."""

from __future__ import annotations

import json
from collections import defaultdict
from functools import lru_cache
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

    from webmon.model import Status


# What one answer may have of samples, all hosts together: 100 MB of them, or so.
MOST = 30_000


def with_samples(document: bytes, data: Path, count: int) -> str:
    """Return a file of states/ with up to `count` samples of each host that is in it."""
    hosts = json.loads(document)
    most = MOST // max(1, len(hosts))
    if count > most:
        raise ValueError(f"fetch_num is {most} at most for {len(hosts)} host{'' if len(hosts) == 1 else 's'}")
    samples = newest(data, hosts, count)
    return states.joined(
        [
            states.entry(
                host, one["status"], one["ip_address"], samples[host] or map(states.written, one["data"])
            )
            for host, one in hosts.items()
        ]
    )


def newest(data: Path, hosts: Collection[str], count: int) -> dict[str, list[str]]:
    """Return up to `count` samples of each host, written, in the order of their times."""
    found: dict[str, dict[datetime, str]] = {host: {} for host in hosts}
    asked = frozenset(hosts)
    last = snapshot.latest_time(data)
    for folder in reversed(snapshot.kept(data)):
        try:
            time, written = _of_snapshot(folder, asked)
        except DataError:
            break  # it is damaged, or has just been removed: the history has it, and all before it
        if last and time > last:
            continue  # of a clock that was wrong: it would be the newest for years
        for host in asked & written.keys():
            found[host].setdefault(time, written[host])
        if not _lacking(found, count):
            break
    for day in reversed(history.days(data)) if _lacking(found, count) else ():
        lacking = _lacking(found, count)
        if not lacking:
            break
        for host, samples in _of_day(history.read(data, lacking, day), last).items():
            found[host] = samples | found[host]
    return {host: [samples[time] for time in sorted(samples)[-count:]] for host, samples in found.items()}


def _lacking(found: Mapping[str, Mapping[datetime, str]], count: int) -> set[str]:
    return {host for host, samples in found.items() if len(samples) < count}


@lru_cache(maxsize=64)
def _of_snapshot(folder: Path, hosts: frozenset[str]) -> tuple[datetime, Mapping[str, str]]:
    """Return a snapshot's time, and its samples of these hosts; it never changes."""
    read = lab(snapshot.read(folder, hosts))
    time = read.taken_at.replace(microsecond=0)
    return time, {one.host.host: states.sample(one, read.taken_at) for one in read.hosts}


def _of_day(samples: Sequence[history.Sample], last: datetime | None) -> dict[str, dict[datetime, str]]:
    """Return the samples of each host by their times, up to the last poll."""
    # A clock that went back may give two polls one time: of a GPU, the later one counts.
    polls: dict[tuple[str, datetime], dict[tuple[int, str | None], history.Sample]] = defaultdict(dict)
    for one in samples:
        if last is None or one.time <= last:
            polls[one.host, one.time][one.index, one.uuid] = one
    found: dict[str, dict[datetime, str]] = defaultdict(dict)
    for (host, time), gpus in polls.items():
        found[host][time] = states.sample(_as_seen(host, time, list(gpus.values())), time)
    return found


def _as_seen(host: str, time: datetime, samples: Sequence[history.Sample]) -> LabHost:
    """Return a host as the history knows it: without processes, and down if nothing of its GPUs was read."""
    gpus = [_gpu(one) for one in samples]
    on_host = [LabGpu(gpu, place, (), False) for gpu, place in zip(gpus, gpu_places(gpus), strict=True)]
    status: Status = "down" if not any(map(_was_read, gpus)) else "up"
    return LabHost(Host(host, status=status, checked_at=time), host, None, on_host, ())


def _was_read(gpu: Gpu) -> bool:
    readings = (
        gpu.utilization_pct,
        gpu.memory_used_mib,
        gpu.memory_total_mib,
        gpu.temperature_c,
        gpu.power_w,
    )
    return gpu.state != "unknown" or any(reading is not None for reading in readings)


def _gpu(one: history.Sample) -> Gpu:
    return Gpu(
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
