"""Picking GPUs of this machine, and claiming them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from webmon.availability import is_free
from webmon.collect.here import look
from webmon.errors import DataError
from webmon.pick import choose, claims, turns
from webmon.pick.choose import Offer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from webmon.availability import Rules
    from webmon.config.glance import Glance
    from webmon.model import Gpu
    from webmon.pick.choose import Wish
    from webmon.pick.turns import Ticket


# The descriptors that hold the claims of this process's selections; and the GPUs that it was given when it
# began, and has given to a selection. None of them is given twice.
_live: set[int] = set()
_passed_on: set[str] = set()


class Selection:
    """The GPUs that were picked. Their claims last until they are released, or this process ends."""

    def __init__(self, gpus: Sequence[Gpu], held: Mapping[str, int] | None = None) -> None:
        """Take over the claims: uuid → the descriptor that holds it."""
        self.gpus = tuple(gpus)
        self.held = dict(held or {})
        self.pid = os.getpid()

    def __repr__(self) -> str:
        """Return what was picked, for whoever looks."""
        return f"<Selection of GPU {self.ids}>"

    @property
    def ids(self) -> str:
        """Return `0,2`."""
        return ",".join(str(gpu.index) for gpu in self.gpus)

    @property
    def uuids(self) -> str:
        """Return `GPU-…,GPU-…`."""
        return ",".join(gpu.uuid or "" for gpu in self.gpus)

    @property
    def environment(self) -> dict[str, str]:
        """Return what a program needs to see these GPUs and no others, counted as nvidia-smi does."""
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": self.ids}

    def release(self) -> None:
        """Give the claims up."""
        while self.held:
            uuid, descriptor = self.held.popitem()
            # A copy of what this process began with is only closed, as is what a child has of its parent's.
            if descriptor not in _live:
                _passed_on.discard(uuid)
            elif os.getpid() == self.pid:
                claims.release(descriptor)
            _live.discard(descriptor)
            os.close(descriptor)

    def __enter__(self) -> Self:
        """Keep the claims for as long as the block lasts."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give them up."""
        self.release()


def pick(
    wish: Wish,
    settings: Glance,
    *,
    claim: bool = True,
    ticket: Ticket | None = None,
    suits: Callable[[Offer], bool] | None = None,
    instead_of: Selection | None = None,
) -> Selection:
    """Pick as many GPUs as are wished for; NotEnough if they are not free now.

    `suits` stands in for all of the wish but its count and its order. What this selection is `instead_of`
    stays claimed until it has succeeded, and may be picked again.
    """
    wish.check()
    where = claims.folder() if claim else None
    snapshot = look(settings)
    offered = choose.offers(snapshot)
    old = instead_of or Selection(())
    begun_with = _begun_with(where, offered)
    offered = [
        _unclaimed(offer, settings.free) if offer.gpu.uuid in {*begun_with, *old.held} else offer
        for offer in offered
    ]
    fitting = [offer for offer in offered if _fits(offer, wish, settings.free, suits)]
    choose.check_possible(wish, snapshot.gpus, len(fitting))
    if len(fitting) < wish.count:
        raise choose.not_enough(wish, len(fitting), why=snapshot.hosts[0].error)
    best = [offer.gpu for offer in choose.ordered(fitting, wish.sort, lambda: os.urandom(8))]
    if where is None:
        old.release()
        return Selection(_chosen(best, wish))
    kept = choose.reserved(offered, ticket.ahead() if ticket else turns.ahead(where), settings.free)
    gpus = [gpu for gpu in best if gpu.uuid not in kept]
    if len(gpus) < wish.count:
        why = "The others are free, and wanted by who came first: `webmon wait` takes the next place"
        raise choose.not_enough(wish, len(gpus), why=why)
    with claims.picking(where):
        return _claimed(where, gpus, begun_with, wish, old)


def _fits(offer: Offer, wish: Wish, rules: Rules, suits: Callable[[Offer], bool] | None) -> bool:
    return choose.fits(offer, wish, rules) if suits is None else choose.is_offered(offer) and suits(offer)


def _begun_with(where: str | None, offered: Sequence[Offer]) -> dict[str, int]:
    """Return the claims that this process began with, as what `webmon select -- CMD` has become."""
    me = os.getpid()
    found: dict[str, int] = {}
    for offer in offered:
        claim, uuid = offer.claimed_by, offer.gpu.uuid
        if where is None or uuid is None or uuid in _passed_on:
            continue
        if claim is not None and claim.pid == me:
            descriptor = claims.inherited(where, uuid, _live)
            if descriptor is not None:
                found[uuid] = descriptor
    return found


def _unclaimed(offer: Offer, rules: Rules) -> Offer:
    """Return a GPU as it is without the claim, which is this process's own."""
    processes = tuple(process for process in offer.processes or () if not process.is_claim)
    state = "free" if is_free(offer.gpu, processes, rules) else offer.gpu.state
    return Offer(offer.gpu._replace(state=state), processes)


def _claimed(
    where: str, gpus: Sequence[Gpu], begun_with: Mapping[str, int], wish: Wish, old: Selection
) -> Selection:
    got: list[Gpu] = []
    held: dict[str, int] = {}
    trouble: DataError | None = None
    try:
        for gpu in gpus:
            uuid = gpu.uuid or ""
            if len(got) == wish.count:
                break
            if uuid not in old.held:
                try:
                    descriptor = _take(where, uuid, begun_with)
                except DataError as error:
                    trouble = error  # one file that can't be used takes one GPU out, no more
                    continue
                if descriptor is None:
                    continue
                held[uuid] = descriptor
            got.append(gpu)
        if len(got) < wish.count:
            raise trouble or choose.not_enough(wish, len(got))
    except BaseException:
        Selection((), held).release()
        raise
    for gpu in got:
        if gpu.uuid in old.held:
            held[gpu.uuid] = old.held.pop(gpu.uuid)
    old.release()
    return Selection(_chosen(got, wish), held)


def _take(where: str, uuid: str, begun_with: Mapping[str, int]) -> int | None:
    """Return a descriptor that holds the claim on this GPU; None if somebody else has it."""
    if uuid in begun_with:
        _passed_on.add(uuid)
        return os.dup(begun_with[uuid])
    descriptor = claims.claim(where, uuid)
    if descriptor is not None:
        _live.add(descriptor)
    return descriptor


def _chosen(gpus: Sequence[Gpu], wish: Wish) -> Sequence[Gpu]:
    chosen = gpus[: wish.count]
    return sorted(chosen, key=lambda gpu: gpu.index) if wish.sort == "random" else chosen
