"""A snapshot as data frames to work with: numbers are numbers, times are times, unknown is missing.

A type is the same whatever is in the column, and each has a missing value, so that a filter on any column
works: `gpus[gpus["name"].str.contains("A100")]`.
"""

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

    kinds: dict[Any, Any] = {int: "Int64", float: "Float64", datetime: pandas.DatetimeTZDtype("us", "UTC")}
    columns: dict[str, Any] = {}
    for name, base, _ in types(kind):
        values = [getattr(row, name) for row in rows]
        if name == "users":
            columns[name] = pandas.Series(values, dtype=object)
        else:
            columns[name] = pandas.array(values, dtype=kinds.get(base, "string"))
    return pandas.DataFrame(columns)
