"""Waiting until enough GPUs are free, here or in the cluster."""

from __future__ import annotations

import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, TypeVar

from webmon.collect.here import look
from webmon.errors import DataError, HostError, NeverEnough, NotEnough, SiteError, WaitedTooLong
from webmon.pick import choose, claims, here
from webmon.pick.turns import Ticket

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from webmon.config.glance import Glance
    from webmon.errors import WebmonError
    from webmon.model import Gpu
    from webmon.pick.choose import Wish
    from webmon.pick.here import Selection

T = TypeVar("T")

# How often a place in the queue is kept, whatever the pause between two looks.
_MEANWHILE_S = 15.0

# How many looks in a row are left out by who is far behind.
_LEFT_OUT = 5

# How often this machine is looked at: nvidia-smi takes a second on some.
EVERY_HERE_S = 2.0

# How often the last snapshot is: a new one comes every few minutes.
EVERY_CLUSTER_S = 15.0


def until(
    attempt: Callable[[], T],
    timeout: float | None,
    every: float,
    on_wait: Callable[[WebmonError], None],
    meanwhile: Callable[[], None] = lambda: None,
) -> T:
    """Try until it succeeds, and return what came of it; WaitedTooLong after `timeout` seconds.

    Trouble at the first try is an error; later it may pass, and is waited for. `meanwhile` is called often.
    """
    started = time.monotonic()
    tried = False
    while True:
        began = time.monotonic()
        try:
            return attempt()
        except NeverEnough:
            raise
        except NotEnough as error:
            problem: WebmonError = error
        except (HostError, SiteError, DataError) as error:
            if not tried:
                raise
            problem = error
        tried = True
        # Never ask more than half of the time, however slow the answers are.
        now = time.monotonic()
        pause = max(every, now - began)
        if timeout is not None:
            left = started + timeout - now
            if left <= 0:
                raise WaitedTooLong(f"waited {timeout:g} s in vain", str(problem))
            pause = min(pause, left)
        on_wait(problem)
        _sleep(pause, meanwhile)


def _sleep(seconds: float, meanwhile: Callable[[], None]) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        meanwhile()
        time.sleep(min(left, _MEANWHILE_S))


def here_until(
    wish: Wish,
    settings: Glance,
    timeout: float | None,
    every: float,
    on_wait: Callable[[WebmonError], None],
    *,
    claim: bool = True,
) -> Selection:
    """Wait for GPUs of this machine: first come, first served."""
    wish.check()
    snapshot = look(settings)
    fitting = sum(choose.fits(offer, wish, settings.free) for offer in choose.offers(snapshot))
    choose.check_possible(wish, snapshot.gpus, fitting)
    with Ticket(claims.folder(), wish) if claim else nullcontext() as ticket:
        looks = _Looks(wish, snapshot.gpus, ticket)

        def attempt() -> Selection:
            if not looks.are_worth_it():
                raise choose.not_enough(wish, 0, why="Others came first")
            return here.pick(wish, settings, claim=claim, ticket=ticket)

        return until(attempt, timeout, every, on_wait, ticket.keep if ticket else lambda: None)


class _Looks:
    """When to look: who has too many before him does so now and then, as they may not want what is there."""

    def __init__(self, wish: Wish, gpus: Sequence[Gpu], ticket: Ticket | None) -> None:
        self._wish = wish
        self._suitable = [gpu for gpu in gpus if choose.could_fit(gpu, wish)]
        self._ticket = ticket
        self._left_out = 0

    def are_worth_it(self) -> bool:
        if self._ticket is None or self._left_out == _LEFT_OUT or not self._is_hopeless(self._ticket.ahead()):
            self._left_out = 0
            return True
        self._left_out += 1
        return False

    def _is_hopeless(self, ahead: list[Wish]) -> bool:
        wanted = sum(
            min(other.count, sum(choose.could_fit(gpu, other) for gpu in self._suitable)) for other in ahead
        )
        return len(self._suitable) - wanted < self._wish.count
