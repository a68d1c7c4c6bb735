"""Lines of the history → a data frame of what is summed up of them. Damaged ones are left out."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import math
import warnings
from typing import TYPE_CHECKING, Any, get_args

from webmon.model import State
from webmon.store import history, table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    import pandas

# Where a line's time ends.
_TIME = 20

_TEXTS = ("host", "uuid", "name", "state", "users")
# Numbers, and the largest that can be; one that can't is not known.
_NUMBERS = {"utilization_pct": 100, "power_w": 100_000}
_COLUMNS = ("time", "index", *_TEXTS, *_NUMBERS)
_FIELDS = history.Sample._fields

_LARGEST_INDEX = 1_000_000

# So many lines are read one by one if one is damaged or has quotes: that takes ten times as long.
_FEW = 1000


def poll_times(lines: Iterable[bytes]) -> set[int]:
    """Return the times of the polls that these lines are of, in seconds since the epoch."""
    return {time for _, time in polls_of(lines)}


def polls_of(lines: Iterable[bytes]) -> set[tuple[str, int]]:
    """Return which hosts these lines are of, and the times of the polls, in seconds since the epoch."""
    found: set[tuple[str, int]] = set()
    # The first two cells: neither is ever quoted.
    for text, _, host in {line[: line.find(b",", _TIME + 1)].partition(b",") for line in lines}:
        with contextlib.suppress(ValueError):
            found.add((host.decode("utf-8", "replace"), _epoch(text.decode("ascii", "replace"))))
    return found


def frame(lines: Sequence[bytes]) -> pandas.DataFrame:
    """Return the samples of some lines, their times in seconds since the epoch."""
    import pandas

    parts = list(_parts(lines))
    whole = parts[0]
    if len(parts) > 1:
        whole = pandas.concat(parts, ignore_index=True).astype(dict.fromkeys(_TEXTS, "category"))
    can_be = {name: whole[name].where(whole[name].between(0, most)) for name, most in _NUMBERS.items()}
    return whole.assign(**can_be)


def read_csv(
    content: bytes, texts: Collection[str], numbers: Mapping[str, str], **options: Any
) -> pandas.DataFrame:
    """Read rows without a header; texts are texts, even if all are numbers, or `nan`."""
    import pandas

    def read(kind: str) -> Any:
        kinds: Any = {**dict.fromkeys(texts, kind), **numbers}
        settings: Any = {"header": None, "dtype": kinds, "keep_default_na": False, "index_col": False}
        with warnings.catch_warnings():
            # Of a row with a cell too many it would only warn, and leave that cell out.
            warnings.simplefilter("error", pandas.errors.ParserWarning)
            try:
                return pandas.read_csv(io.BytesIO(content), **settings, **options)
            except pandas.errors.ParserWarning as warning:
                raise ValueError(str(warning)) from None

    found: pandas.DataFrame = read("category")
    if all(isinstance(text, str) for name in texts for text in found[name].cat.categories[:1]):
        return found
    # Categories are quick, but those that are all numbers become some.
    found = read("object")
    for name in texts:
        found[name] = found[name].astype("category")
    return found


def _parts(lines: Sequence[bytes]) -> Iterator[pandas.DataFrame]:
    """Read lines as many at a time as are well."""
    try:
        yield _quickly(lines)
    except (ValueError, OverflowError):
        if len(lines) <= _FEW:
            yield _carefully(lines)
        else:
            middle = len(lines) // 2
            yield from _parts(lines[:middle])
            yield from _parts(lines[middle:])


def _quickly(lines: Sequence[bytes]) -> pandas.DataFrame:
    """Read lines that are all well and simple; ValueError if one is not."""
    content = b"".join(lines)
    widths = {line.count(b",") for line in lines}
    if len(widths) != 1 or b'"' in content or b"\r" in content or content.count(b"\n") != len(lines):
        raise ValueError("not all alike")
    # What a later webmon may have added comes after our columns.
    width = widths.pop() + 1
    if width < len(_FIELDS):
        raise ValueError("cut off")
    found = read_csv(
        content,
        ["time", *_TEXTS],
        {"index": "int64", **dict.fromkeys(_NUMBERS, "float64")},
        names=[*_FIELDS, *map(str, range(width))][:width],
        usecols=list(_COLUMNS),
        na_values={name: [""] for name in _NUMBERS},
        quoting=csv.QUOTE_NONE,
    )
    if not (
        len(found) == len(lines)
        and set(found["state"].cat.categories) <= set(get_args(State))
        and found["index"].between(0, _LARGEST_INDEX).all()
        and found[list(_TEXTS)].notna().all(axis=None)
        and (found[list(_NUMBERS)].abs().fillna(0) < math.inf).all(axis=None)
    ):
        raise ValueError("a line is damaged")
    times = {text: _epoch(text) for text in found["time"].cat.categories}
    found["time"] = found["time"].map(times).astype("int64")
    return found


def _carefully(lines: Iterable[bytes]) -> pandas.DataFrame:
    """Read lines one by one."""
    import pandas

    rows = []
    for line in lines:
        with contextlib.suppress(ValueError, csv.Error):
            rows.append(_row(line))
    kinds = {"time": "int64", "index": "int64", **dict.fromkeys(_TEXTS, "category")}
    found = pandas.DataFrame(rows, columns=list(_COLUMNS))
    return found.astype({**kinds, **dict.fromkeys(_NUMBERS, "float64")})


def _row(line: bytes) -> tuple[Any, ...]:
    """Read one line; ValueError if it is damaged where it matters."""
    (cells,) = csv.reader([line.decode("utf-8", "replace")], strict=True)
    sample = dict(zip(_FIELDS, cells[: len(_FIELDS)], strict=True))
    index = int(sample["index"])
    if sample["state"] not in get_args(State) or not 0 <= index <= _LARGEST_INDEX:
        raise ValueError("damaged")
    numbers = [float(sample[name] or "nan") for name in _NUMBERS]
    if any(
        sample[name] and not math.isfinite(number) for name, number in zip(_NUMBERS, numbers, strict=True)
    ):
        raise ValueError("no number")
    return _epoch(sample["time"]), index, *(sample[name] for name in _TEXTS), *numbers


@functools.lru_cache(maxsize=1024)
def _epoch(text: str) -> int:
    return int(table.time_of(text).timestamp())
