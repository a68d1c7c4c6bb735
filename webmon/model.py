"""What webmon talks about: hosts, GPUs, processes, and all of them at one moment.

The fields of Host, Gpu and Process, in their order, are the columns of hosts.csv, gpus.csv and
processes.csv (docs/data-format.md). None is "not known"; it is never the same as 0.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

Status = Literal["up", "degraded", "down"]
State = Literal["free", "busy", "held", "faulty", "unknown"]
K = TypeVar("K")
T = TypeVar("T")

# The name of a process that is on no GPU yet: it holds the claim of a `webmon select`.
CLAIM = "(claim)"


class Host(NamedTuple):
    """A machine, as it answered (or did not) in one poll."""

    host: str
    label: str | None = None
    group: str | None = None
    status: Status = "down"
    reason: str | None = None
    error: str | None = None
    checked_at: datetime | None = None
    last_seen: datetime | None = None
    duration_ms: int | None = None
    driver: str | None = None
    gpus: int | None = None
    load1: float | None = None
    cpus: int | None = None
    ram_used_mib: int | None = None
    ram_total_mib: int | None = None


class Gpu(NamedTuple):
    """One card. `uuid` says which one it is; `index` can shift."""

    host: str
    index: int  # type: ignore[assignment] # a tuple has a method of that name
    uuid: str | None = None
    name: str | None = None
    state: State = "unknown"
    utilization_pct: int | None = None
    memory_utilization_pct: int | None = None
    memory_used_mib: int | None = None
    memory_total_mib: int | None = None
    temperature_c: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    fan_pct: int | None = None
    sm_clock_mhz: int | None = None
    pstate: str | None = None
    mig_mode: str | None = None
    idle_since: datetime | None = None
    users: tuple[str, ...] = ()


class Process(NamedTuple):
    """One process on one GPU; a process on two GPUs is there twice."""

    host: str
    gpu_index: int | None
    gpu_uuid: str | None
    pid: int
    user: str | None = None
    name: str | None = None
    command: str | None = None
    memory_mib: int | None = None
    started_at: datetime | None = None
    container: str | None = None

    @property
    def is_claim(self) -> bool:
        """Tell whether it has claimed the GPU without being on it yet."""
        return self.name == CLAIM


class Problem(NamedTuple):
    """What is wrong with a host that did answer."""

    reason: str
    text: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return the text and the remedy in one line."""
        return f"{self.text.rstrip('. ')}. {self.remedy}" if self.remedy else self.text


class Reading(NamedTuple):
    """What one host answered. GPUs in state `faulty` said so; all others are not judged yet.

    `processes` is None when the list could not be had: unknown, not idle.
    """

    gpus: tuple[Gpu, ...] = ()
    processes: tuple[Process, ...] | None = None
    problem: Problem | None = None
    driver: str | None = None
    load1: float | None = None
    cpus: int | None = None
    ram_used_mib: int | None = None
    ram_total_mib: int | None = None
    remarks: tuple[str, ...] = ()


class Snapshot(NamedTuple):
    """All hosts at one moment: what `fetch` saves and `render` shows."""

    taken_at: datetime
    hosts: tuple[Host, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    processes: tuple[Process, ...] = ()

    def gpus_by_host(self) -> Mapping[str, list[Gpu]]:
        """Return each host's GPUs, in their order."""
        return _grouped((gpu.host, gpu) for gpu in self.gpus)

    def processes_by_host(self) -> Mapping[str, list[Process]]:
        """Return each host's processes, in their order."""
        return _grouped((process.host, process) for process in self.processes)

    def summary(self) -> str:
        """Return `12 hosts: 10 up, 1 degraded, 1 down; 60 GPUs: 14 free`."""
        count = dict.fromkeys(("up", "degraded", "down"), 0)
        for host in self.hosts:
            count[host.status] += 1
        free = sum(gpu.state == "free" for gpu in self.gpus)
        hosts = f"{len(self.hosts)} host{'' if len(self.hosts) == 1 else 's'}"
        gpus = f"{len(self.gpus)} GPU{'' if len(self.gpus) == 1 else 's'}"
        parts = ", ".join(f"{n} {status}" for status, n in count.items() if n or status == "up")
        return f"{hosts}: {parts}; {gpus}: {free} free"


def _grouped(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    groups: dict[K, list[T]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def processes_on(gpus: Sequence[Gpu], processes: Iterable[Process]) -> list[list[Process]]:
    """Return what may be on each of a host's GPUs: one that names none of them may be on any."""
    by_gpu = _grouped((process.gpu_uuid, process) for process in processes)
    uuids = {gpu.uuid for gpu in gpus}
    strays = [process for uuid, group in by_gpu.items() if uuid not in uuids for process in group]
    return [[*by_gpu.get(gpu.uuid, ()), *strays] for gpu in gpus]


def natural_order(name: str) -> list[tuple[int, int, str]]:
    """Sort key that puts gpu2 before gpu10."""
    return [
        (1, int(part), part) if part.isdigit() and part.isascii() else (0, 0, part.casefold())
        for part in re.split(r"([0-9]{1,18})", name)
    ]


def ssh_arguments(host: str) -> list[str] | None:
    """Return what to type to get onto a host; None for the machine that polls itself."""
    if host == "self":
        return None
    parts = re.fullmatch(r"\[(?P<v6>.+)\](:(?P<v6_port>\d+))?|(?P<name>[^:]+):(?P<port>\d+)", host)
    name = (parts["v6"] or parts["name"]) if parts else host
    port = (parts["v6_port"] or parts["port"]) if parts else None
    return ["ssh", *(["-p", port] if port else []), name]
