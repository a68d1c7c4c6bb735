"""Waiting is fair: first come, first served on one machine.

Who waits keeps a ticket, a file in the folder of the claims: its name says since when, its text what is
wished for. It is locked by the one who waits, and touched all the time, so a ticket whose owner has been
killed, or stopped, or has forged it and gone, keeps nobody back.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import time
from typing import Self

from webmon.errors import WishError
from webmon.pick.choose import Wish
from webmon.pick.claims import READ_ONLY, not_writable

_PREFIX = "webmon-wait-"
_NAME = re.compile(rf"{_PREFIX}(\d{{20}})-\d{{1,10}}")
_STALE_S = 60.0
_MAX_BYTES = 4096


class Ticket:
    """A place in the queue, for as long as it is open."""

    def __init__(self, where: str, wish: Wish) -> None:
        """Take the last place, and say what is wished for; DataError if there is no room for it."""
        import json

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
            os.write(self._descriptor, json.dumps(wish._asdict()).encode())
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

    def keep(self) -> None:
        """Say that this one is still there."""
        os.utime(self._descriptor)

    def ahead(self) -> list[Wish]:
        """Return what those who came before wish for."""
        return ahead(self._where, before=self._name)


def ahead(where: str, before: str = _PREFIX + "~") -> list[Wish]:
    """Return what everybody who waits wishes for, first come first."""
    try:
        names = sorted(name for name in os.listdir(where) if _NAME.fullmatch(name) and name < before)
    except OSError:
        return []
    return [wish for name in names if (wish := _read(os.path.join(where, name))) is not None]


def _read(path: str) -> Wish | None:
    """Return what the owner of a ticket wishes for; None if nobody keeps it."""
    try:
        descriptor = os.open(path, READ_ONLY)
    except OSError:
        return None
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or not -_STALE_S < time.time() - about.st_mtime < _STALE_S:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _wish(os.pread(descriptor, _MAX_BYTES, 0))
        os.unlink(path)  # its owner has been killed; it may be another user's
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return None


def _wish(text: bytes) -> Wish | None:
    """Read a ticket: anybody may have written it, and anything."""
    import json

    try:
        fields = json.loads(text)
        wish = Wish(**{**fields, "devices": tuple(fields["devices"])})
        wish.check()
    except (ValueError, TypeError, KeyError, RecursionError, WishError):
        return None
    return wish
