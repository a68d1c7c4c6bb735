"""A snapshot as data frames to work with: numbers are numbers, times are times, unknown is missing."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from webmon.model import Gpu, Host, Process
from webmon.store.table import types

if TYPE_CHECKING:
    import pandas

    from webmon.model import Snapshot


def typed(snapshot: Snapshot) -> dict[str, pandas.DataFrame]:
    """Return `hosts`, `gpus` and `processes`, with the columns of the CSVs."""
    return {
        "hosts": _frame(snapshot.hosts, Host),
        "gpus": _frame(snapshot.gpus, Gpu),
        "processes": _frame(snapshot.processes, Process),
    }


def _frame(rows: Any, kind: Any) -> pandas.DataFrame:
    import pandas

    columns: dict[str, Any] = {}
    for name, base, _ in types(kind):
        values = [getattr(row, name) for row in rows]
        if base is int:
            columns[name] = pandas.array(values, dtype="Int64")
        elif base is float:
            columns[name] = pandas.array(values, dtype="Float64")
        elif base is datetime:
            columns[name] = pandas.to_datetime(pandas.Series(values, dtype=object), utc=True)
        else:
            columns[name] = pandas.Series(values, dtype=object)
    return pandas.DataFrame(columns)
