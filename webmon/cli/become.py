"""Becoming another program: its exit code, signals, terminal and output are its own."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NOT_FOUND, _NOT_RUN = 127, 126  # as shells have it


def become(program: Sequence[str], environment: Mapping[str, str]) -> int:
    """Become a program; return the exit code only if that can't be done."""
    sys.stdout.flush()
    sys.stderr.flush()
    # Python ignores these, and what is ignored stays so.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(program[0], list(program), environment)  # noqa: S606 - a shell would change the words
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        print(f"webmon: {program[0]}: {why}", file=sys.stderr)
        return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_RUN
