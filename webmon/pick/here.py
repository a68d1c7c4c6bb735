"""Picking GPUs of this machine, and claiming them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Self

from webmon.availability import is_free
from webmon.collect.here import look
from webmon.errors import DataError, NotEnough
from webmon.pick import choose, claims, turns
from webmon.pick.choose import Offer

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from webmon.availability import Rules
    from webmon.config.glance import Glance
    from webmon.model import Gpu
    from webmon.pick.choose import Wish
    from webmon.pick.turns import Ticket


# The GPUs that selections of this process hold: it must not give itself one of them twice.
_given: set[str] = set()


class Selection:
    """The GPUs that were picked. Their claims last until they are released, or this process ends."""

    def __init__(self, gpus: Sequence[Gpu], held: Mapping[str, int | None] | None = None) -> None:
        """Take over the claims: uuid → the descriptor that holds it, None if this process began with it."""
        self.gpus = tuple(gpus)
        self.held = dict(held or {})

    def __repr__(self) -> str:
        """Return what was picked, for whoever looks."""
        return f"<Selection of GPU {self.ids}>"

    @property
    def claims(self) -> list[int]:
        """Return the descriptors that hold the claims."""
        return [descriptor for descriptor in self.held.values() if descriptor is not None]

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
            _given.discard(uuid)
            if descriptor is not None:
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
    old = instead_of or Selection(())
    offered, own = _without_own_claims(choose.offers(snapshot), settings.free, _given - set(old.held))
    fitting = [offer for offer in offered if _fits(offer, wish, settings.free, suits)]
    choose.check_possible(wish, snapshot.gpus, len(fitting))
    best = choose.ordered(fitting, wish.sort, lambda: os.urandom(8))
    if where is None:
        selection = _selection([offer.gpu for offer in best], {}, wish)
        old.release()
        return selection
    kept = ticket.wanted_before() if ticket else turns.wanted(where)
    with claims.picking(where):
        gpus = [offer.gpu for offer in best if offer.gpu.uuid not in kept]
        if len(gpus) < wish.count <= len(best):
            remedy = "The others are free, and wanted by who came first: `webmon wait` takes the next place"
            raise NotEnough(choose.not_enough(wish, len(gpus)).problem, remedy)
        return _claimed(where, gpus, own, wish, old)


def _fits(offer: Offer, wish: Wish, rules: Rules, suits: Callable[[Offer], bool] | None) -> bool:
    return choose.fits(offer, wish, rules) if suits is None else choose.is_offered(offer) and suits(offer)


def _without_own_claims(
    offered: Sequence[Offer], rules: Rules, given: Container[str | None]
) -> tuple[list[Offer], set[str | None]]:
    """Leave out the claims of this very process, which `webmon select -- CMD` has become; name their GPUs.

    The claims of those that it has `given` away already stay.
    """
    me = os.getpid()
    others: list[Offer] = []
    own: set[str | None] = set()
    for offer in offered:
        claim = offer.claimed_by
        if claim is not None and claim.pid == me and offer.gpu.uuid not in given:
            own.add(offer.gpu.uuid)
            processes = tuple(process for process in offer.processes or () if process is not claim)
            state = "free" if is_free(offer.gpu, processes, rules) else offer.gpu.state
            others.append(Offer(offer.gpu._replace(state=state), processes))
        else:
            others.append(offer)
    return others, own


def _claimed(
    where: str, gpus: Sequence[Gpu], own: Container[str | None], wish: Wish, old: Selection
) -> Selection:
    got: list[Gpu] = []
    held: dict[str, int | None] = {}
    trouble: DataError | None = None
    for gpu in gpus:
        uuid = gpu.uuid or ""
        if len(got) == wish.count:
            break
        if uuid not in old.held:
            if uuid in _given:
                continue  # another thread was quicker
            try:
                descriptor = None if uuid in own else claims.claim(where, uuid)
            except DataError as error:
                trouble = error  # one file that can't be used takes one GPU out, no more
                continue
            if descriptor is None and uuid not in own:
                continue
            held[uuid] = descriptor
            _given.add(uuid)
        got.append(gpu)
    if len(got) < wish.count and trouble is not None:
        Selection((), held).release()
        raise trouble
    selection = _selection(got, held, wish)
    for gpu in got:
        if gpu.uuid in old.held:
            selection.held[gpu.uuid] = old.held.pop(gpu.uuid)
    old.release()
    return selection


def _selection(gpus: Sequence[Gpu], held: Mapping[str, int | None], wish: Wish) -> Selection:
    if len(gpus) < wish.count:
        Selection((), held).release()
        raise choose.not_enough(wish, len(gpus))
    chosen = gpus[: wish.count]
    if wish.sort == "random":
        chosen = sorted(chosen, key=lambda gpu: gpu.index)
    return Selection(chosen, held)
