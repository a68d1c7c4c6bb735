"""Snapshots to save: one with every field filled in, and any that hypothesis can think of."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from webmon.clean import clean
from webmon.model import Gpu, Host, Process, Snapshot

NOW = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)
SECOND = NOW.replace(microsecond=0)

HOST = Host(
    "gpu01",
    "the big one",
    "vision",
    "degraded",
    "lost-gpu",
    'it said "no", twice',
    SECOND,
    SECOND - timedelta(hours=1),
    321,
    "550.54.14",
    2,
    0.5,
    128,
    1000,
    2000,
)
GPU = Gpu(
    "gpu01",
    0,
    "GPU-0",
    "NVIDIA RTX A6000",
    "held",
    1,
    2,
    3000,
    48000,
    31,
    21.53,
    300.0,
    30,
    210,
    "P8",
    "Disabled",
    SECOND,
    ("alice", "bob"),
)
PROCESS = Process(
    "gpu01", 0, "GPU-0", 4711, "alice", "/usr/bin/python3", "träin.py", 900, SECOND, "4c01db0b339c"
)
FULL = Snapshot(NOW, (HOST,), (GPU,), (PROCESS,))


def at(minutes: float, name: str = "gpu01") -> Snapshot:
    """Return a snapshot of so many minutes later, in which every table has this name in it."""
    return Snapshot(
        NOW + timedelta(minutes=minutes),
        (HOST._replace(host=name),),
        (GPU._replace(host=name),),
        (PROCESS._replace(host=name),),
    )


TEXTS = st.text(max_size=30).map(clean).filter(bool)
MAYBE_TEXT = st.none() | TEXTS | st.sampled_from(["nan", "NA", "None", "0", '"', "a,b", "=1+1", "#", "\\"])
TIMES = st.datetimes(datetime(1800, 1, 1), datetime(2500, 1, 1)).map(  # noqa: DTZ001 - UTC is added
    lambda time: time.replace(microsecond=0, tzinfo=UTC)
)
MAYBE_TIME = st.none() | TIMES
WHOLE = st.none() | st.integers(0, 10**12)
NUMBERS = st.none() | st.integers(0, 10**9).map(lambda n: n / 100)
USERS = st.lists(TEXTS.map(lambda name: name.replace(";", "_")), max_size=4, unique=True).map(tuple)

HOSTS = st.builds(
    Host,
    TEXTS,
    MAYBE_TEXT,
    MAYBE_TEXT,
    st.sampled_from(["up", "degraded", "down"]),
    MAYBE_TEXT,
    MAYBE_TEXT,
    MAYBE_TIME,
    MAYBE_TIME,
    WHOLE,
    MAYBE_TEXT,
    WHOLE,
    NUMBERS,
    WHOLE,
    WHOLE,
    WHOLE,
)
GPUS = st.builds(
    Gpu,
    TEXTS,
    st.integers(0, 9999),
    MAYBE_TEXT,
    MAYBE_TEXT,
    st.sampled_from(["free", "busy", "held", "faulty", "unknown"]),
    *[WHOLE] * 4,
    st.none() | st.integers(-100, 1000),
    NUMBERS,
    NUMBERS,
    WHOLE,
    WHOLE,
    MAYBE_TEXT,
    MAYBE_TEXT,
    MAYBE_TIME,
    USERS,
)
PROCESSES = st.builds(
    Process,
    TEXTS,
    WHOLE,
    MAYBE_TEXT,
    st.integers(0, 10**10),
    MAYBE_TEXT,
    MAYBE_TEXT,
    MAYBE_TEXT,
    WHOLE,
    MAYBE_TIME,
    MAYBE_TEXT,
)


def _rows(rows: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(rows, max_size=4).map(tuple)


_DIFFERENT_HOSTS = st.lists(HOSTS, max_size=4, unique_by=lambda host: host.host).map(tuple)
SNAPSHOTS = st.builds(Snapshot, TIMES, _DIFFERENT_HOSTS, _rows(GPUS), _rows(PROCESSES))
