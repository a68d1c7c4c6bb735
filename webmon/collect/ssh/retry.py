"""Ask again where a host drops us before it has greeted, within the same deadline.

An sshd that is asked by many at once drops some of them, at random (MaxStartups).
"""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, TypeVar

from webmon.collect.ssh.wire import DroppedError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

_PAUSES_S = (0.1, 0.2, 0.4, 0.8, 1.6)

# With less than this left, another try would only turn one error into another.
_ENOUGH_S = 1.0


def retried(attempt: Callable[[], T], deadline: float) -> T:
    """Return what an attempt returns; those that are dropped are repeated, later and later."""
    for longest in _PAUSES_S:
        try:
            return attempt()
        except DroppedError:
            pause = longest * (0.5 + random.random())  # noqa: S311 - no secret
            if time.monotonic() + pause + _ENOUGH_S > deadline:
                raise
            time.sleep(pause)
    return attempt()
