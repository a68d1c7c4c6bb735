"""Waiting is fair: first come, first served on one machine.

Who waits keeps a ticket, a file in the folder of the claims: its name says since when, its lines say which
GPUs are wanted. It is locked by the one who waits, and touched at every look, so a ticket whose
owner has been killed, or stopped, or has forged it and gone, keeps nobody back.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import time
from typing import TYPE_CHECKING, Self

from webmon.pick.claims import READ_ONLY, not_writable

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFIX = "webmon-wait-"
_NAME = re.compile(rf"{_PREFIX}(\d{{20}})-\d{{1,10}}")
_STALE_S = 60.0
_MAX_BYTES = 64 * 1024


class Ticket:
    """A place in the queue, for as long as it is open."""

    def __init__(self, where: str, uuids: Iterable[str]) -> None:
        """Take the last place, and say which GPUs are wanted; DataError if there is no room for it."""
        self._where = where
        self._name = f"{_PREFIX}{time.time_ns():020d}-{os.getpid()}"
        self._path = os.path.join(where, self._name)
        hidden = os.path.join(where, f".{self._name}")
        try:
            self._descriptor = os.open(
                hidden, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444
            )
        except OSError as error:
            raise not_writable(where, error) from None
        try:
            os.fchmod(self._descriptor, 0o444)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            os.write(self._descriptor, "".join(f"{uuid}\n" for uuid in uuids).encode())
            os.rename(hidden, self._path)
        except OSError as error:
            os.unlink(hidden)
            raise not_writable(where, error) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        os.close(self._descriptor)

    def wanted_before(self) -> set[str]:
        """Return the GPUs that those ahead are waiting for, and say that this one is still there."""
        os.utime(self._descriptor)
        return wanted(self._where, before=self._name)


def wanted(where: str, before: str = _PREFIX + "~") -> set[str]:
    """Return the uuids of the GPUs that somebody is waiting for."""
    uuids: set[str] = set()
    try:
        names = sorted(name for name in os.listdir(where) if _NAME.fullmatch(name))
    except OSError:
        return uuids
    for name in names:
        if name < before:
            uuids |= _read(os.path.join(where, name))
    return uuids


def _read(path: str) -> set[str]:
    """Return what a ticket wants; nothing if nobody keeps it."""
    try:
        descriptor = os.open(path, READ_ONLY)
    except OSError:
        return set()
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or not -_STALE_S < time.time() - about.st_mtime < _STALE_S:
            return set()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return set(os.pread(descriptor, _MAX_BYTES, 0).decode("ascii", "replace").split())
        os.unlink(path)  # its owner has been killed; it may be another user's
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return set()
