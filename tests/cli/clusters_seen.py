"""A cluster that was seen just now: what its last snapshot says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from webmon.model import Gpu, Host, Process, Snapshot

A100 = "NVIDIA A100-SXM4-80GB"
A6000 = "NVIDIA RTX A6000"
RTX3090 = "NVIDIA GeForce RTX 3090"

# What others can have put into a name: an escape sequence, a title, a new line, a text that turns around.
EVIL = ("\x1b[2Jred", "\x1b]0;owned\x07", "two\nlines", "\u202egnp.exe", "\x9b31m", "back\bspace", "a\rb")


def cluster(*, minutes_ago: float = 0) -> Snapshot:
    """Return five hosts with nine GPUs: free are gpu07:1, gpu07:2, gpu08:1 and mixed:2222:0."""
    now = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=minutes_ago)
    seen: dict[str, Any] = {"status": "up", "checked_at": now, "last_seen": now, "driver": "550.54.15"}
    return Snapshot(
        now,
        (
            Host("gpu07", "the new one", "vision", gpus=4, **seen),
            Host("gpu08", None, "vision", gpus=2, **seen),
            Host("gpu09", None, None, "down", "timeout", "no answer within 20 s", now, gpus=1),
            Host("mixed:2222", gpus=2, **seen),
            Host("bare", gpus=0, **seen),
        ),
        (
            card("gpu07", 0, A100, 81920, used=78000, state="busy", users=("alice", "bob")),
            card("gpu07", 1, A100, 81920),
            card("gpu07", 2, A100, 81920),
            card("gpu07", 3, A100, 81920, used=41000, state="held", users=("chen",)),
            card("gpu08", 0, RTX3090, 24576, used=17000, state="busy", users=("dora",)),
            card("gpu08", 1, RTX3090, 24576, watts=350.0),
            Gpu("gpu09", 0, "GPU-gpu09-0", A100),
            card("mixed:2222", 0, A6000, 49140, watts=300.0),
            card("mixed:2222", 1, RTX3090, 24576, used=20000, state="busy", watts=350.0),
        ),
        (
            process("gpu07", 0, 102, "bob", "eval.py", now - timedelta(minutes=90)),
            process("gpu07", 0, 101, "alice", "train.py", now - timedelta(hours=50)),
            process("gpu07", 3, 103, "chen", "jupyter", None),
            *(process("gpu08", 0, 200 + n, "dora", f"worker{n}.py", None) for n in range(17)),
            process("mixed:2222", 1, 301, None, "python", None),
        ),
    )


def card(
    host: str,
    index: int,
    name: str,
    total: int,
    *,
    used: int = 4,
    state: Any = "free",
    watts: float = 400.0,
    users: tuple[str, ...] = (),
) -> Gpu:
    """Return a card that is idle, or is in use."""
    return Gpu(
        host,
        index,
        f"GPU-{host}-{index}",
        name,
        state,
        97 if state == "busy" else 0,
        60 if state == "busy" else 0,
        used,
        total,
        temperature_c=71 if state == "busy" else 31,
        power_w=310.0 if state == "busy" else 21.5,
        power_limit_w=watts,
        sm_clock_mhz=1410 if state == "busy" else 210,
        users=users,
    )


def process(
    host: str, index: int, pid: int, user: str | None, command: str, started: datetime | None
) -> Process:
    """Return a process of python's."""
    return Process(host, index, f"GPU-{host}-{index}", pid, user, "python", command, 1000, started)
