"""The snapshot as every view needs it: each host with its GPUs, each GPU with what is on it.

What more than one view shows is worked out here, once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from webmon.availability import Rules, memory_pct
from webmon.model import Gpu, Host, Process, natural_order
from webmon.publish.addresses import file_names, gpu_places
from webmon.usage import NOTHING_PAST, gpu_key

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from webmon.model import Snapshot
    from webmon.usage import Line, Past


class LabGpu(NamedTuple):
    """A GPU, its place on its host's page, the processes on it, largest first, and its last 24 hours."""

    gpu: Gpu
    place: str
    processes: Sequence[Process]
    processes_are_known: bool
    line: Line = ()

    @property
    def number(self) -> str:
        """Return its index as a text; of two that share one, the second has another ending."""
        return self.place.removeprefix("gpu")

    @property
    def was_read(self) -> bool:
        """Tell whether its host said anything of it: a card is still there when its host is down."""
        gpu = self.gpu
        readings = (
            gpu.utilization_pct,
            gpu.memory_used_mib,
            gpu.memory_total_mib,
            gpu.temperature_c,
            gpu.power_w,
        )
        return gpu.state != "unknown" or any(reading is not None for reading in readings)

    @property
    def memory_pct(self) -> float | None:
        """Return how full its memory is."""
        return memory_pct(self.gpu)

    @property
    def memory_free_mib(self) -> int | None:
        """Return the memory that is not in use; what the driver keeps for itself counts as free.

        None can be had of a card in error, however much it tells of: a client would pick it first.
        """
        used, total = self.gpu.memory_used_mib, self.gpu.memory_total_mib
        is_known = used is not None and total is not None and self.gpu.state != "faulty"
        return max(0, (total or 0) - (used or 0)) if is_known else None


class LabHost(NamedTuple):
    """A host, its name in files and links, its address if that is known, and its GPUs."""

    host: Host
    name: str
    address: str | None
    gpus: Sequence[LabGpu]
    strays: Sequence[Process]

    @property
    def free(self) -> int:
        """Return how many of its GPUs are free."""
        return sum(one.gpu.state == "free" for one in self.gpus)


class Lab(NamedTuple):
    """All hosts in their natural order, as of one moment."""

    snapshot: Snapshot
    hosts: Sequence[LabHost]
    rules: Rules
    past: Past = NOTHING_PAST

    @property
    def taken_at(self) -> datetime:
        """Return the moment."""
        return self.snapshot.taken_at

    @property
    def free(self) -> int:
        """Return how many GPUs are free."""
        return sum(one.free for one in self.hosts)

    @property
    def total(self) -> int:
        """Return how many GPUs there are."""
        return sum(len(one.gpus) for one in self.hosts)


def lab(
    snapshot: Snapshot,
    addresses: Mapping[str, str] | None = None,
    rules: Rules = Rules(),  # noqa: B008 - a tuple, which nobody changes
    past: Past = NOTHING_PAST,
) -> Lab:
    """Arrange a snapshot; `addresses` has those of the hosts, as far as they are known."""
    gpus, processes = snapshot.gpus_by_host(), snapshot.processes_by_host()
    names = file_names([host.host for host in snapshot.hosts])
    addresses = addresses or {}
    hosts = [
        _host(
            host,
            names[host.host],
            addresses.get(host.host),
            gpus.get(host.host, ()),
            processes.get(host.host, ()),
            past.lines,
        )
        for host in sorted(snapshot.hosts, key=lambda host: natural_order(host.host))
    ]
    return Lab(snapshot, hosts, rules, past)


def _host(
    host: Host,
    name: str,
    address: str | None,
    gpus: Sequence[Gpu],
    processes: Sequence[Process],
    lines: Mapping[tuple[str, str], Line],
) -> LabHost:
    on_gpu: dict[tuple[int | None, str | None], list[Process]] = defaultdict(list)
    for process in processes:
        on_gpu[process.gpu_index, process.gpu_uuid].append(process)
    known = {(gpu.index, gpu.uuid) for gpu in gpus}
    return LabHost(
        host,
        name,
        address,
        [
            LabGpu(
                gpu,
                place,
                _by_memory(on_gpu.get((gpu.index, gpu.uuid), ())),
                _are_known(host, gpu),
                lines.get((host.host, gpu_key(gpu.uuid, gpu.index)), ()),
            )
            for gpu, place in zip(gpus, gpu_places(gpus), strict=True)
        ],
        _by_memory([process for key, group in on_gpu.items() if key not in known for process in group]),
    )


def _are_known(host: Host, gpu: Gpu) -> bool:
    """Tell whether a GPU without processes in the snapshot has none."""
    return host.status != "down" and host.reason != "no-processes" and gpu.state not in ("unknown", "faulty")


def _by_memory(processes: Sequence[Process]) -> Sequence[Process]:
    """Put the largest first."""
    if len(processes) < 2:
        return processes
    return sorted(processes, key=lambda process: (-(process.memory_mib or 0), process.pid))
