"""The JSON Schema of snapshot.json, made of the model: it can't say anything else."""

from __future__ import annotations

from datetime import datetime
from typing import Any, get_args, get_origin

from webmon.model import Gpu, Host, Process
from webmon.store.document import SCHEMA
from webmon.store.table import types

_DAY = "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_TIME = {"type": "string", "pattern": f"^{_DAY}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$"}
_TYPES = {int: {"type": "integer"}, float: {"type": "number"}, str: {"type": "string"}, datetime: _TIME}


def schema() -> dict[str, Any]:
    """Return the schema. Columns that it does not name may come; those it names are there."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "webmon snapshot",
        "description": "All hosts, GPUs and processes at one moment; null is not known; times are UTC",
        "type": "object",
        "required": ["schema", "taken_at", "hosts", "gpus", "processes"],
        "properties": {
            "schema": {
                "const": SCHEMA,
                "description": "changes when a column goes or changes its meaning, not when one comes",
            },
            "taken_at": {**_TIME, "description": "when the hosts were asked"},
            "hosts": _table(Host),
            "gpus": _table(Gpu),
            "processes": _table(Process),
        },
    }


def _table(kind: Any) -> dict[str, Any]:
    columns = {name: _column(base, optional=optional) for name, base, optional in types(kind)}
    row = {"type": "object", "required": list(columns), "properties": columns}
    return {"type": "array", "items": row}


def _column(base: Any, *, optional: bool) -> dict[str, Any]:
    if get_origin(base) is tuple:
        column: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
    elif base in _TYPES:
        column = _TYPES[base]
    else:
        column = {"enum": list(get_args(base))}
    return {"anyOf": [column, {"type": "null"}]} if optional else column
