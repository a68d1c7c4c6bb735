"""A row for each GPU and poll, in a file for each UTC day: appended, closed with gzip, removed when old.

    data/history/2026-11-17.csv.gz   closed
    data/history/2026-11-18.csv      today

A run that is killed in the middle of a line leaves a torn one; readers pass over it, and the next run
takes it away.
"""

from __future__ import annotations

import csv
import gzip
import io
import os
import re
import zlib
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from webmon.availability import is_ignored
from webmon.model import State  # noqa: TC001 - its words are read from the annotation
from webmon.store import table
from webmon.store.files import FILE_MODE, clear_leftovers, make_folder, replacing, storing

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from io import FileIO
    from pathlib import Path

    from webmon.availability import Rules
    from webmon.model import Process, Snapshot

# Where the host starts in a line, after `2026-11-18T08:05:00Z,`.
_HOST = 21

_LEVEL = 3  # takes half as long as the usual 6, and a tenth more room

_DAY = re.compile(r"(\d{4}-\d\d-\d\d)\.csv(\.gz)?")


class Sample(NamedTuple):
    """What is kept of one GPU in one poll. Users come with their memory: `alice=6400`, or `bob=`."""

    time: datetime
    host: str
    index: int  # type: ignore[assignment] # a tuple has a method of that name
    uuid: str | None = None
    name: str | None = None
    state: State = "unknown"
    utilization_pct: int | None = None
    memory_used_mib: int | None = None
    memory_total_mib: int | None = None
    power_w: float | None = None
    temperature_c: int | None = None
    users: tuple[str, ...] = ()


def append(folder: Path, snapshot: Snapshot, rules: Rules, keep_days: int) -> None:
    """Add a poll to its day, close the days before, and remove those that are too old."""
    days = folder / "history"
    today = snapshot.taken_at.astimezone(UTC).date()
    with storing(days):
        make_folder(days)
        _append(days / f"{today}.csv", samples(snapshot, rules))
        _close(days, today)
        _remove_old(days, today, keep_days)
        clear_leftovers(days)


def samples(snapshot: Snapshot, rules: Rules) -> Iterator[Sample]:
    """Return what is kept of a snapshot."""
    processes = snapshot.processes_by_host()
    for host, gpus in snapshot.gpus_by_host().items():
        memory = _memory_by_user(processes.get(host, ()), rules)
        for gpu in gpus:
            yield Sample(
                snapshot.taken_at,
                host,
                gpu.index,
                gpu.uuid,
                gpu.name,
                gpu.state,
                gpu.utilization_pct,
                gpu.memory_used_mib,
                gpu.memory_total_mib,
                gpu.power_w,
                gpu.temperature_c,
                tuple(f"{user}={memory.get((gpu.uuid, user), '')}" for user in gpu.users),
            )


def read(folder: Path, hosts: Collection[str], day: date) -> list[Sample]:
    """Return a day's samples of some hosts, in the order of their times, without damaged lines."""
    path = folder / "history" / f"{day}.csv"
    # In this order, since a day may be closed meanwhile; and then, for a moment, it is in both.
    late = list(_parsed(_lines(path), hosts))
    early = list(_parsed(_lines(path.with_name(f"{path.name}.gz")), hosts))
    return sorted(dict.fromkeys(early + late), key=lambda sample: sample.time)


def days(folder: Path) -> list[date]:
    """Return the days that there is something of, in their order."""
    return sorted({day for day, _ in _files(folder / "history")})


def _memory_by_user(processes: Iterable[Process], rules: Rules) -> dict[tuple[str | None, str], int]:
    """Return the memory that each user has on each GPU, where that of every process is known."""
    memory: dict[tuple[str | None, str], int] = {}
    unknown: set[tuple[str | None, str]] = set()
    for process in processes:
        if process.user is None or is_ignored(process, rules):
            continue
        key = (process.gpu_uuid, process.user)
        if process.memory_mib is None:
            unknown.add(key)
        else:
            memory[key] = memory.get(key, 0) + process.memory_mib
    return {key: mib for key, mib in memory.items() if key not in unknown}


def _append(path: Path, rows: Iterable[Sample]) -> None:
    text = _written(rows)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    with open(descriptor, "r+b", buffering=0) as file:
        size = _whole_lines(file.fileno())
        file.truncate(size)
        if size == 0:
            os.fchmod(file.fileno(), FILE_MODE)
            text = ",".join(Sample._fields) + "\n" + text
        try:
            _write(file, text.encode("utf-8", "replace"))
        except BaseException:
            file.truncate(size)  # no half of a poll
            raise


def _write(file: FileIO, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) or 0 :]
    os.fsync(file.fileno())


def _whole_lines(descriptor: int) -> int:
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


def _written(rows: Iterable[Sample]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([table.to_cell(value) for value in row] for row in rows)
    return file.getvalue()


def _close(days: Path, today: date) -> None:
    """Compress the days before. One that was closed too early, by a clock that went back, gets the rest."""
    for day, path in _files(days):
        if day < today and path.suffix == ".csv":
            _compress(path, path.with_name(f"{path.name}.gz"))
            path.unlink()


def _compress(path: Path, closed: Path) -> None:
    # A run that was killed before the file was removed has left the same lines in both. These are
    # hashes, since the lines of a large lab's day are some hundred megabytes.
    known = {hash(line) for line in _lines(closed)}
    if all(hash(line) in known for line in _lines(path)):
        return
    with (
        replacing(closed) as file,
        gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as target,
        io.BufferedWriter(target, 1 << 16) as buffered,
    ):
        buffered.writelines(_lines(closed))
        buffered.writelines(line for line in _lines(path) if hash(line) not in known)


def _remove_old(days: Path, today: date, keep_days: int) -> None:
    """Remove what is too old, as of the last day before this one: the clock may have jumped."""
    files = _files(days)
    before = [day for day, _ in files if day < today]
    for day, path in files:
        if day < max(before, default=today) - timedelta(days=keep_days - 1):
            path.unlink()


def _files(days: Path) -> list[tuple[date, Path]]:
    """Return the days' files, in their order; links, folders and other names are not ours."""
    try:
        with os.scandir(days) as entries:
            names = sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))
    except FileNotFoundError:
        return []
    found = [(match[1], days / name) for name in names if (match := _DAY.fullmatch(name))]
    return [(day, path) for text, path in found if (day := _date(text))]


def _date(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _lines(path: Path) -> Iterator[bytes]:
    """Return a day's whole lines: none of a file that is not there, and what can be read of a damaged one."""
    if path.is_symlink() or not path.is_file():
        return
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    return  # torn, or just being written
                yield line
    except (FileNotFoundError, EOFError, gzip.BadGzipFile, zlib.error):
        return


def _parsed(lines: Iterable[bytes], hosts: Collection[str]) -> Iterator[Sample]:
    makers = list(table.converters(Sample).values())
    wanted = {host.encode("utf-8", "replace") for host in hosts}
    for line in lines:
        # The time is of one length; to look for the host first saves most of the work.
        if line[_HOST : line.find(b",", _HOST)] not in wanted:
            continue
        try:
            (row,) = csv.reader([line.decode("utf-8", "replace")], strict=True)
            yield Sample(*(make(cell) for make, cell in zip(makers, row, strict=True)))
        except (ValueError, csv.Error):
            continue  # a line that is damaged
