"""One GPU, as the Python functions tell of it: in the terms of gpuselect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from webmon.pick.choose import free_memory, memory_utilization

if TYPE_CHECKING:
    from webmon.model import Gpu
    from webmon.pick.choose import Offer


class GpuInfo(NamedTuple):
    """One GPU, as a `selector` is given it."""

    device: int
    name: str
    util: int
    """In %; a card that does not say counts as 100."""
    mem_util: int
    """In %; a card that does not say counts as its `util`."""
    processes: int
    mem_free: int = 0
    """In bytes, as are the next two; 0 where the card does not say."""
    mem_used: int = 0
    mem_total: int = 0
    uuid: str = ""


def info(offer: Offer) -> GpuInfo:
    """Return a GPU as a `selector` is given it."""
    gpu = offer.gpu
    mib = 1024 * 1024
    return GpuInfo(
        device=gpu.index,
        name=gpu.name or "",
        util=100 if gpu.utilization_pct is None else gpu.utilization_pct,
        mem_util=memory_utilization(gpu),
        processes=_processes(offer) or 0,
        mem_free=(free_memory(gpu) or 0) * mib,
        mem_used=(gpu.memory_used_mib or 0) * mib,
        mem_total=(gpu.memory_total_mib or 0) * mib,
        uuid=gpu.uuid or "",
    )


def status(offer: Offer) -> dict[str, Any]:
    """Return a GPU as `gpustatus` tells of it."""
    gpu = offer.gpu
    return {
        "device": gpu.index,
        "name": gpu.name,
        "utilization": gpu.utilization_pct,
        "mem_utilization": gpu.memory_utilization_pct,
        "processes": _processes(offer),
        "performance_state": _performance_state(gpu),
        "power_usage": None if gpu.power_w is None else round(gpu.power_w * 1000),
        "temperature": gpu.temperature_c,
    }


def _processes(offer: Offer) -> int | None:
    """Count the processes on a GPU; whoever has only claimed it is not there yet."""
    if offer.processes is None:
        return None
    return sum(not process.is_claim for process in offer.processes)


def _performance_state(gpu: Gpu) -> int | None:
    digits = (gpu.pstate or "").removeprefix("P")
    return int(digits) if digits.isascii() and digits.isdigit() else None
