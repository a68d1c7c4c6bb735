"""What the demo's hosts have done before the demo was started: a month of history, made up like the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from webmon.demo.cluster import CLUSTER, state
from webmon.store import history
from webmon.store.history import Sample

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from webmon.demo.cluster import DemoHost

_DAYS = 30

# At these hours, and on weekends, every second job that comes and goes is left out.
_NIGHT = (*range(8), 20, 21, 22, 23)


def write(folder: Path, now: datetime) -> None:
    """Write a poll for each hour of the last days, unless there is a history already."""
    if not history.days(folder):
        last = now.replace(minute=0, second=0, microsecond=0)
        times = [last - timedelta(hours=ago) for ago in range(24 * _DAYS, 0, -1)]
        history.add(folder, (sample for time in times for host in CLUSTER for sample in _samples(host, time)))


def _samples(host: DemoHost, time: datetime) -> Iterator[Sample]:
    # Those that are down or have no driver now were so before.
    if host.is_down or host.failure:
        return
    minute = int(time.timestamp()) // 60
    said = state(host, minute)
    users = {owner["pid"]: owner["user"] for owner in said["owners"]}
    for role, gpu in zip(host.roles, said["gpus"], strict=True):
        memory: dict[str, int] = {}
        for process in said["processes"]:
            if process["gpu_uuid"] == gpu["uuid"]:
                user = users[process["pid"]]
                memory[user] = memory.get(user, 0) + int(process["used_memory"])
        is_quiet = time.hour in _NIGHT or time.weekday() > 4
        if role == "changing" and is_quiet and (minute // 60 + int(gpu["index"])) % 2:
            memory = {}
            gpu |= {"utilization.gpu": "0", "memory.used": "0", "power.draw": f"{host.card.power * 0.12:.2f}"}
        yield Sample(
            time.astimezone(UTC),
            host.name,
            int(gpu["index"]),
            gpu["uuid"],
            gpu["name"],
            "faulty" if role == "faulty" else "held" if role == "held" else "busy" if memory else "free",
            _number(gpu["utilization.gpu"]),
            _number(gpu["memory.used"]),
            host.card.memory,
            _number(gpu["power.draw"]),
            _number(gpu["temperature.gpu"]),
            tuple(f"{user}={mib}" for user, mib in sorted(memory.items())),
        )


def _number(text: str) -> Any:
    return None if text.startswith("[") else round(float(text))
