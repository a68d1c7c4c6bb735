"""Which GPUs fit a wish, and in which order. What is free is said by `availability` alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from webmon.availability import in_use_by, is_idle, memory_is_free
from webmon.errors import NeverEnough, NotEnough, WishError
from webmon.model import natural_order, processes_on

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webmon.availability import Rules
    from webmon.model import Gpu, Host, Process, Snapshot

Order = Literal["index", "free-memory", "power", "name", "random"]
ORDERS: tuple[Order, ...] = get_args(Order)


class Offer(NamedTuple):
    """One GPU, and what is on it; `processes` is None when that is not known."""

    gpu: Gpu
    processes: tuple[Process, ...] | None

    @property
    def claimed_by(self) -> Process | None:
        """Return the process that has claimed it, if there is one."""
        return next((process for process in self.processes or () if process.is_claim), None)


class Wish(NamedTuple):
    """What somebody wants. A threshold that is None is the one of `[free]`."""

    count: int = 1  # type: ignore[assignment] # a tuple has a method of that name
    name: str | None = None
    devices: tuple[int, ...] = ()
    util: float | None = None
    mem_util: float | None = None
    processes: int | None = None
    free_memory_mib: int | None = None
    max_used_pct: float | None = None
    sort: Order = "random"

    def check(self) -> None:
        """Refuse what makes no sense."""
        self._check_types()
        if self.count < 1:
            raise WishError(f"{self.count} GPUs can't be picked", "Ask for at least one")
        if self.devices and self.name is not None:
            raise WishError(
                "Use only one of 'devices' and 'name'", "Devices say which GPUs, a name which model"
            )
        limits = (self.util, self.mem_util, self.processes, self.free_memory_mib, *self.devices)
        if any(limit is not None and not limit >= 0 for limit in limits):
            raise WishError("Utilization, memory, process counts and devices are 0 or more")
        if self.devices and self.count > len(set(self.devices)):
            raise WishError(
                f"{self.count} GPUs can't be picked from the {len(set(self.devices))} named",
                "Name more devices, or ask for fewer",
            )

    def _check_types(self) -> None:
        whole = (self.count, self.processes or 0, self.free_memory_mib or 0, *self.devices)
        if any(not isinstance(number, int) or isinstance(number, bool) for number in whole):
            raise WishError("A count, devices, processes and MiB are whole numbers")
        if any(not isinstance(share, int | float) for share in (self.util or 0, self.mem_util or 0)):
            raise WishError("A utilization is a number")
        if self.name is not None and not isinstance(self.name, str):
            raise WishError("A name is a text")
        if self.sort not in ORDERS:
            raise WishError(f"{self.sort!r} is no order", f"It can be: {', '.join(ORDERS)}")


def offers(snapshot: Snapshot) -> list[Offer]:
    """Return every GPU of a snapshot with what is on it, in the snapshot's order."""
    gpus, processes = snapshot.gpus_by_host(), snapshot.processes_by_host()
    found: list[Offer] = []
    for host in snapshot.hosts:
        own, on_host = gpus.get(host.host, ()), processes.get(host.host, ())
        known = _processes_are_known(host, own, on_host)
        for gpu, on_it in zip(own, processes_on(own, on_host), strict=True):
            is_told = known and gpu.state not in ("unknown", "faulty")
            found.append(Offer(gpu, tuple(on_it) if is_told else None))
    return found


def _processes_are_known(host: Host, gpus: Sequence[Gpu], processes: Sequence[Process]) -> bool:
    return host.status == "up" or bool(processes) or any(gpu.state == "free" for gpu in gpus)


def is_offered(offer: Offer) -> bool:
    """Tell whether this GPU may be given at all. Unknown, faulty and claimed ones never are."""
    return (
        offer.processes is not None
        and offer.gpu.state not in ("unknown", "faulty")
        and offer.claimed_by is None
    )


def fits(offer: Offer, wish: Wish, rules: Rules) -> bool:
    """Tell whether this GPU may be given for this wish."""
    gpu = offer.gpu
    return (
        is_offered(offer)
        and _is_meant(gpu, wish)
        and (wish.free_memory_mib is None or (free_memory(gpu) or 0) >= wish.free_memory_mib)
        and _is_quiet(gpu, offer.processes or (), wish, rules)
    )


def could_fit(gpu: Gpu, wish: Wish) -> bool:
    """Tell whether this GPU would be given for this wish if nobody used it."""
    total = gpu.memory_total_mib
    return _is_meant(gpu, wish) and (
        wish.free_memory_mib is None or total is None or total >= wish.free_memory_mib
    )


def _is_meant(gpu: Gpu, wish: Wish) -> bool:
    if wish.devices and gpu.index not in wish.devices:
        return False
    return wish.name is None or wish.name.casefold() in (gpu.name or "").casefold()


def _is_quiet(gpu: Gpu, processes: Sequence[Process], wish: Wish, rules: Rules) -> bool:
    if wish.mem_util is not None and memory_utilization(gpu) > wish.mem_util:
        return False
    if wish.util is None and wish.max_used_pct is None and not wish.processes:
        return gpu.state == "free"
    if wish.max_used_pct is not None:
        rules = rules._replace(max_memory_pct=wish.max_used_pct)
    # On a free card there are none but ignored ones, though their names may not have been stored.
    using = 0 if gpu.state == "free" else in_use_by(processes, rules)
    if using > (wish.processes or 0) or (not using and not memory_is_free(gpu, rules)):
        return False
    if gpu.utilization_pct == 100 and not processes and is_idle(gpu, processes, rules):
        return True  # it has just been woken
    limit = rules.max_utilization_pct if wish.util is None else wish.util
    return gpu.utilization_pct is not None and gpu.utilization_pct <= limit


def memory_utilization(gpu: Gpu) -> int:
    """Return it in %; a card that does not say counts by its utilization, and as 100 without that."""
    known = (gpu.memory_utilization_pct, gpu.utilization_pct)
    return next((share for share in known if share is not None), 100)


def free_memory(gpu: Gpu) -> int | None:
    """Return the memory that nobody uses, in MiB; None when the card does not say."""
    if gpu.memory_used_mib is None or gpu.memory_total_mib is None:
        return None
    return max(0, gpu.memory_total_mib - gpu.memory_used_mib)


def ordered(offered: Iterable[Offer], order: Order, draw: Callable[[], bytes]) -> list[Offer]:
    """Put the GPUs into an order: the best first. `draw` gives random bytes.

    At random, those that do nothing whatever come before those that are nearly idle.
    """
    if order == "random":
        drawn = sorted(offered, key=lambda _: draw())
        return sorted(drawn, key=lambda offer: (offer.gpu.utilization_pct or 0) > 0)
    if order == "free-memory":
        return sorted(offered, key=lambda offer: -(free_memory(offer.gpu) or 0))
    if order == "power":
        return sorted(offered, key=lambda offer: -(offer.gpu.power_limit_w or 0.0))
    if order == "name":
        return sorted(offered, key=lambda offer: natural_order(offer.gpu.name or "\U0010ffff"))
    return list(offered)


def check_possible(wish: Wish, gpus: Sequence[Gpu], matched: int = 0) -> None:
    """Refuse a wish that this machine could not fulfil with all of its GPUs idle; `matched` fit it now."""
    wish.check()
    unknown = sorted(set(wish.devices) - {gpu.index for gpu in gpus})
    if unknown:
        have = ", ".join(str(gpu.index) for gpu in gpus) or "none"
        raise WishError(f"Invalid device ID {unknown[0]}", f"This machine has {have}")
    able = sum(could_fit(gpu, wish) for gpu in gpus)
    if able < wish.count:
        like = [f"with {wish.name!r} in their name"] if wish.name is not None else []
        like += [f"with {wish.free_memory_mib / 1024:g} GiB"] if wish.free_memory_mib is not None else []
        which = f", {able} of them {' and '.join(like)}" if like else ""
        raise NeverEnough(
            not_enough(wish, matched).problem, f"This machine has {len(gpus)}{which}: it will never do"
        )


def reserved(offered: Sequence[Offer], ahead: Iterable[Wish], rules: Rules) -> set[str | None]:
    """Return the GPUs that belong to those who came first: to each as many as fit, and as are wished for."""
    kept: set[str | None] = set()
    for wish in ahead:
        fitting = [o.gpu.uuid for o in offered if o.gpu.uuid not in kept and fits(o, wish, rules)]
        kept.update(fitting[: wish.count])
    return kept


def not_enough(wish: Wish, matched: int, why: str | None = None) -> NotEnough:
    """Return the error for a wish that can't be fulfilled now."""
    return NotEnough(f"Requested {wish.count} GPUs, but {matched} matched filters", why or "")
