"""The newest samples of a host: whole from the kept snapshots, older ones from the history."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime
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
    from pathlib import Path


# What one answer may have of samples, all hosts together: 100 MB of them, or so.
MOST = 30_000


def with_samples(document: bytes, data: Path, count: int) -> str:
    """Return a file of states/ with up to `count` samples of each host that is in it."""
    hosts = json.loads(document)
    if count > MOST // max(1, len(hosts)):
        raise ValueError(f"fetch_num is {MOST // max(1, len(hosts))} at most for {len(hosts)} hosts")
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
    for folder in reversed(snapshot.kept(data)):
        time, written = _of_snapshot(folder)
        for host in found.keys() & written.keys():
            found[host].setdefault(time, written[host])
        if all(len(samples) >= count for samples in found.values()):
            break
    for day in reversed(history.days(data)):
        lacking = {host for host, samples in found.items() if len(samples) < count}
        if not lacking:
            break
        for host, samples in _of_day(history.read(data, lacking, day)).items():
            found[host] = samples | found[host]
    return {host: [samples[time] for time in sorted(samples)[-count:]] for host, samples in found.items()}


@lru_cache(maxsize=64)
def _of_snapshot(folder: Path) -> tuple[datetime, Mapping[str, str]]:
    """Return a snapshot's time and samples; it never changes."""
    try:
        read = lab(snapshot.read(folder))
    except DataError:
        # It has been removed, or is damaged: the history has it, too.
        return datetime.min.replace(tzinfo=UTC), {}
    time = read.taken_at.replace(microsecond=0)
    return time, {one.host.host: states.sample(one, read.taken_at) for one in read.hosts}


def _of_day(samples: Sequence[history.Sample]) -> dict[str, dict[datetime, str]]:
    """Return the samples of each host by their times."""
    polls: dict[tuple[str, datetime], list[Gpu]] = defaultdict(list)
    for one in samples:
        gpu = Gpu(
            one.host,
            one.index,
            one.uuid,
            one.name,
            one.state,
            one.utilization_pct,
            memory_used_mib=one.memory_used_mib,
            memory_total_mib=one.memory_total_mib,
            temperature_c=one.temperature_c,
        )
        polls[one.host, one.time].append(gpu)
    found: dict[str, dict[datetime, str]] = defaultdict(dict)
    for (host, time), gpus in polls.items():
        found[host][time] = states.sample(_as_seen(host, time, gpus), time)
    return found


def _as_seen(host: str, time: datetime, gpus: Sequence[Gpu]) -> LabHost:
    """Return a host as the history knows it: without processes, and down if none of its GPUs was read."""
    is_down = all(gpu.state == "unknown" and gpu.memory_total_mib is None for gpu in gpus)
    on_host = [LabGpu(gpu, place, (), False) for gpu, place in zip(gpus, gpu_places(gpus), strict=True)]
    return LabHost(Host(host, status="down" if is_down else "up", checked_at=time), host, None, on_host, ())
