"""How far a poll, or a wait, is: on a terminal only, and gone when it is done."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from webmon.cli.terminal import screen_width

if TYPE_CHECKING:
    from webmon.collect.assemble import Answer
    from webmon.errors import WebmonError


class Progress:
    """Draws `[#####.....] 12/40 gpu07` on standard error."""

    def __init__(self, total: int, *, shown: bool) -> None:
        """Draw nothing yet; with `shown` false, never."""
        self._total = total
        self._done = 0
        self._shown = shown
        self._drawn_at = 0.0

    def __call__(self, answer: Answer) -> None:
        """Count one more host."""
        self._done += 1
        now = time.monotonic()
        if self._shown and (now - self._drawn_at > 0.05 or self._done == self._total):
            self._drawn_at = now
            self._draw(answer.host)

    def clear(self) -> None:
        """Take the bar off the terminal."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _draw(self, host: str) -> None:
        width = screen_width(sys.stderr) or 80
        count = f" {self._done}/{self._total} "
        bar = max(0, min(40, width - len(count) - 24))
        full = bar * self._done // max(1, self._total)
        line = f"[{'#' * full}{'.' * (bar - full)}]{count}{host}"
        sys.stderr.write(f"\r\x1b[K{line[: max(0, width - 1)]}")
        sys.stderr.flush()


class Waiting:
    """Draws `waiting for 2 GPUs, 12 min: Requested 2 GPUs, but 1 matched filters` on standard error."""

    def __init__(self, count: int, *, shown: bool) -> None:
        """Draw nothing yet; with `shown` false, never."""
        self._wanted = f"{count} GPU{'' if count == 1 else 's'}"
        self._shown = shown
        self._started = time.monotonic()

    def __call__(self, problem: WebmonError) -> None:
        """Say what is being waited for."""
        if not self._shown:
            return
        minutes, seconds = divmod(int(time.monotonic() - self._started), 60)
        line = f"waiting for {self._wanted}, {minutes}:{seconds:02d}  {problem.problem}"
        width = screen_width(sys.stderr) or 80
        sys.stderr.write(f"\r\x1b[K{line[: max(0, width - 1)]}")
        sys.stderr.flush()

    def clear(self) -> None:
        """Take the line off the terminal."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
