"""The files of the history, a day each: found, read, closed with gzip, removed when old.

    data/history/2026-11-17.csv.gz   closed
    data/history/2026-11-18.csv      today

A run that is killed in the middle of a line leaves a torn one; readers pass over it, and the next run
takes it away.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import zlib
from datetime import UTC, date, timedelta
from typing import TYPE_CHECKING

from webmon.store.files import replacing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

# How long `2026-11-18T08` is, with which a line begins.
_HOUR = 13

_LEVEL = 3  # takes half as long as the usual 6, and a tenth more room

_BLOCK = 1 << 17

_LATELY_DAYS = 7

_DAY = re.compile(r"(\d{4}-\d\d-\d\d)\.csv(\.gz)?")


def files(days: Path) -> list[tuple[date, Path]]:
    """Return the days' files, in their order; links, folders and other names are not ours."""
    found = [(match[1], days / name) for name in names(days) if (match := _DAY.fullmatch(name))]
    return [(day, path) for text, path in found if (day := date_of(text))]


def names(folder: Path) -> list[str]:
    """Return the names of the files in a folder, in order; links are none, and no folder has none."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    except FileNotFoundError:
        return []


def of_day(days: Path, day: date) -> tuple[Path, Path]:
    """Return where a day may be: open and closed."""
    # Readers look at them in this order, since a day may be closed meanwhile; for a moment it is in both.
    path = days / f"{day}.csv"
    return path, path.with_name(f"{path.name}.gz")


def lines(path: Path) -> Iterator[bytes]:
    """Return a day's whole lines: none of a file that is not there, and what can be read of a damaged one."""
    for block in _blocks(path):
        yield from block.splitlines(keepends=True)


def by_hour(days: Path, day: date, hours: Collection[int]) -> dict[int, list[bytes]]:
    """Return a day's lines in these hours, with no regard to their order in the files."""
    wanted = {f"{day}T{hour:02}".encode(): hour for hour in hours}
    found: dict[int, dict[bytes, None]] = {hour: {} for hour in hours}
    for path in of_day(days, day):
        for block in _blocks(path):
            # Most blocks have nothing of a few hours: to find that out is quicker than to take them apart.
            if any(prefix in block for prefix in wanted):
                for line in block.splitlines(keepends=True):
                    hour = wanted.get(line[:_HOUR])
                    if hour is not None:
                        found[hour][line] = None
    return {hour: list(of_hour) for hour, of_hour in found.items()}


def stamp(days: Path, day: date) -> int | None:
    """Return what changes when a day's files do, and stays when they are closed; None if there are none."""
    return max((about.st_mtime_ns for about in _abouts(of_day(days, day)) if about), default=None)


def size(days: Path, day: date) -> int:
    """Return about how large a day's lines are; compressed ones are five times their file."""
    sizes = [about.st_size if about else 0 for about in _abouts(of_day(days, day))]
    return sizes[0] + 5 * sizes[1]


def close(path: Path) -> None:
    """Compress a day. One that was closed too early, by a clock that went back, gets the rest."""
    closed = path.with_name(f"{path.name}.gz")
    # A run that was killed before the file was removed has left the same lines in both. These are
    # hashes, since the lines of a large lab's day are some hundred megabytes.
    known = {hash(line) for line in lines(closed)}
    if not all(hash(line) in known for line in lines(path)):
        with (
            replacing(closed) as file,
            gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as target,
            io.BufferedWriter(target, 1 << 16) as buffered,
        ):
            buffered.writelines(lines(closed))
            buffered.writelines(line for line in lines(path) if hash(line) not in known)
        # As gzip does. It says when the clock was at that day.
        about = path.stat()
        os.utime(closed, ns=(about.st_atime_ns, about.st_mtime_ns))
    path.unlink()


def open_before(days: Path, today: date) -> Iterator[Path]:
    """Yield the files of the days before today that are not closed."""
    # A generator: it looks when those that are too old are gone.
    for day, path in files(days):
        if day < today and path.suffix == ".csv":
            yield path


def too_old(days: Path, now: datetime, keep_days: int) -> Iterator[Path]:
    """Yield the files of the days that are older than `keep_days`; none if the clock can't be trusted."""
    today = now.astimezone(UTC).date()
    found = files(days)
    if clock_is_trusted(found, now, keep_days):
        yield from (path for day, path in found if day < today - timedelta(days=keep_days))


def clock_is_trusted(of_days: Collection[tuple[date, Path]], now: datetime, keep_days: int) -> bool:
    """Tell whether the clock is believed when it says that something is old.

    One that is years ahead would make everything old. It is believed if the files of three days, or of all
    there are, have been written lately.
    """
    today = now.astimezone(UTC).date()
    others = [(day, path) for day, path in of_days if day != today]
    lately = now.timestamp() - 86400 * max(keep_days, _LATELY_DAYS)
    abouts = _abouts(path for _, path in others)
    written = {
        day for (day, _), about in zip(others, abouts, strict=True) if about and about.st_mtime > lately
    }
    return len(written) >= min(3, len({day for day, _ in others}))


def whole_lines(descriptor: int) -> int:
    """Return the size of a file without the torn line that it may end with."""
    size = os.fstat(descriptor).st_size
    end = size
    while end > 0:
        start = max(0, end - 65536)
        newline = os.pread(descriptor, end - start, start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


def date_of(text: str) -> date | None:
    """Read the day in a file's name."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _blocks(path: Path) -> Iterator[bytes]:
    """Return a file in blocks of whole lines, as far as it can be read."""
    if path.is_symlink() or not path.is_file():
        return
    rest = b""
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            # read1: what was read before a damaged place is not lost with it.
            while block := file.read1(_BLOCK):
                end = block.rfind(b"\n") + 1
                if end:
                    yield rest + block[:end]
                    rest = b""
                rest += block[end:]  # in the end torn, or just being written
    except (FileNotFoundError, EOFError, gzip.BadGzipFile, zlib.error):
        return


def _abouts(paths: Iterable[Path]) -> Iterator[os.stat_result | None]:
    """Yield what is known of each file; None of one that is not there, or no longer."""
    for path in paths:
        try:
            yield path.stat()
        except OSError:
            yield None
