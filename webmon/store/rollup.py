"""Days summed up, so that a year is read in a moment: made of the history, and made again if they are gone.

    data/rollups/2026-11-17.csv           a day by host, model, state and user
    data/rollups/2026-11-17-hours.csv     its hours by model and state
    data/rollups/2026-11-17-gpus.csv.gz   its hours by GPU, state and user, for as long as the history is kept

The files of a day that is over have the time of the history's that they are made of: one that has changed
since is seen. While a day goes on, its hours that are over are kept, in a file as old as can be.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import time
import zlib
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from webmon.errors import DataError, WebmonError
from webmon.store import days as day_files
from webmon.store.files import clear_leftovers, make_folder, replacing, storing
from webmon.store.shares import HOUR, used
from webmon.store.sums import (
    GPU_COLUMNS,
    HOUR_COLUMNS,
    TOTAL_COLUMNS,
    body,
    hours,
    joined,
    parsed,
    part,
    text,
    totals,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    import pandas

_GPUS, _TOTALS, _HOURS = "-gpus.csv.gz", ".csv", "-hours.csv"
_COLUMNS = {_HOURS: HOUR_COLUMNS, _TOTALS: TOTAL_COLUMNS}

_DAY = 86400

_LEVEL = 3

_NAME = re.compile(r"(\d{4}-\d\d-\d\d)(-gpus\.csv\.gz|-hours\.csv|\.csv)")

# The time of the file of a day that goes on.
_GOES_ON = 0

# A day that is larger is read four hours at a time: its lines take five times as much in memory.
_MUCH = 40_000_000


class _Saved(NamedTuple):
    """The hours of a day as they were saved, and the file that they stand in."""

    frame: pandas.DataFrame
    content: bytes
    stamp: int


class Rollups:
    """The sums of a data folder as of one moment, that of its last poll. What is missing is made.

    With `save` it is kept for the next time; if that fails, or if a day can't be read, `unsaved` says why.
    After `limit_s` nothing more is made; `left_out` says for how many days.
    """

    def __init__(
        self, folder: Path, end: datetime, *, save: bool = False, limit_s: float | None = None
    ) -> None:
        """Look at no file yet."""
        self.end = int(end.timestamp())
        self.today = datetime.fromtimestamp(self.end, UTC).date()
        self.unsaved: WebmonError | None = None
        self._history = folder / "history"
        self._folder = folder / "rollups"
        self._save = save
        self._limit = None if limit_s is None else time.monotonic() + limit_s
        self._late: set[date] = set()
        self._gpus: dict[date, pandas.DataFrame] = {}
        self._made: dict[date, dict[str, pandas.DataFrame]] = {}

    @property
    def left_out(self) -> int:
        """Return how many days were not summed up for want of time."""
        return len(self._late)

    def gpus(self, day: date) -> pandas.DataFrame:
        """Return a day by hour, GPU, state and user, as far as there are polls of it."""
        if day not in self._gpus:
            self._gpus[day] = joined([self._gpus_of(day)])
        return self._gpus[day]

    def totals(self, days: Sequence[date]) -> pandas.DataFrame:
        """Return days by host, model, state and user."""
        return self._of_days(days, _TOTALS)

    def hours(self, days: Sequence[date]) -> pandas.DataFrame:
        """Return days by hour, model and state."""
        return self._of_days(days, _HOURS)

    def totals_after(self, moment: int) -> pandas.DataFrame:
        """Return, by host, model, state and user, what is after a moment of a day that is over."""
        day = datetime.fromtimestamp(moment, UTC).date()
        hour = moment // HOUR * HOUR
        frame = self.gpus(day)
        if not len(frame):
            return part(self.totals([day]), 1 - moment % _DAY / _DAY)
        # If the polls themselves are not kept any more: as if the hour had been all alike; or above, the day.
        begun = part(frame[frame["hour"] == hour], (hour + HOUR - moment) / HOUR)
        if day_files.stamp(self._history, day) is not None:
            with contextlib.suppress(OSError):
                begun = self._begun(day, moment)
                hour += HOUR
        return totals(day, joined([begun, frame[frame["hour"] > hour]]))

    def known_days(self) -> list[date]:
        """Return the days that there is something of, in their order, none after today."""
        try:
            found = {day for day, _ in day_files.files(self._history)}
        except OSError as error:
            raise _unreadable(error, self._history) from None
        found |= {day for day, _, _ in self._files()}
        return sorted(day for day in found if day <= self.today)

    def make_all(self) -> None:
        """Make what is missing of the days that are over, the newest first."""
        for day in reversed(self.known_days()):
            if day < self.today and not all(self._is_current(day, kind) for kind in _COLUMNS):
                self._make(day)

    def days_without_history(self) -> set[date]:
        """Return the days of which the sums are all that is left."""
        return {day for day, _, _ in self._files()} - {day for day, _ in day_files.files(self._history)}

    def forget(self, days: Collection[date]) -> None:
        """Have days summed up anew: of one that goes on, hours that are over have got more samples."""
        for day in days:
            with storing(self._path(day, _GPUS)):
                self._path(day, _GPUS).unlink(missing_ok=True)

    def remove_old(self, keep_days: int, keep_rollup_days: int) -> None:
        """Remove what is too old, if the clock can be trusted."""
        now = datetime.fromtimestamp(self.end, UTC)
        files = [(day, path) for day, _, path in self._files()]
        if not day_files.clock_is_trusted([*day_files.files(self._history), *files], now, keep_days):
            return
        for day, kind, path in self._files():
            keep = keep_days if kind == _GPUS else max(keep_days, keep_rollup_days)
            if day < self.today - timedelta(days=keep):
                with storing(path):
                    path.unlink(missing_ok=True)
        if self._folder.is_dir():
            with storing(self._folder):
                clear_leftovers(self._folder)

    def _of_days(self, days: Sequence[date], kind: str) -> pandas.DataFrame:
        """Return a table of several days, each of which is made if it is not there or can't be read."""
        columns = _COLUMNS[kind]
        saved = [day for day in days if day < self.today and day not in self._made]
        contents = {day: self._valid(day, kind) for day in saved}
        try:
            # In one go: for a year that takes a tenth of the time.
            frames = [parsed(b"".join(content or b"" for content in contents.values()), columns)]
        except ValueError:
            frames = []
            for day, content in contents.items():
                try:
                    frames.append(parsed(content or b"", columns))
                except ValueError:
                    contents[day] = None
        missing = [day for day in days if contents.get(day) is None]
        made = [self._make(day) for day in sorted(missing, reverse=True)]
        return joined([*frames, *(tables[kind] for tables in made if tables)], columns)

    def _make(self, day: date) -> dict[str, pandas.DataFrame] | None:
        """Sum up a day, and save it if it is over; None if there is nothing of it, or no time."""
        if day in self._made:
            return self._made[day]
        stamp = self._stamp(day)
        if stamp is None and not self._path(day, _GPUS).exists():
            return None
        if day < self.today and self._limit is not None and time.monotonic() > self._limit:
            self._late.add(day)
            return None
        frame = self.gpus(day) if day == self.today else self._gpus_of(day)
        if frame is None:
            return None
        self._made[day] = {_TOTALS: totals(day, frame), _HOURS: hours(frame)}
        if day < self.today and stamp is not None:
            for kind, columns in _COLUMNS.items():
                self._write(day, kind, text(self._made[day][kind], columns), stamp)
        return self._made[day]

    def _gpus_of(self, day: date) -> pandas.DataFrame | None:
        """Return what there is of a day; None if that can't be read."""
        stamp, saved = self._stamp(day), self._saved(day)
        try:
            if day == self.today:
                now = self.end % _DAY // HOUR
                over = self._hours_over(day, saved, range(now), _GOES_ON)
                return joined([over, self._begun(day)])
            if stamp is None or (saved and saved.stamp == stamp):
                return saved.frame if saved else None
            return self._hours_over(day, saved, range(24), stamp)
        except OSError as error:
            self.unsaved = self.unsaved or _unreadable(error, self._history)
            return None

    def _begun(self, day: date, after: int | None = None) -> pandas.DataFrame:
        """Return what there is of one hour: after a moment, or up to the end."""
        if after is None:
            return used(*self._lines(day, {self.end % _DAY // HOUR}), until=self.end)
        number = after % _DAY // HOUR
        # The first poll of the next hour may stand for some of the time before the moment.
        return used(*self._lines(day, {number, min(number + 1, 23)}), after=after)

    def _hours_over(
        self, day: date, saved: _Saved | None, numbers: Collection[int], stamp: int
    ) -> pandas.DataFrame:
        """Return these hours of a day: those that were saved while it went on, and the others made."""
        # If it was over before, or the clock went back, its hours may have got more polls since.
        is_good = saved is not None and saved.stamp == _GOES_ON
        kept = joined([saved.frame if saved and is_good else None])
        kept_until = max((hour % _DAY // HOUR for hour in kept["hour"].unique().tolist()), default=-1)
        if kept_until >= 0 and kept_until not in numbers:
            is_good, kept, kept_until = False, joined([]), -1
        # Hours without polls that are before one that was kept were looked for then.
        missing = {number for number in numbers if number > kept_until}
        made = joined(used(*self._lines(day, some)) for some in self._parts(day, missing))
        before = saved.content if saved and is_good else b""
        if self._save and (len(made) or not saved or saved.stamp != stamp):
            rows = text(made, GPU_COLUMNS, header=not before)
            self._write(day, _GPUS, before + gzip.compress(rows, _LEVEL, mtime=0), stamp)
        return joined([kept, made])

    def _saved(self, day: date) -> _Saved | None:
        path = self._path(day, _GPUS)
        try:
            with path.open("rb") as file:
                stamp, content = os.fstat(file.fileno()).st_mtime_ns, file.read()
            return _Saved(parsed(body(gzip.decompress(content), GPU_COLUMNS), GPU_COLUMNS), content, stamp)
        except (OSError, EOFError, zlib.error, ValueError, OverflowError):
            return None

    def _valid(self, day: date, kind: str) -> bytes | None:
        """Return the rows of a table if it is there, and of the history as it is."""
        try:
            content = self._path(day, kind).read_bytes() if self._is_current(day, kind) else b""
            return body(content, _COLUMNS[kind])
        except (OSError, ValueError):
            return None

    def _is_current(self, day: date, kind: str) -> bool:
        """Tell whether a table is of the history as it is, or of one that is not kept any more."""
        stamp = self._stamp(day)
        try:
            return self._path(day, kind).stat().st_mtime_ns == stamp or stamp is None
        except OSError:
            return stamp is None

    def _stamp(self, day: date) -> int | None:
        """Return what changes when the history of a day does, or of the one before; None if there is none."""
        # What the first poll of a day stands for depends on the last one before.
        stamp = day_files.stamp(self._history, day)
        if stamp is None:
            return None
        return max(stamp, day_files.stamp(self._history, day - timedelta(days=1)) or 0)

    def _lines(self, day: date, numbers: Collection[int]) -> tuple[list[bytes], list[bytes]]:
        """Return the lines of these hours, and those before them: by their times a poll is weighed."""
        before = {hour - 1 for hour in numbers} - set(numbers)
        by_hour = day_files.by_hour(self._history, day, {*numbers, *before} - {-1})
        if -1 in before:
            with contextlib.suppress(OSError):  # a day that can't be read holds up no other
                by_hour[-1] = day_files.by_hour(self._history, day - timedelta(days=1), {23})[23]
        lines, earlier = (
            [line for hour in sorted(some) for line in by_hour.get(hour, ())] for some in (numbers, before)
        )
        return lines, earlier

    def _parts(self, day: date, numbers: Collection[int]) -> list[set[int]]:
        """Return the hours in parts whose lines can be in memory together."""
        step = 24 if day_files.size(self._history, day) < _MUCH else 4
        parts = [{hour for hour in numbers if first <= hour < first + step} for first in range(0, 24, step)]
        return [some for some in parts if some]

    def _files(self) -> list[tuple[date, str, Path]]:
        """Return our files; links, folders and other names are not ours."""
        try:
            names = day_files.names(self._folder)
        except OSError:  # it is a help only; if nothing can be written there, that is said
            return []
        matches = [match for name in names if (match := _NAME.fullmatch(name))]
        found = [(day_files.date_of(match[1]), match[2], self._folder / match[0]) for match in matches]
        return [(day, kind, path) for day, kind, path in found if day]

    def _path(self, day: date, kind: str) -> Path:
        return self._folder / f"{day}{kind}"

    def _write(self, day: date, kind: str, content: bytes, stamp: int) -> None:
        if not self._save:
            return
        path = self._path(day, kind)
        try:
            with storing(path):
                make_folder(self._folder)
                with replacing(path, sync=False) as file:
                    file.write(content)
                    file.flush()
                    os.utime(file.fileno(), ns=(stamp, stamp))
        except WebmonError as error:
            self.unsaved = self.unsaved or error
            self._save = False


def _unreadable(error: OSError, folder: Path) -> DataError:
    what = error.filename or folder
    return DataError(f"{what} can't be read: {error.strerror}", "Check its owner and mode")
