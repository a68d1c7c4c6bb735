"""`load_data.csv` of Web-GPU-Monitor → samples. It holds one poll, and the file's time is that of the poll.

Its columns are an index without a name, load, gpu_idx, gpu_name, gpu_uuid, hostname and username. Copies of
it that were changed to have more, such as the memory or a time, are understood by the names of nvidia-smi.
"""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from webmon.clean import clean
from webmon.errors import DataError
from webmon.store.history import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# What was free there: less load than this, no more of the memory than that, and no user.
_FREE_LOAD_PCT = 5
_FREE_MEMORY_PCT = 2

_NAMES = {
    "time": ("time", "timestamp", "date"),
    "host": ("hostname", "host"),
    "index": ("gpu_idx", "gpu_index", "index"),
    "uuid": ("gpu_uuid", "uuid"),
    "name": ("gpu_name", "name"),
    "load": ("load", "utilization.gpu", "utilization_gpu", "utilization_pct"),
    "used": ("memory.used", "memory_used", "memory_used_mib", "used_memory"),
    "total": ("memory.total", "memory_total", "memory_total_mib", "total_memory"),
    "power": ("power.draw", "power_draw", "power_w"),
    "temperature": ("temperature.gpu", "temperature_gpu", "temperature_c", "temperature"),
    "users": ("username", "usernames", "user", "users"),
}
_NUMBER = re.compile(r"(-?\d{1,9}(?:\.\d{1,15})?) ?(?:[%A-Za-z]{1,3})?", re.ASCII)

_FULL_PCT = 100
_LARGEST_INDEX = 1_000_000

_NEEDED = ("host", "index")
_WANTED = "It is to be a load_data.csv, as Web-GPU-Monitor's fetch_data.py writes it"

_MOST_BYTES = 1_000_000_000


def read(path: Path, time: datetime | None = None) -> list[Sample]:
    """Return the samples of a file, as of a time, or of the file's own; DataError if it is another kind."""
    try:
        about = path.stat()
        content = path.read_bytes() if about.st_size <= _MOST_BYTES else b""
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror}", "Check its name, owner and mode") from None
    moment = time or datetime.fromtimestamp(int(about.st_mtime), UTC)
    lines = content.decode("utf-8-sig", "replace").splitlines()
    rows = csv.reader(lines)
    try:
        columns = _columns(next(rows, []))
        missing = [_NAMES[name][0] for name in _NEEDED if name not in columns]
        if missing:
            raise DataError(f"{path} has no column {' and no column '.join(missing)}", _WANTED)
        return [_sample(row, columns, moment, f"{path}:{rows.line_num}") for row in rows if any(row)]
    except csv.Error as error:
        raise DataError(f"{path}:{rows.line_num}: {error}", _WANTED) from None


def _columns(header: list[str]) -> Mapping[str, int]:
    """Return where each column is that we know, by its name without the unit: `memory.used [MiB]`."""
    plain = [re.sub(r"\s*\[.*\]", "", name).strip().lower() for name in header]
    return {
        ours: plain.index(name) for ours, names in _NAMES.items() for name in reversed(names) if name in plain
    }


def _sample(row: list[str], columns: Mapping[str, int], moment: datetime, where: str) -> Sample:
    def cell(name: str) -> str:
        place = columns.get(name)
        return "" if place is None or place >= len(row) else row[place].strip()

    try:
        load, used, total = (_number(cell(name)) for name in ("load", "used", "total"))
        load = load if load is not None and 0 <= load <= _FULL_PCT else None
        users = tuple(f"{user}=" for user in _users(cell("users")))
        is_full = used is not None and total and 100 * used / total > _FREE_MEMORY_PCT
        is_free = load is not None and load < _FREE_LOAD_PCT and not users and not is_full
        return Sample(
            time=_time(cell("time")) or moment,
            host=_host(cell("host")),
            index=_index(cell("index")),
            uuid=_text(cell("uuid")) or None,
            name=_text(cell("name")) or None,
            state="free" if is_free else "unknown" if load is None and not users else "busy",
            utilization_pct=_whole(load),
            memory_used_mib=_whole(used),
            memory_total_mib=_whole(total),
            power_w=_number(cell("power")),
            temperature_c=_whole(_number(cell("temperature"))),
            users=users,
        )
    except ValueError as error:
        raise DataError(f"{where}: {error}", "Mend the line, or take it out") from None


def _users(text: str) -> Iterator[str]:
    """Read `alice`, `alice, bob` or `['alice', 'bob']`; pandas writes nobody as -1 or nan."""
    names = (_text(name.strip(" '\"")) for name in re.split(r"[,;\s]+", text.strip("[](){} ")))
    yield from sorted({name for name in names if name and name.lower() not in ("-1", "nan", "none")})


def _text(text: str) -> str:
    """Take what would be something else in our own files out of a text."""
    return clean(text).replace(",", " ").replace(";", " ")[:128].strip()


def _host(text: str) -> str:
    if host := _text(text):
        return host
    raise ValueError("no host name")


def _index(text: str) -> int:
    number = _number(text)
    if number is None or not 0 <= number <= _LARGEST_INDEX:
        raise ValueError(f"{text!r} is no number of a GPU")
    return int(number)


def _number(text: str) -> float | None:
    """Read `97`, `97 %` or `8018 MiB`; what is no number, or one that can't be, is not known."""
    match = _NUMBER.fullmatch(text)
    return float(match[1]) if match else None


def _whole(number: float | None) -> int | None:
    return None if number is None else round(number)


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).astimezone(UTC).replace(microsecond=0)
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is no time: write 2026-11-18T08:05:00Z") from None
