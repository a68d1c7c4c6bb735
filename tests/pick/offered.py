"""GPUs as they are offered, for the tests of which one is picked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from webmon.availability import Rules, state_of, users_of
from webmon.model import CLAIM, Gpu, Process
from webmon.pick.choose import Offer

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
RULES = Rules()
HOST = "gpu01"
IDLE: dict[str, Any] = {
    "name": "NVIDIA RTX A6000",
    "utilization_pct": 0,
    "memory_utilization_pct": 0,
    "memory_used_mib": 0,
    "memory_total_mib": 48_000,
    "power_limit_w": 300.0,
}


def gpu(index: int = 0, **changes: Any) -> Gpu:
    """Return an idle card with some changes, not judged yet."""
    return Gpu(HOST, index, f"GPU-{index}", **(IDLE | changes))


def process(index: int = 0, pid: int = 4711, name: str = "python", user: str = "alice") -> Process:
    """Return a process on a card."""
    return Process(HOST, index, f"GPU-{index}", pid, user=user, name=name)


def claim(index: int = 0, pid: int = 815, user: str = "bob") -> Process:
    """Return the claim on a card."""
    return process(index, pid, CLAIM, user)


def offer(
    card: Gpu | None = None, *processes: Process, known: bool = True, rules: Rules = RULES, **changes: Any
) -> Offer:
    """Return a card as it is offered: judged by what is on it, as every snapshot is."""
    card = card or gpu(**changes)
    on_it = processes if known else None
    state = state_of(card, on_it, rules, now=NOW, idle_since=NOW)
    return Offer(card._replace(state=state, users=users_of(processes, rules)), on_it)
