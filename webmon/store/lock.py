"""One poll at a time for a data folder. The lock ends with the process, however that ends."""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from webmon.store.files import make_folder, storing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Locked(Exception):  # noqa: N818 - no error: another poll is at work
    """Another process holds the lock."""


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold the lock of a data folder; Locked says who has it."""
    with storing(folder):
        make_folder(folder)
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 40, 0).decode("ascii", "replace").strip()
            raise Locked(f"process {holder}" if holder.isdigit() else "another process") from None
        with storing(folder):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)
