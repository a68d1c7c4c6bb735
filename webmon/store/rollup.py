"""Days summed up, so that a year is read in a moment: made of the history, and made again if they are gone.

    data/rollups/2026-11-17.csv           a day by host, model, state and user
    data/rollups/2026-11-17-hours.csv     its hours by model and state
    data/rollups/2026-11-17-gpus.csv.gz   its hours by GPU, state and user, for as long as the history is kept

The files of a day that is over have the time of the history's that they are made of: one that has changed
since is seen.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import math
import os
import re
import time
import zlib
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from webmon.errors import WebmonError
from webmon.store import days as day_files
from webmon.store import table
from webmon.store.files import clear_leftovers, make_folder, storing, write
from webmon.store.shares import HOUR, KEYS, SUMS, used

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence
    from pathlib import Path

    import pandas

TOTAL_KEYS = ["host", "name", "state", "user"]
HOUR_KEYS = ["hour", "name", "state"]

_GPUS, _GPU_COLUMNS = "-gpus.csv.gz", ["hour", "polled_hours", *KEYS, *SUMS]
_TOTALS, _TOTAL_COLUMNS = ".csv", ["day", "polled_hours", *TOTAL_KEYS, *SUMS]
_HOURS, _HOUR_COLUMNS = "-hours.csv", ["polled_hours", *HOUR_KEYS, *SUMS]

_DAY = 86400

_LEVEL = 3

_NAME = re.compile(r"(\d{4}-\d\d-\d\d)(-gpus\.csv\.gz|-hours\.csv|\.csv)")

# The lines of a closed day of this size, or of an open one ten times as large, are taken in four parts:
# in memory they take five times as much as in the file.
_MUCH = 8_000_000


class Rollups:
    """The sums of a data folder as of one moment, that of its last poll. What is missing is made.

    With `save` it is kept for the next time; if that fails, `unsaved` says why. After `limit_s` nothing more
    is made; `left_out` says for how many days.
    """

    def __init__(
        self, folder: Path, end: datetime, *, save: bool = False, limit_s: float | None = None
    ) -> None:
        """Look at no file yet."""
        self.end = int(end.timestamp())
        self.today = datetime.fromtimestamp(self.end, UTC).date()
        self.left_out = 0
        self.unsaved: WebmonError | None = None
        self._history = folder / "history"
        self._folder = folder / "rollups"
        self._save = save
        self._limit = None if limit_s is None else time.monotonic() + limit_s
        self._gpus: dict[date, pandas.DataFrame] = {}

    def gpus(self, day: date) -> pandas.DataFrame:
        """Return a day by hour, GPU, state and user, as far as there are polls of it."""
        if day not in self._gpus:
            self._gpus[day] = self._gpus_of(day)
        return self._gpus[day]

    def totals(self, days: Sequence[date]) -> pandas.DataFrame:
        """Return days by host, model, state and user."""
        return self._of_days(days, _TOTALS, _TOTAL_COLUMNS)

    def hours(self, days: Sequence[date]) -> pandas.DataFrame:
        """Return days by hour, model and state."""
        return self._of_days(days, _HOURS, _HOUR_COLUMNS)

    def totals_after(self, moment: int) -> pandas.DataFrame:
        """Return, by host, model, state and user, what is after a moment of a day that is over."""
        day = datetime.fromtimestamp(moment, UTC).date()
        hour = moment // HOUR * HOUR
        frame = self.gpus(day)
        if day_files.stamp(self._history, day) is not None:
            number = {moment % _DAY // HOUR}
            begun = used(self._lines(day, number), self._lines_before(day, number), after=moment)
        elif len(frame):
            # The polls themselves are not kept any more: as if the hour had been all alike, or the day.
            begun = _part(frame[frame["hour"] == hour], (hour + HOUR - moment) / HOUR)
        else:
            return _part(self.totals([day]), 1 - moment % _DAY / _DAY)
        return _totals(day, joined([begun, frame[frame["hour"] > hour]]))

    def known_days(self) -> list[date]:
        """Return the days that there is something of, in their order, none after today."""
        found = {day for day, _ in day_files.files(self._history)}
        found |= {day for day, _, _ in self._files()}
        return sorted(day for day in found if day <= self.today)

    def make_all(self) -> None:
        """Make what is missing of the days that are over, the newest first."""
        for day in reversed(self.known_days()):
            if day < self.today and self._valid(day, _TOTALS, _TOTAL_COLUMNS) is None:
                self._make(day)

    def remove_old(self, keep_days: int, keep_rollup_days: int) -> None:
        """Remove what is too old, if the clock can be trusted."""
        now = datetime.fromtimestamp(self.end, UTC)
        if not day_files.clock_is_trusted(self._history, now, keep_days):
            return
        for day, kind, path in self._files():
            keep = keep_days if kind == _GPUS else max(keep_days, keep_rollup_days)
            if day < self.today - timedelta(days=keep):
                with storing(path):
                    path.unlink(missing_ok=True)
        if self._folder.is_dir():
            with storing(self._folder):
                clear_leftovers(self._folder)

    def _of_days(self, days: Sequence[date], kind: str, columns: list[str]) -> pandas.DataFrame:
        """Return a table of several days, each of which is made if it is not there or can't be read."""
        contents = {day: self._valid(day, kind, columns) for day in days if day < self.today}
        try:
            # In one go: for a year that takes a tenth of the time.
            frames = [_parsed(b"".join(content or b"" for content in contents.values()), columns)]
        except ValueError:
            frames = []
            for day, content in contents.items():
                try:
                    frames.append(_parsed(content or b"", columns))
                except ValueError:
                    contents[day] = None
        missing = [day for day in days if contents.get(day) is None]
        for day in sorted(missing, reverse=True):
            made = self._make(day)
            if made is not None:
                frames.append(made[kind])
        return joined(frames)

    def _make(self, day: date) -> dict[str, pandas.DataFrame] | None:
        """Sum up a day, and save it if it is over."""
        stamp = day_files.stamp(self._history, day)
        if stamp is None and not self._path(day, _GPUS).exists():
            return None
        if day < self.today and self._limit is not None and time.monotonic() > self._limit:
            self.left_out += 1
            return None
        frame = self.gpus(day) if day == self.today else self._gpus_of(day)
        polled = frame[["hour", "polled_hours"]].drop_duplicates("hour")
        made = {
            _TOTALS: _totals(day, frame),
            _HOURS: summed(frame, HOUR_KEYS).merge(polled, on="hour"),
        }
        if self._save and day < self.today and stamp is not None:
            for kind, columns in ((_HOURS, _HOUR_COLUMNS), (_TOTALS, _TOTAL_COLUMNS)):
                self._write(self._path(day, kind), _text(made[kind], columns, header=True), stamp)
        return made

    def _gpus_of(self, day: date) -> pandas.DataFrame:
        if day == self.today:
            now = {self.end % _DAY // HOUR}
            begun = used(self._lines(day, now), self._lines_before(day, now), until=self.end)
            return joined([self._hours_over(day, self._saved(day), range(min(now))), begun])
        path, stamp = self._path(day, _GPUS), day_files.stamp(self._history, day)
        saved = self._saved(day)
        if stamp is None:
            return joined([saved])
        if saved is not None and _mtime(path) == stamp:
            return saved
        # What was saved while the day went on is good; if the day was over then, its history has changed.
        was_over = self._path(day, _TOTALS).exists()
        frame = self._hours_over(day, None if was_over else saved, range(24))
        if self._save and path.exists():
            with contextlib.suppress(OSError):  # it is made again
                os.utime(path, ns=(stamp, stamp))
        return frame

    def _hours_over(
        self, day: date, saved: pandas.DataFrame | None, hours: Collection[int]
    ) -> pandas.DataFrame:
        """Return these hours of a day: those that are saved, and the others made of the history."""
        is_new = saved is None
        saved = joined([]) if saved is None else saved
        # After a clock that went back, hours are saved that are yet to come.
        kept = saved[(saved["hour"] % _DAY // HOUR).isin(hours)]
        missing = set(hours) - {int(hour) % _DAY // HOUR for hour in kept["hour"].unique()}
        made = joined(
            used(self._lines(day, part), self._lines_before(day, part)) for part in self._parts(day, missing)
        )
        if self._save:
            self._write_gpus(day, kept, made, is_new=is_new or len(kept) < len(saved))
        return joined([kept, made])

    def _write_gpus(self, day: date, kept: pandas.DataFrame, made: pandas.DataFrame, *, is_new: bool) -> None:
        """Save the hours of a day; those that are there already stay as they are."""
        path = self._path(day, _GPUS)
        content = _text(joined([kept, made]) if is_new else made, _GPU_COLUMNS, header=is_new)
        if is_new or len(made):
            before = b"" if is_new else path.read_bytes()
            self._write(path, before + gzip.compress(content, _LEVEL, mtime=0))

    def _saved(self, day: date) -> pandas.DataFrame | None:
        try:
            content = gzip.decompress(self._path(day, _GPUS).read_bytes())
            return _parsed(_body(content, _GPU_COLUMNS), _GPU_COLUMNS)
        except (OSError, EOFError, zlib.error, ValueError):
            return None

    def _valid(self, day: date, kind: str, columns: list[str]) -> bytes | None:
        """Return the rows of a table if it is there, and of the history as it is."""
        path, stamp = self._path(day, kind), day_files.stamp(self._history, day)
        try:
            if stamp is not None and path.stat().st_mtime_ns != stamp:
                return None
            return _body(path.read_bytes(), columns)
        except (OSError, ValueError):
            return None

    def _lines(self, day: date, hours: Collection[int]) -> list[bytes]:
        by_hour = day_files.by_hour(self._history, day, hours)
        return [line for hour in sorted(by_hour) for line in by_hour[hour]]

    def _lines_before(self, day: date, hours: Collection[int]) -> list[bytes]:
        """Return the lines of the hours before these: of their times depends what a poll stands for."""
        before = {hour - 1 for hour in hours} - set(hours)
        lines = self._lines(day, before - {-1})
        return lines + self._lines(day - timedelta(days=1), {23}) if -1 in before else lines

    def _parts(self, day: date, hours: Collection[int]) -> list[set[int]]:
        """Return the hours in parts whose lines can be in memory together."""
        sizes = [
            path.stat().st_size * weight
            for path, weight in zip(day_files.of_day(self._history, day), (1, 10), strict=True)
            if path.exists()
        ]
        step = 24 if sum(sizes) < _MUCH else 4
        parts = [{hour for hour in hours if first <= hour < first + step} for first in range(0, 24, step)]
        return [part for part in parts if part]

    def _files(self) -> list[tuple[date, str, Path]]:
        try:
            names = sorted(os.listdir(self._folder))
        except OSError:
            return []
        matches = [match for name in names if (match := _NAME.fullmatch(name))]
        found = [(day_files.date_of(match[1]), match[2], self._folder / match[0]) for match in matches]
        return [(day, kind, path) for day, kind, path in found if day]

    def _path(self, day: date, kind: str) -> Path:
        return self._folder / f"{day}{kind}"

    def _write(self, path: Path, content: bytes, stamp: int | None = None) -> None:
        if self.unsaved is not None:
            return
        try:
            with storing(path):
                make_folder(self._folder)
                write(path, content, sync=False)
                if stamp is not None:
                    os.utime(path, ns=(stamp, stamp))
        except WebmonError as error:
            self.unsaved = error


def _totals(day: date, frame: pandas.DataFrame) -> pandas.DataFrame:
    polled = frame.drop_duplicates("hour")["polled_hours"].sum()
    return summed(frame, TOTAL_KEYS).assign(day=str(day), polled_hours=polled)


def _part(frame: pandas.DataFrame, share: float) -> pandas.DataFrame:
    sums = ["polled_hours", *SUMS]
    return frame.assign(**{name: frame[name] * share for name in sums})


def joined(frames: Iterable[pandas.DataFrame | None]) -> pandas.DataFrame:
    """Return the rows of several tables; none of no table."""
    import pandas

    some = [frame for frame in frames if frame is not None and len(frame)]
    if not some:
        return _parsed(b"", _GPU_COLUMNS)
    return some[0] if len(some) == 1 else pandas.concat(some, ignore_index=True)


def summed(frame: pandas.DataFrame, keys: list[str]) -> pandas.DataFrame:
    """Add up the rows that are alike in some columns."""
    return frame.groupby(keys, observed=True, sort=False)[SUMS].sum().reset_index()


def _parsed(rows: bytes, columns: list[str]) -> pandas.DataFrame:
    import pandas

    kinds: dict[str, Any] = {"index": "int64", **dict.fromkeys(["polled_hours", *SUMS], "float64")}
    kinds = {name: kinds.get(name, "category") for name in columns}
    if not rows:
        empty = {name: pandas.Series(dtype=kind) for name, kind in kinds.items()}
        return pandas.DataFrame(empty | ({"hour": pandas.Series(dtype="int64")} if "hour" in kinds else {}))
    frame = pandas.read_csv(
        io.BytesIO(rows),
        header=None,
        names=columns,
        dtype=kinds,
        keep_default_na=False,
        index_col=False,
    )
    texts = [name for name, kind in kinds.items() if kind == "category"]
    if frame[texts].isna().any(axis=None) or not (frame[["polled_hours", *SUMS]] < math.inf).all(axis=None):
        raise ValueError("damaged")
    if "hour" in columns:
        times = {text: int(table.time_of(text).timestamp()) for text in frame["hour"].cat.categories}
        frame["hour"] = frame["hour"].map(times).astype("int64")
    return frame


def _body(content: bytes, columns: list[str]) -> bytes:
    """Return the rows of a file of ours; ValueError if it is another one, or cut off."""
    header, _, rows = content.partition(b"\n")
    if header.decode("ascii", "replace") != ",".join(columns) or (rows and not rows.endswith(b"\n")):
        raise ValueError("not written by this webmon")
    return rows


def _text(frame: pandas.DataFrame, columns: list[str], *, header: bool = True) -> bytes:
    if "hour" in columns:
        hours = {
            hour: table.to_cell(datetime.fromtimestamp(hour, UTC)) for hour in frame["hour"].unique().tolist()
        }
        frame = frame.assign(hour=frame["hour"].map(hours))
    text = frame.to_csv(columns=columns, index=False, header=header, lineterminator="\n", float_format="%.7g")
    return text.encode("utf-8", "replace")


def _mtime(path: Path) -> int | None:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return None
