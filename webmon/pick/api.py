"""The Python API: the functions of nvgpu and gpuselect, with the same names, arguments and results.

    from webmon import gpuselect
    gpuselect()          # CUDA_VISIBLE_DEVICES is set, and the GPU claimed for as long as this process lives

`select` and `snapshot` are webmon's own. docs/python.md describes all of them.
"""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webmon.collect.here import look
from webmon.config.glance import glance
from webmon.errors import NotEnough
from webmon.model import Snapshot
from webmon.pick import choose, cluster, here
from webmon.pick.info import GpuInfo, info, status
from webmon.pick.visible import visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pandas

    from webmon.availability import Rules
    from webmon.pick.choose import Offer, Order
    from webmon.pick.here import Selection

# The name that users of gpuselect know.
_log = logging.getLogger("gpuselect")

# What `gpuselect` has picked for this process last, if anything.
_held: list[Selection] = []

# One thread picks at a time: which claims are whose is told by the process.
_picking = threading.Lock()


class ClusterSnapshot(Snapshot):
    """The whole cluster at one moment."""

    __slots__ = ()

    def frames(self) -> dict[str, pandas.DataFrame]:
        """Return `hosts`, `gpus` and `processes` as data frames, with numbers and times in them."""
        from webmon.store.frames import typed

        return typed(self)


def gpu_info() -> list[dict[str, Any]]:
    """Return this machine's GPUs as nvgpu does: index, type, uuid, mem_used, mem_total, mem_used_percent.

    Memory is in MiB; it is None where the card does not say.
    """
    return [
        {
            "index": str(gpu.index),
            "type": gpu.name,
            "uuid": gpu.uuid,
            "mem_used": gpu.memory_used_mib,
            "mem_total": gpu.memory_total_mib,
            "mem_used_percent": None
            if gpu.memory_used_mib is None or not gpu.memory_total_mib
            else 100.0 * gpu.memory_used_mib / gpu.memory_total_mib,
        }
        for gpu in look(glance()).gpus
    ]


def available_gpus(max_used_percent: float = 20.0) -> list[str]:
    """Return the indices of the free GPUs of this machine, of whose memory no more than this is used."""
    settings = glance()
    wish = choose.Wish(max_used_pct=max_used_percent)
    offered = choose.offers(look(settings))
    return [str(offer.gpu.index) for offer in offered if choose.fits(offer, wish, settings.free)]


def gpuselect(  # noqa: PLR0913, PLR0917 - gpuselect's own signature
    count: int = 1,
    devices: int | Iterable[int] | None = None,
    name: str | None = None,
    util: float = 0,
    mem_util: float = 0,
    processes: int = 0,
    selector: Callable[[GpuInfo], bool] | None = None,
    silent: bool = False,
    set_cvd: bool = True,
    claim: bool = True,
) -> str:
    """Pick idle GPUs of this machine at random, set CUDA_VISIBLE_DEVICES and return its value: `0,2`.

    Thresholds are inclusive. `selector` stands in for every filter but `count`. Too few: NotEnough, or
    `""` with `silent`, and nothing changes. The GPUs are claimed until this process ends, or picks others.
    """
    ids = _ids(devices)
    wish = choose.Wish(
        count=max(count, len(set(ids))) if isinstance(count, int) and count > 0 else count,
        name=name,
        devices=ids,
        util=util,
        mem_util=mem_util,
        processes=processes,
    )
    _log_to_stderr()
    _log.debug("wanted: %s", wish)
    wish.check()
    settings = glance()
    if selector is None:
        suits = _judged_by(wish, settings.free)
    else:
        suits = _judged_by_selector(selector)
        wish = choose.Wish(count=count)  # nothing else of it counts
    with _picking:
        before = next((held for held in _held if held.pid == os.getpid()), None)  # a parent's is not ours
        try:
            selection = here.pick(wish, settings, claim=claim, suits=suits, instead_of=before)
        except NotEnough as error:
            _log.debug("%s", error)
            if silent:
                return ""
            raise
        _held[:] = [selection]
    if set_cvd:
        os.environ.update(selection.environment)
    _log.debug("CUDA_VISIBLE_DEVICES=%s", selection.ids)
    return selection.ids


def gpustatus(only_cvd: bool = True) -> list[dict[str, Any]]:
    """Return the state of this machine's GPUs as gpuselect does: those in CUDA_VISIBLE_DEVICES, or all.

    Power is in milliwatts; what a card does not say is None.
    """
    offered = choose.offers(look(glance()))
    seen = visible([offer.gpu for offer in offered], os.environ.get("CUDA_VISIBLE_DEVICES"))
    return [status(offer) for offer in offered if not only_cvd or offer.gpu in seen]


def select(  # noqa: PLR0913 - what one may wish for
    count: int = 1,
    *,
    name: str | None = None,
    devices: int | Iterable[int] | None = None,
    util: float | None = None,
    mem_util: float | None = None,
    processes: int | None = None,
    free_memory_mib: int | None = None,
    sort: Order = "random",
    claim: bool = True,
) -> Selection:
    """Pick free GPUs of this machine, as `webmon select` does, and claim them; NotEnough if it has too few.

    The claims last until the selection's `release`, the end of a `with` block, or of this process.
    Nothing is set: `os.environ.update(selection.environment)` does that.
    """
    ids = _ids(devices)
    wish = choose.Wish(count, name, ids, util, mem_util, processes, free_memory_mib, sort=sort)
    with _picking:
        return here.pick(wish, glance(), claim=claim)


def _ids(devices: int | Iterable[int] | None) -> tuple[int, ...]:
    return () if devices is None else (devices,) if isinstance(devices, int) else tuple(devices)


def snapshot(
    url: str | None = None,
    *,
    data: str | os.PathLike[str] | None = None,
    config: str | os.PathLike[str] | None = None,
) -> ClusterSnapshot:
    """Return the cluster's last snapshot: hosts, gpus, processes; `.frames()` gives data frames.

    It is read from the site at `url`, the folder `data`, or the one that `config` names. Without any of
    these it is $WEBMON_SITE, or the configuration in the usual places, that says where it is.
    """
    if config is not None:
        data = data or glance(os.fspath(config)).data
    folder = None if data is None else Path(data)
    last = cluster.load(url, folder, lambda: glance().data)
    return ClusterSnapshot(last.taken_at, last.hosts, last.gpus, last.processes)


def _judged_by(wish: choose.Wish, rules: Rules) -> Callable[[Offer], bool]:
    return lambda offer: _told(offer, choose.fits(offer, wish, rules))


def _judged_by_selector(selector: Callable[[GpuInfo], bool]) -> Callable[[Offer], bool]:
    return lambda offer: _told(offer, bool(selector(info(offer))))


def _told(offer: Offer, fits: bool) -> bool:
    _log.debug("%s %s", "fits:" if fits else "does not fit:", info(offer))
    return fits


def _log_to_stderr() -> None:
    """Show what is logged, as gpuselect does, unless this program has a mind of its own about logging."""
    if not _log.handlers and not logging.getLogger().handlers:
        _log.addHandler(logging.StreamHandler())
        if _log.level == logging.NOTSET:
            _log.setLevel(logging.INFO)
