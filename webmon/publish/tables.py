"""The snapshot as data: snapshot.json and its schema for programs, CSV for spreadsheets."""

from __future__ import annotations

import csv
import io
import json
import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from webmon.columns import harmless
from webmon.model import Gpu, Host, Process
from webmon.store import document, schema
from webmon.store.table import columns, to_cell

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from webmon.publish.lab import Lab
    from webmon.publish.look import Look

# What a spreadsheet may take for a formula: at the start of a cell, and of the next one where it splits
# lines at semicolons. The wide forms count as well in some languages.
_FORMULA = re.compile(r"(^|;)(?=[\s\"]*[=+\-@\uff1d\uff0b\uff0d\uff20])")


def tables(lab: Lab, _look: Look) -> Iterator[tuple[str, str]]:
    """Return the path and the text of each file."""
    snapshot = lab.snapshot
    yield "snapshot.json", document.to_json(snapshot)
    yield "snapshot.schema.json", json.dumps(schema.schema(), indent=1) + "\n"
    yield "hosts.csv", _csv(snapshot.hosts, Host)
    yield "gpus.csv", _csv(snapshot.gpus, Gpu)
    yield "processes.csv", _csv(snapshot.processes, Process)


def _csv(rows: Iterable[Any], kind: Any) -> str:
    """Write a table with the columns of the data folder's; no cell of it starts a formula."""
    names = columns(kind)
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return file.getvalue()


def _cell(value: Any) -> Any:
    """Return a cell; texts that could be a formula get an apostrophe before them, numbers are numbers."""
    if value is None or type(value) is int:
        return value
    cell = to_cell(value)
    return _defused(cell) if isinstance(value, str | tuple) else cell


@lru_cache(maxsize=4096)
def _defused(text: str) -> str:
    # Most texts of a lab stand in many rows.
    return _FORMULA.sub(r"\1'", harmless(text))
