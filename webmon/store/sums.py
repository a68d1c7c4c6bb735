"""The tables of the rollups: their columns, and data frame ↔ text."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from webmon.store import table
from webmon.store.samples import read_csv
from webmon.store.shares import KEYS, SUMS

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import date

    import pandas

TOTAL_KEYS = ["host", "name", "state", "user"]
HOUR_KEYS = ["hour", "name", "state"]

GPU_COLUMNS = ["hour", "polled_hours", *KEYS, *SUMS]
TOTAL_COLUMNS = ["day", "polled_hours", *TOTAL_KEYS, *SUMS]
HOUR_COLUMNS = ["polled_hours", *HOUR_KEYS, *SUMS]

# What a share of a row is a share of.
_PARTS = ["polled_hours", *SUMS]


def totals(day: date, gpus: pandas.DataFrame) -> pandas.DataFrame:
    """Return a day by host, model, state and user."""
    polled = gpus.drop_duplicates("hour")["polled_hours"].sum()
    return summed(gpus, TOTAL_KEYS).assign(day=str(day), polled_hours=polled)


def hours(gpus: pandas.DataFrame) -> pandas.DataFrame:
    """Return a day by hour, model and state."""
    polled = gpus[["hour", "polled_hours"]].drop_duplicates("hour")
    return summed(gpus, HOUR_KEYS).merge(polled, on="hour")


def part(frame: pandas.DataFrame, share: float) -> pandas.DataFrame:
    """Return so much of all that is in it."""
    return frame.assign(**{name: frame[name] * share for name in _PARTS})


def joined(frames: Iterable[pandas.DataFrame | None], columns: list[str] = GPU_COLUMNS) -> pandas.DataFrame:
    """Return the rows of several tables; none, with these columns, of no table."""
    import pandas

    some = [frame for frame in frames if frame is not None and len(frame)]
    if not some:
        return parsed(b"", columns)
    return some[0] if len(some) == 1 else pandas.concat(some, ignore_index=True)


def summed(frame: pandas.DataFrame, keys: list[str]) -> pandas.DataFrame:
    """Add up the rows that are alike in some columns."""
    return frame.groupby(keys, observed=True, sort=False)[SUMS].sum().reset_index()


def parsed(rows: bytes, columns: list[str]) -> pandas.DataFrame:
    """Read the rows of a table; ValueError if one is damaged."""
    import pandas

    kinds = {"index": "int64", **dict.fromkeys(_PARTS, "float64")}
    kinds = {name: kinds.get(name, "category") for name in columns}
    if not rows:
        empty = {name: pandas.Series(dtype=kind) for name, kind in kinds.items()}
        return pandas.DataFrame(empty | ({"hour": pandas.Series(dtype="int64")} if "hour" in kinds else {}))
    texts = [name for name, kind in kinds.items() if kind == "category"]
    numbers = {name: kind for name, kind in kinds.items() if kind != "category"}
    frame = read_csv(rows, texts, numbers, names=columns)
    # What NaN is compared with is False.
    if frame[texts].isna().any(axis=None) or not (frame[_PARTS].abs() < math.inf).all(axis=None):
        raise ValueError("damaged")
    if "hour" in columns:
        times = {text: int(table.time_of(text).timestamp()) for text in frame["hour"].cat.categories}
        frame["hour"] = frame["hour"].map(times).astype("int64")
    return frame


def body(content: bytes, columns: list[str]) -> bytes:
    """Return the rows of a file of ours; ValueError if it is another one, or cut off."""
    header, _, rows = content.partition(b"\n")
    if header.decode("ascii", "replace") != ",".join(columns) or (rows and not rows.endswith(b"\n")):
        raise ValueError("not written by this webmon")
    return rows


def text(frame: pandas.DataFrame, columns: list[str], *, header: bool = True) -> bytes:
    """Write a table."""
    if "hour" in columns:
        times = {
            hour: table.to_cell(datetime.fromtimestamp(hour, UTC)) for hour in frame["hour"].unique().tolist()
        }
        frame = frame.assign(hour=frame["hour"].map(times))
    written = frame.to_csv(
        columns=columns, index=False, header=header, lineterminator="\n", float_format="%.7g"
    )
    return written.encode("utf-8", "replace")
