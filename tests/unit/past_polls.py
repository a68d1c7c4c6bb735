"""Polls for the tests of the history: a host with two cards, one that is down, and what is on them."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

from webmon.availability import Rules
from webmon.model import Gpu, Host, Process, Snapshot
from webmon.store import history

START = datetime(2026, 11, 18, 8, 5, 0, 250000, tzinfo=UTC)
COLUMNS = (
    "time,host,index,uuid,name,state,utilization_pct,memory_used_mib,memory_total_mib,power_w,"
    "temperature_c,users"
)
FULL = (
    "2026-11-18T08:05:00Z,gpu01,0,GPU-a,NVIDIA A100,busy,97,78000,81920,389.5,71,alice=6400;bob=1618\n"
    "2026-11-18T08:05:00Z,gpu01,1,GPU-b,NVIDIA A100,free,0,4,81920,55,33,\n"
    "2026-11-18T08:05:00Z,gpu02,0,GPU-c,NVIDIA A100,unknown,,,,,,\n"
)


def poll(time=START, number=97, processes=None):
    """Return a snapshot; the first card's utilization is the number, by which it is known again."""
    first = Gpu("gpu01", 0, "GPU-a", "NVIDIA A100", "busy", number, 55, 78000, 81920, 71, 389.5)
    if processes is None:
        processes = (on_first("alice", 6000), on_first("alice", 400), on_first("bob", 1618))
    return Snapshot(
        time,
        (Host("gpu01", status="up", checked_at=time), Host("gpu02", reason="timeout", checked_at=time)),
        (
            first._replace(users=tuple(sorted({one.user for one in processes if one.user}))),
            Gpu("gpu01", 1, "GPU-b", "NVIDIA A100", "free", 0, 0, 4, 81920, 33, 55.0),
            Gpu("gpu02", 0, "GPU-c", "NVIDIA A100"),
        ),
        tuple(processes),
    )


def on_first(user, memory, name="python"):
    """Return a process on the first card."""
    return Process("gpu01", 0, "GPU-a", 4711, user, name, memory_mib=memory)


def append(folder, time=START, number=97, *, keep_days=90, tidy=True, **options):
    """Append a poll, as `fetch` does at that time: what it writes is from then."""
    history.append(folder, poll(time, number, **options), Rules())
    written = folder / "history" / f"{time.astimezone(UTC).date()}.csv"
    os.utime(written, (time.timestamp(), time.timestamp()))
    if tidy:
        history.tidy(folder, time, keep_days)


def numbers(folder, host="gpu01"):
    """Return the numbers of the polls that a reader finds, in the order of their times."""
    samples = [one for day in history.days(folder) for one in history.read(folder, [host], day)]
    return [one.utilization_pct for one in samples if one.index == 0]


def later(**parts):
    """Return a time so much after the first poll."""
    return START + timedelta(**parts)


def files(folder):
    """Return the names of the history's files."""
    return sorted(path.name for path in (folder / "history").iterdir())
