"""How much time a poll stands for: that since the poll before, if none is missing in between."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

# What cron does, and what is thought of a poll that stands alone.
USUAL_S = 300

# More than that no poll stands for.
_LONGEST_S = 3600

# A poll that comes so much later than usual was late; one that comes later still has a gap before it.
_LATE = 1.5


def seconds(polls: Collection[int], before: Collection[int]) -> dict[int, float]:
    """Return how many seconds each poll stands for; `before` are those of the hour before theirs.

    Times are seconds since the epoch. A clock that went back has polls between polls: their times share
    the time that there was, so nothing counts twice.
    """
    times = sorted({*before, *polls})
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # Of two in the middle the longer one: a poll between two regular ones makes no gaps of these.
    usual = min(sorted(gaps)[len(gaps) // 2], _LONGEST_S) if gaps else USUAL_S
    late = _LATE * max(usual, USUAL_S)
    spans = {later: float(gap if gap <= late else usual) for later, gap in zip(times[1:], gaps, strict=True)}
    return {time: spans.get(time, float(usual)) for time in polls}
