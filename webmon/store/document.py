"""Snapshot ↔ JSON, as the site publishes it and `--json` prints it. docs/data-format.md describes it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, get_args

from webmon.model import Gpu, Host, Process, Snapshot
from webmon.store.table import TIME_FORMAT, columns, time_of, types

if TYPE_CHECKING:
    from collections.abc import Callable

# Raised when a field changes its meaning or goes; a new field does not change it.
SCHEMA = 1

_KINDS: tuple[tuple[str, Any], ...] = (("hosts", Host), ("gpus", Gpu), ("processes", Process))


def to_json(snapshot: Snapshot) -> str:
    """Write a snapshot as JSON, a row a line; what is not known is null."""
    parts = [f'{{"schema": {SCHEMA}, "taken_at": {json.dumps(_value(snapshot.taken_at))}']
    for name, kind in _KINDS:
        names = columns(kind)
        rows = [
            json.dumps({name: _value(getattr(row, name)) for name in names}, ensure_ascii=False)
            for row in getattr(snapshot, name)
        ]
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
    return Snapshot(time_of(str(document.get("taken_at"))), **rows)


def _value(value: Any) -> Any:
    return value.astimezone(UTC).strftime(TIME_FORMAT) if isinstance(value, datetime) else value


def _read(row: Any, column: str, base: Any, optional: bool, clean: Callable[[str], str]) -> Any:
    if not isinstance(row, dict):
        raise ValueError(f"{str(row)[:40]!r} is no row")
    value = row.get(column)
    if value is None and optional:
        return None
    if column == "users" and isinstance(value, list) and all(isinstance(user, str) for user in value):
        return tuple(clean(user) for user in value)
    if base is datetime and isinstance(value, str):
        return time_of(value)
    if base is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if base is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if base is str and isinstance(value, str):
        return clean(value)
    if value in get_args(base):
        return value
    raise ValueError(f"{str(value)[:40]!r} is no {column}")
