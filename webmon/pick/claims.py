"""Two callers never get the same GPU: a claim is an flock on a file per GPU, in a folder all users share.

It is held by whoever has the file open: this process, the command that it becomes, and that one's children.
So it ends with them, however they end. The files stay; they are empty, and anybody may open them.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from webmon.collect.probe import CLAIM_FILE
from webmon.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

# Where every user may write and nobody may remove what is another's. /run/lock is never tidied up.
_SHARED_FOLDERS = ("/run/lock", "/tmp")  # noqa: S108 - sticky, and checked to be

# What lies there may be anything: a link, a pipe without a writer, a terminal.
READ_ONLY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_PICKING_FILE = "webmon-picking"
_PICKING_PATIENCE_S = 3.0


def folder() -> str:
    """Return the folder of the claims; it has to be the same one for all users of a machine."""
    given = os.environ.get("WEBMON_CLAIMS")
    if given and not os.path.isabs(given):
        raise DataError(f"$WEBMON_CLAIMS is {given!r}", "Write it in full: it has to start with /")
    for path in (given,) if given else _SHARED_FOLDERS:
        try:
            mode = os.stat(path).st_mode
        except OSError:
            continue
        if stat.S_ISDIR(mode) and (given or mode & 0o1002 == 0o1002):
            return path
    raise DataError(
        f"claims can't be kept: {given or ' and '.join(_SHARED_FOLDERS)} can't be shared",
        "Name a folder that all users may write to in $WEBMON_CLAIMS, or say --no-claim",
    )


def claim(where: str, uuid: str) -> int | None:
    """Return the descriptor that holds the claim on this GPU; None if somebody else has it."""
    path = _path(where, uuid)
    while True:
        descriptor = open_shared(path)
        if not _lock(descriptor):
            os.close(descriptor)
            return None
        if is_still(path, descriptor):
            return descriptor
        os.close(descriptor)  # somebody has removed the file in between


def inherited(where: str, uuid: str, but: Container[int]) -> int | None:
    """Return a descriptor of this process that holds the claim on this GPU since it began; None if none does.

    Those that this process has opened itself, `but`, are not meant.
    """
    path = _path(where, uuid)
    for name in os.listdir("/proc/self/fd"):
        descriptor = int(name)
        try:
            if descriptor not in but and is_still(path, descriptor) and _lock(descriptor):
                return descriptor
        except OSError:
            continue  # it was that of the listing
    return None


def release(descriptor: int) -> None:
    """Give a claim up, also where a child of this process still has the file open."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def _path(where: str, uuid: str) -> str:
    return os.path.join(where, CLAIM_FILE + "".join(char for char in uuid if char.isalnum() or char == "-"))


@contextmanager
def picking(where: str) -> Iterator[None]:
    """Pick alone: of two that want five of eight GPUs, one gets them, rather than each a part.

    Nobody is kept from picking for long: who holds this up on purpose, or spoils the file, gains nothing.
    """
    try:
        descriptor: int | None = open_shared(os.path.join(where, _PICKING_FILE))
    except DataError:
        descriptor = None  # each claim still goes to one only
    try:
        deadline = time.monotonic() + _PICKING_PATIENCE_S
        while descriptor is not None and not _lock(descriptor) and time.monotonic() < deadline:
            time.sleep(0.005)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def open_shared(path: str) -> int:
    """Open a file of the shared folder, making it if needed; DataError if it is not what it should be."""
    for attempt in range(10):
        try:
            # Never with O_CREAT what is there: Linux refuses that for a file of another user here.
            descriptor: int | None = os.open(path, READ_ONLY)
        except FileNotFoundError:
            descriptor = _create(path)
        except PermissionError as error:
            if attempt == 9:  # its maker may not yet have come to open it to all
                raise _unusable(path, error.strerror) from None
            time.sleep(0.01)
            continue
        except OSError as error:
            raise _unusable(path, error.strerror) from None
        if descriptor is None:
            continue  # somebody else has just made it
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            return descriptor
        os.close(descriptor)
        raise _unusable(path, "it is no file")
    raise _unusable(path, "it comes and goes")


def is_still(path: str, descriptor: int) -> bool:
    """Tell whether a path still leads to the file that is open."""
    try:
        there = os.stat(path, follow_symlinks=False)
    except OSError:
        return False
    here = os.fstat(descriptor)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _create(path: str) -> int | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444)
        os.fchmod(descriptor, 0o444)
    except FileExistsError:
        return None
    except OSError as error:
        raise not_writable(os.path.dirname(path), error) from None
    return descriptor


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise DataError(
            f"claims can't be kept: this file system has no locks ({error.strerror})",
            "Name another folder in $WEBMON_CLAIMS, the same for all users, or say --no-claim",
        ) from None
    return True


def not_writable(where: str, error: OSError) -> DataError:
    """Return the error for a folder that takes no files of this user."""
    return DataError(
        f"claims can't be kept: {where} can't be written to ({error.strerror})",
        "Name a folder that all users may write to in $WEBMON_CLAIMS, or say --no-claim",
    )


def _unusable(path: str, why: str | None) -> DataError:
    return DataError(
        f"{path} can't be used to claim a GPU: {why}",
        "Remove it (root can), or say --no-claim to do without",
    )
