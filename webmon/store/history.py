"""A row for each GPU and poll, appended to the file of its UTC day (`days`)."""

from __future__ import annotations

import csv
import io
import os
from collections import defaultdict
from datetime import UTC, date, datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from webmon.availability import memory_by_user
from webmon.errors import WebmonError
from webmon.model import State  # noqa: TC001 - its words are read from the annotation
from webmon.store import days as day_files
from webmon.store import table
from webmon.store.files import FILE_MODE, clear_leftovers, make_folder, storing

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator
    from io import FileIO

    from webmon.availability import Rules
    from webmon.model import Process, Snapshot

# Where the host starts in a line, after `2026-11-18T08:05:00Z,`.
_HOST = 21


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
        path, _ = day_files.of_day(days, snapshot.taken_at.astimezone(UTC).date())
        _append(path, samples(snapshot, rules))


def add(folder: Path, rows: Iterable[Sample]) -> int:
    """Add samples of any days, and return how many are new."""
    days = folder / "history"
    by_day: dict[date, list[Sample]] = defaultdict(list)
    for sample in rows:
        by_day[sample.time.astimezone(UTC).date()].append(sample)
    number = 0
    with storing(days):
        make_folder(days)
        for day, of_day in sorted(by_day.items()):
            known = set(read(folder, {sample.host for sample in of_day}, day))
            new = [sample for sample in dict.fromkeys(of_day) if sample not in known]
            number += len(new)
            if new:
                _append(day_files.of_day(days, day)[0], new)
    return number


def tidy(folder: Path, now: datetime, keep_days: int) -> None:
    """Remove the days that are too old, and close the others before today; one that fails stops none."""
    days = folder / "history"
    today = now.astimezone(UTC).date()
    work: Iterator[tuple[Callable[[Path], None], Path]] = chain(
        ((Path.unlink, path) for path in day_files.too_old(days, now, keep_days)),
        ((day_files.close, path) for path in day_files.open_before(days, today)),
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
    late, early = (
        list(parsed(day_files.lines(path), hosts)) for path in day_files.of_day(folder / "history", day)
    )
    return sorted(dict.fromkeys(early + late), key=lambda sample: sample.time)


def days(folder: Path) -> list[date]:
    """Return the days that there is something of, in their order."""
    return sorted({day for day, _ in day_files.files(folder / "history")})


def parsed(lines: Iterable[bytes], hosts: Collection[str] | None = None) -> Iterator[Sample]:
    """Read lines, of some hosts only if any are named; those that are damaged are left out."""
    makers = list(table.converters(Sample).values())
    wanted = None if hosts is None else {host.encode("utf-8", "replace") for host in hosts}
    for line in lines:
        # The time is of one length; to look for the host first saves most of the work.
        if wanted is not None and line[_HOST : line.find(b",", _HOST)] not in wanted:
            continue
        try:
            (row,) = csv.reader([line.decode("utf-8", "replace")], strict=True)
            # What a later webmon may have added comes after our columns.
            yield Sample(*(make(cell) for make, cell in zip(makers, row[: len(makers)], strict=True)))
        except (ValueError, csv.Error):
            continue


def _append(path: Path, rows: Iterable[Sample]) -> None:
    text = _written(rows)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, FILE_MODE)
    with open(descriptor, "r+b", buffering=0) as file:
        size = day_files.whole_lines(file.fileno())
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


def _written(rows: Iterable[Sample]) -> str:
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([table.to_cell(value) for value in row] for row in rows)
    return file.getvalue()
