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
from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from webmon.availability import memory_by_user
from webmon.errors import WebmonError
from webmon.model import State  # noqa: TC001 - its words are read from the annotation
from webmon.store import table
from webmon.store.files import FILE_MODE, clear_leftovers, make_folder, replacing, storing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from io import FileIO

    from webmon.availability import Rules
    from webmon.model import Process, Snapshot

# Where the host starts in a line, after `2026-11-18T08:05:00Z,`.
_HOST = 21

_LEVEL = 3  # takes half as long as the usual 6, and a tenth more room

_LATELY_DAYS = 7

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


def append(folder: Path, snapshot: Snapshot, rules: Rules) -> None:
    """Add a poll to its day."""
    days = folder / "history"
    with storing(days):
        make_folder(days)
        _append(days / f"{snapshot.taken_at.astimezone(UTC).date()}.csv", samples(snapshot, rules))


def tidy(folder: Path, now: datetime, keep_days: int) -> None:
    """Remove the days that are too old, and close the others before today; one that fails stops none."""
    days = folder / "history"
    today = now.astimezone(UTC).date()
    work: Iterator[tuple[Callable[[Path], None], Path]] = chain(
        ((Path.unlink, path) for path in _too_old(days, now, keep_days)),
        ((_close, path) for path in _open_before(days, today)),
    )
    failed: WebmonError | None = None
    with storing(days):
        for act, path in work:
            try:
                with storing(path):
                    act(path)
            except WebmonError as error:
                failed = failed or error
        clear_leftovers(days)
    if failed:
        raise failed


def samples(snapshot: Snapshot, rules: Rules) -> Iterator[Sample]:
    """Return what is kept of a snapshot."""
    processes = snapshot.processes_by_host()
    for host, gpus in snapshot.gpus_by_host().items():
        on_gpu: dict[str | None, list[Process]] = defaultdict(list)
        for process in processes.get(host, ()):
            on_gpu[process.gpu_uuid].append(process)
        for gpu in gpus:
            memory = memory_by_user(gpu, on_gpu.get(gpu.uuid, ()), rules)
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
                tuple(f"{user}={'' if mib is None else mib}" for user, mib in memory.items()),
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


def _close(path: Path) -> None:
    """Compress a day. One that was closed too early, by a clock that went back, gets the rest."""
    closed = path.with_name(f"{path.name}.gz")
    # A run that was killed before the file was removed has left the same lines in both. These are
    # hashes, since the lines of a large lab's day are some hundred megabytes.
    known = {hash(line) for line in _lines(closed)}
    if not all(hash(line) in known for line in _lines(path)):
        with (
            replacing(closed) as file,
            gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as target,
            io.BufferedWriter(target, 1 << 16) as buffered,
        ):
            buffered.writelines(_lines(closed))
            buffered.writelines(line for line in _lines(path) if hash(line) not in known)
        # As gzip does. It says when the clock was at that day.
        about = path.stat()
        os.utime(closed, ns=(about.st_atime_ns, about.st_mtime_ns))
    path.unlink()


def _open_before(days: Path, today: date) -> Iterator[Path]:
    # A generator: it looks when those that are too old are gone.
    for day, path in _files(days):
        if day < today and path.suffix == ".csv":
            yield path


def _too_old(days: Path, now: datetime, keep_days: int) -> Iterator[Path]:
    """Yield the files of the days that are older than `keep_days`; none if the clock can't be trusted.

    One that is years ahead would make everything old. It is believed if the files of three days, or of all
    there are, have been written lately.
    """
    today = now.astimezone(UTC).date()
    others = [(day, path) for day, path in _files(days) if day != today]
    lately = now.timestamp() - 86400 * max(keep_days, _LATELY_DAYS)
    written = {day for day, path in others if path.stat().st_mtime > lately}
    if len(written) >= min(3, len({day for day, _ in others})):
        yield from (path for day, path in others if day < today - timedelta(days=keep_days))


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
            # What a later webmon may have added comes after our columns.
            yield Sample(*(make(cell) for make, cell in zip(makers, row[: len(makers)], strict=True)))
        except (ValueError, csv.Error):
            continue  # a line that is damaged
