"""A past that is known: a data folder with a day of polls, and one poll's hour of ten days ago."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from clusters_seen import A100, RTX3090, card, process

from webmon.model import Host, Snapshot
from webmon.store import history, snapshot
from webmon.store.history import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STEP = timedelta(minutes=10)

# As many polls as fill a day, and two hours more.
POLLS = 6 * 26

# When the host that is gone was last seen, before the last poll.
LONG_AGO = timedelta(days=10)

TITAN = "NVIDIA TITAN V"

# No sum of these ends with a 5 that one form may round up, and another down.
HELD_W, BUSY_W = 61.7, 307.3


def past(folder: Path, end: datetime | None = None) -> datetime:
    """Write a data folder, and return when its last poll was."""
    end = end or datetime.now(UTC).replace(microsecond=0)
    snapshot.save(folder, last_poll(end), keep=3)
    history.add(folder, samples(end))
    return end


def last_poll(end: datetime) -> Snapshot:
    """Return what the last poll saw."""
    seen: dict[str, Any] = {"status": "up", "checked_at": end, "last_seen": end}
    return Snapshot(
        end,
        (Host("gpu07", group="vision", gpus=3, **seen), Host("old:2222", gpus=2, **seen)),
        (
            card("gpu07", 0, A100, 81920, used=80000, state="busy", users=("alice", "bob")),
            card("gpu07", 1, A100, 81920),
            card("gpu07", 2, A100, 81920, used=41000, state="held", users=("chen",)),
            card("old:2222", 0, RTX3090, 24576, used=17000, state="busy", users=("alice",)),
            card("old:2222", 1, RTX3090, 24576, state="unknown"),
        ),
        (
            process("gpu07", 0, 101, "alice", "train.py", None)._replace(memory_mib=60000),
            process("gpu07", 0, 102, "bob", "eval.py", None)._replace(memory_mib=20000),
            process("gpu07", 2, 103, "chen", "jupyter", None)._replace(memory_mib=40000),
            process("old:2222", 0, 104, "alice", "train.py", None)._replace(memory_mib=16000),
            process("old:2222", 0, 105, "root", "Xorg", None)._replace(name="/usr/bin/Xorg"),
        ),
    )


def samples(end: datetime) -> Iterator[Sample]:
    """Yield a day and two hours of the same again and again; before that there is one hour."""
    for time in (end - LONG_AGO + STEP * number for number in range(6)):
        yield _sample(time, "gone", 0, TITAN, "busy", measured=(90, 8000, 200.0), users=("eva=7000",))
    for time in (end - STEP * number for number in reversed(range(POLLS))):
        shared = ("alice=60000", "bob=20000")
        yield _sample(time, "gpu07", 0, A100, "busy", measured=(80, 80000, BUSY_W), users=shared)
        yield _sample(time, "gpu07", 1, A100, "free", measured=(0, 4, 20.0))
        yield _sample(time, "gpu07", 2, A100, "held", measured=(0, 41000, HELD_W), users=("chen=40000",))
        yield _sample(time, "old:2222", 0, RTX3090, "busy", measured=(50, 17000, None), users=("alice=",))
        yield Sample(time, "old:2222", 1, "GPU-old:2222-1", RTX3090, "unknown")


def _sample(
    time: datetime,
    host: str,
    index: int,
    name: str,
    state: Any,
    *,
    measured: tuple[int, int, float | None],
    users: tuple[str, ...] = (),
) -> Sample:
    utilization, used, watts = measured
    total = {A100: 81920, RTX3090: 24576, TITAN: 12288}[name]
    uuid = f"GPU-{host}-{index}"
    return Sample(time, host, index, uuid, name, state, utilization, used, total, watts, 60, users)
