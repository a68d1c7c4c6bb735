"""Snapshot ↔ JSON, as the site publishes it and `--json` prints it. docs/data-format.md describes it."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any, get_args, get_origin

from webmon.model import Gpu, Host, Process, Snapshot
from webmon.store.table import columns, time_of, to_cell, types

if TYPE_CHECKING:
    from collections.abc import Callable

# Raised when a field changes its meaning or goes; a new field does not change it.
SCHEMA = 1

# No number of this world is larger. One that is would fail far from here, and so would NaN or infinity.
_TOO_LARGE = 2**63

# One for all: json.dumps would make a new one for every row.
_write = json.JSONEncoder(ensure_ascii=False).encode

_KINDS: tuple[tuple[str, Any], ...] = (("hosts", Host), ("gpus", Gpu), ("processes", Process))


def to_json(snapshot: Snapshot) -> str:
    """Write a snapshot as JSON, a row a line; what is not known is null."""
    parts = [f'{{"schema": {SCHEMA}, "taken_at": {json.dumps(_value(snapshot.taken_at))}']
    for name, kind in _KINDS:
        names = columns(kind)
        rows = [_write(dict(zip(names, map(_value, row), strict=True))) for row in getattr(snapshot, name)]
        parts.append(f'"{name}": [' + ",".join(f"\n{row}" for row in rows) + "]")
    return ",\n".join(parts) + "}\n"


def from_json(text: bytes, clean: Callable[[str], str]) -> Snapshot:
    """Read a snapshot; ValueError says what is wrong with it. `clean` makes each text safe to show."""
    document = json.loads(text)
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise ValueError(f"no snapshot with schema {SCHEMA}")
    rows: dict[str, tuple[Any, ...]] = {}
    for name, kind in _KINDS:
        if not isinstance(document.get(name), list):
            raise ValueError(f"it has no list of {name}")
        typed = list(types(kind))
        rows[name] = tuple(
            kind(**{column: _read(row, column, base, optional, clean) for column, base, optional in typed})
            for row in document[name]
        )
    _check_hosts_differ(rows["hosts"])
    return Snapshot(time_of(str(document.get("taken_at"))), **rows)


def _check_hosts_differ(hosts: tuple[Host, ...]) -> None:
    """Refuse a host that is there twice: each of its GPUs would be, too, and could be given twice."""
    seen: set[str] = set()
    for host in hosts:
        if host.host in seen:
            raise ValueError(f"host {host.host!r} is there twice")
        seen.add(host.host)


def _value(value: Any) -> Any:
    return to_cell(value) if isinstance(value, datetime) else value


def _read(row: Any, column: str, base: Any, optional: bool, clean: Callable[[str], str]) -> Any:
    if not isinstance(row, dict):
        raise ValueError(f"{str(row)[:40]!r} is no row")
    value = row.get(column)
    made = None if value is None else _made(value, base, clean)
    if made is None and not (optional and value in (None, "")):
        raise ValueError(f"{str(value)[:40]!r} is no {column}")
    return made


def _made(value: Any, base: Any, clean: Callable[[str], str]) -> Any:
    """Return what stands for this value in a row; None where it is nothing of its kind."""
    if base in (int, float):
        return base(value) if _is_number(value, base) else None
    if base in (str, datetime):
        if not isinstance(value, str):
            return None
        return (clean(value) or None) if base is str else _time(value)
    if get_origin(base) is tuple:
        is_texts = isinstance(value, list) and all(isinstance(text, str) for text in value)
        return tuple(clean(text) for text in value) if is_texts else None
    return value if value in get_args(base) else None


def _is_number(value: Any, base: Any) -> bool:
    kinds = (int, float) if base is float else (int,)
    return type(value) in kinds and -_TOO_LARGE < value < _TOO_LARGE


def _time(text: str) -> datetime | None:
    try:
        return time_of(text)
    except ValueError:
        return None
