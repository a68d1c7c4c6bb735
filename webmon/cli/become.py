"""Becoming another program: its exit code, signals, terminal and output are its own."""

from __future__ import annotations

import errno
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_NOT_FOUND, _NOT_RUN = 127, 126  # as shells have it


def become(program: Sequence[str], environment: Mapping[str, str], keep: Iterable[int] = ()) -> int:
    """Become a program, with the descriptors to `keep`; return the exit code only if it can't be."""
    for descriptor in keep:
        os.set_inheritable(descriptor, True)
    sys.stdout.flush()
    sys.stderr.flush()
    # Python ignores these, and what is ignored stays so.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        if not program[0]:
            raise FileNotFoundError(errno.ENOENT, "a command without a name")
        _execute(program, environment)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        print(f"webmon: {program[0]}: {why}", file=sys.stderr)
        return _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_RUN


def _execute(program: Sequence[str], environment: Mapping[str, str]) -> NoReturn:
    try:
        os.execvpe(program[0], list(program), environment)  # noqa: S606 - a shell would change the words
    except OSError as error:
        if error.errno != errno.ENOEXEC:
            raise
    # A script without `#!`: env, nohup and every shell run it with sh, and Python's exec does not.
    from shutil import which

    path = which(program[0], path=environment.get("PATH", os.defpath)) or program[0]
    os.execve("/bin/sh", ["/bin/sh", path, *program[1:]], environment)  # noqa: S606
