"""Files that are there whole or not at all, and folders that say so when they can't be used."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from webmon.errors import DataError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO

# Readable by the web server; a temporary file would start as 0600.
FILE_MODE = 0o644
FOLDER_MODE = 0o755

# A temporary file's name: that of the file, and eight digits.
_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{8}")
_LEFTOVER_AGE_S = 3600


@contextmanager
def storing(what: Path) -> Iterator[None]:
    """Turn a failure to write into one clear line."""
    try:
        yield
    except OSError as error:
        remedy = "Make it writable for this user, or name another folder in the configuration"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StorageError(
                f"{what} can't be written: {error.strerror}",
                "Free some space; what was there before is as it was",
            ) from None
        raise DataError(f"{what} can't be written: {error.strerror}", remedy) from None


def make_folder(path: Path) -> None:
    """Make a folder that others may read, and those above it, whatever the umask says."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)
        folder.chmod(FOLDER_MODE)


def write(path: Path, content: bytes, mode: int = FILE_MODE, *, sync: bool = True) -> None:
    """Replace a file: readers see the old one or the new one, whole.

    With `sync` that holds even if the machine loses its power; it takes a while.
    """
    with replacing(path, mode, sync=sync) as file:
        file.write(content)


@contextmanager
def replacing(path: Path, mode: int = FILE_MODE, *, sync: bool = True) -> Iterator[BinaryIO]:
    """Give a file to write to, which takes the place of the one at `path` if all goes well."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as file:
            yield file
            os.fchmod(file.fileno(), mode)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def clear_leftovers(folder: Path) -> None:
    """Remove what a run that was killed in the middle of writing has left behind, an hour ago or more."""
    for path in folder.rglob(".*"):
        if _LEFTOVER.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _LEFTOVER_AGE_S:
                    path.unlink()


def write_if_changed(path: Path, content: bytes) -> bool:
    """Replace a file if its content is another one, and tell whether it was.

    It is for what can be made again: a file that a loss of power has emptied differs, and is replaced.
    """
    try:
        if path.stat().st_size == len(content) and path.read_bytes() == content:
            return False
    except OSError:
        pass  # not there, or not readable: it is written anew
    try:
        write(path, content, sync=False)
    except FileNotFoundError:
        make_folder(path.parent)
        write(path, content, sync=False)
    return True
