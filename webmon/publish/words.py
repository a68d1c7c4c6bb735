"""Numbers, times and names as a person reads them. What is not known is an en dash, never a 0."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

UNKNOWN = "–"  # noqa: RUF001 - an en dash on purpose

_BRAND = re.compile(r"\b(?:NVIDIA|GeForce|Tesla|Graphics Device)\b ?")
_FORM = re.compile(r"[- ](?:SXM\d?|PCIE?|HBM\d\w?|NVL)\b", re.IGNORECASE)


def gigabytes(mib: int | None, digits: int = 1) -> str:
    """Write memory: `28.7`, `80`."""
    if mib is None:
        return UNKNOWN
    text = f"{mib / 1024:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def memory(used: int | None, total: int | None) -> str:
    """Write memory used and total: `28.7/80 GB`."""
    if used is None and total is None:
        return UNKNOWN
    return f"{gigabytes(used)}/{gigabytes(total, 0)} GB"


def percent(value: float | None) -> str:
    """Write a percentage: `43 %`, with a space that does not break."""
    return UNKNOWN if value is None else f"{value:.0f}\u202f%"


def duration(span: timedelta) -> str:
    """Write how long something takes or took: `12 min`, `3 h`, `7 d`."""
    seconds = max(0, int(span.total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def moment(time: datetime | None) -> str:
    """Write a time: `2026-11-18 08:23 UTC`."""
    return UNKNOWN if time is None else time.strftime("%Y-%m-%d %H:%M UTC")


def iso(time: datetime) -> str:
    """Write a time for programs: `2026-11-18T08:23:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def model(name: str | None) -> str:
    """Shorten a card's name to what tells cards apart: `A100 80GB`, `RTX 3090`."""
    if name is None:
        return UNKNOWN
    short = _FORM.sub("", _BRAND.sub("", name)).replace("-", " ")
    return " ".join(short.split()) or name


def models(names: Iterable[str | None]) -> str:
    """Say which cards a host has: the model alone, or each model and how many."""
    count = Counter(model(name) for name in names if name is not None)
    if len(count) < 2:
        return next(iter(count), "")
    return ", ".join(f"{name} ×{number}" for name, number in count.most_common())  # noqa: RUF001
