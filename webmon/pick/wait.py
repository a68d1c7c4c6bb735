"""Waiting until enough GPUs are free, here or in the cluster."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, TypeVar

from webmon.collect.here import look
from webmon.errors import DataError, HostError, NeverEnough, NotEnough, SiteError, WaitedTooLong
from webmon.pick import choose, claims, here
from webmon.pick.turns import Ticket

if TYPE_CHECKING:
    from collections.abc import Callable

    from webmon.config.glance import Glance
    from webmon.errors import WebmonError
    from webmon.pick.choose import Wish
    from webmon.pick.here import Selection

T = TypeVar("T")

# How often this machine is looked at: nvidia-smi takes a second on some.
EVERY_HERE_S = 2.0

# How often the last snapshot is: a new one comes every few minutes.
EVERY_CLUSTER_S = 15.0


def until(
    attempt: Callable[[], T], timeout: float | None, every: float, on_wait: Callable[[WebmonError], None]
) -> T:
    """Try until it succeeds, and return what came of it; WaitedTooLong after `timeout` seconds.

    Trouble at the first try is an error; later it may pass, and is waited for.
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
        time.sleep(pause)


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
    gpus = snapshot.gpus
    fitting = sum(choose.fits(offer, wish, settings.free) for offer in choose.offers(snapshot))
    choose.check_possible(wish, gpus, fitting)
    wanted = {gpu.uuid for gpu in gpus if gpu.uuid and choose.could_fit(gpu, wish)}
    with ExitStack() as stack:
        ticket = stack.enter_context(Ticket(claims.folder(), sorted(wanted))) if claim else None

        def attempt() -> Selection:
            if ticket is not None and wanted <= ticket.wanted_before():
                raise choose.not_enough(wish, 0)  # it is not our turn: nobody needs to be asked
            return here.pick(wish, settings, claim=claim, ticket=ticket)

        return until(attempt, timeout, every, on_wait)
