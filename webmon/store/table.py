"""Rows of the model ↔ cells of a CSV. The fields of a class, in order, are its columns."""

from __future__ import annotations

import csv
import io
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_type_hints

from webmon import model
from webmon.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path

Row = TypeVar("Row", model.Host, model.Gpu, model.Process)

TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"

_FETCH_AGAIN = "Run `webmon fetch` to write a new snapshot"


def columns(kind: type[Row]) -> list[str]:
    """Return the columns of a table."""
    return list(kind._fields)


def cells(rows: Sequence[Row], kind: type[Row]) -> dict[str, list[str]]:
    """Return the table's columns as texts; what is not known is an empty one."""
    return {name: [to_cell(getattr(row, name)) for row in rows] for name in columns(kind)}


def to_cell(value: Any) -> str:
    """Write a value as it stands in a CSV."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return ";".join(value)
    if isinstance(value, datetime):
        # As TIME_FORMAT has it, in a fifth of the time.
        return value.astimezone(UTC).isoformat(timespec="seconds")[:19] + "Z"
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)


def time_of(text: str) -> datetime:
    """Read a time as it stands in a CSV."""
    return datetime.strptime(text, TIME_FORMAT).replace(tzinfo=UTC)


def read(path: Path, kind: type[Row], hosts: Collection[str] | None = None) -> tuple[Row, ...]:
    """Read a table, or its lines of some hosts; DataError names the line that can't be read."""
    try:
        content = path.read_bytes()
        if content and not content.endswith(b"\n"):
            line = content.count(b"\n") + 1
            raise DataError(f"{path}:{line}: cut off", _FETCH_AGAIN)
        text = (content if hosts is None else _lines_of(content, hosts)).decode()
    except FileNotFoundError:
        raise DataError(f"{path} is missing", "Run `webmon fetch` to write a whole snapshot") from None
    except OSError as error:
        raise DataError(f"{path} can't be read: {error.strerror}", "Check its owner and mode") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DataError(f"{path}:{line}: not UTF-8 text", _FETCH_AGAIN) from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        return tuple(_rows(reader, kind))
    except (ValueError, csv.Error) as error:
        raise DataError(f"{path}:{max(1, reader.line_num)}: {error}", _FETCH_AGAIN) from None


def _lines_of(content: bytes, hosts: Collection[str]) -> bytes:
    """Return the header and the lines of some hosts: the host is the first column, and is never quoted."""
    header, *lines = content.splitlines(keepends=True) or [b""]
    wanted = {host.encode("utf-8", "replace") for host in hosts}
    return header + b"".join(line for line in lines if line.partition(b",")[0] in wanted)


def _rows(reader: Iterator[list[str]], kind: type[Row]) -> Iterator[Row]:
    makers = converters(kind)
    header = next(reader, [])
    if header[: len(makers)] != list(makers):
        raise ValueError("the columns are not those of webmon")
    for row in reader:
        if len(row) != len(header):
            raise ValueError(f"{len(row)} cells instead of {len(header)}")
        yield kind(*(make(cell) for make, cell in zip(makers.values(), row, strict=False)))


def converters(kind: type[Any]) -> dict[str, Callable[[str], Any]]:
    """Return what reads each column's cells."""
    return {name: _converter(base, name, optional=optional) for name, base, optional in types(kind)}


def types(kind: type[Row]) -> Iterator[tuple[str, Any, bool]]:
    """Return each column's type, and whether it may be not known."""
    hints = get_type_hints(kind, {**vars(model), "datetime": datetime})
    for name in columns(kind):
        inner = [arg for arg in get_args(hints[name]) if arg is not type(None)]
        optional = len(inner) < len(get_args(hints[name]))
        yield name, inner[0] if optional else hints[name], optional


def _converter(base: Any, name: str, *, optional: bool) -> Callable[[str], Any]:
    if name == "users":
        return lambda cell: tuple(cell.split(";")) if cell else ()
    make: Callable[[str], Any]
    if base is datetime:
        make = time_of
    elif base is int:
        make = int
    elif base is float:
        make = _number
    elif base is str:
        make = str
    else:
        make = _one_of(tuple(get_args(base)))
    if optional:
        return lambda cell: make(cell) if cell else None
    return make


def _number(cell: str) -> float:
    """Read a number; what is none, NaN and infinity, would be no JSON."""
    number = float(cell)
    if not math.isfinite(number):
        raise ValueError(f"{cell!r} is no number")
    return number


def _one_of(words: tuple[str, ...]) -> Callable[[str], str]:
    def make(cell: str) -> str:
        if cell not in words:
            raise ValueError(f"{cell!r} is none of {', '.join(words)}")
        return cell

    return make
