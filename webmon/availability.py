"""The one definition of a free GPU, for pages, commands and messages alike."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from webmon.model import Gpu, Process, State

# What desktops and the driver's own daemons keep on a card without using it.
IGNORED_PROCESSES = (
    "Xorg",
    "Xwayland",
    "X",
    "gnome-shell",
    "kwin_wayland",
    "kwin_x11",
    "plasmashell",
    "nvidia-persistenced",
    "nv-hostengine",
)

# These share the machine's memory, so nvidia-smi has no memory of theirs to report.
UNIFIED_MEMORY_PARTS = ("GB10", "Thor", "Orin", "Xavier", "Tegra", "Jetson")

# A card with no process and less memory in use than this is idle: waking it reads as 100 %.
UNTOUCHED_MEMORY_PCT = 1.0

# A card that draws more than this part of its power limit is at work, whatever its utilization says.
AT_REST_POWER = 0.5


class Rules(NamedTuple):
    """`[free]` of the configuration."""

    max_memory_pct: float = 5.0
    max_utilization_pct: float = 5.0
    ignore: tuple[str, ...] = IGNORED_PROCESSES
    held_after_min: float = 30.0


def is_ignored(process: Process, rules: Rules) -> bool:
    """Tell whether this process does not count as using its GPU."""
    name = process.name or ""
    program = name.rpartition("/")[2]
    return bool(name) and any(
        fnmatchcase(program, pattern) or fnmatchcase(name, pattern) for pattern in rules.ignore
    )


def memory_pct(gpu: Gpu) -> float | None:
    """Return how full the memory is; None when the card does not say."""
    if gpu.memory_used_mib is None or not gpu.memory_total_mib:
        return None
    return 100.0 * gpu.memory_used_mib / gpu.memory_total_mib


def is_idle(gpu: Gpu, processes: Sequence[Process] | None, rules: Rules) -> bool:
    """Tell whether the card is doing nothing just now. Unknown is not idle."""
    if processes is not None and not processes:
        memory = memory_pct(gpu)
        if memory is not None and memory < UNTOUCHED_MEMORY_PCT:
            return True
    utilization = gpu.utilization_pct
    return utilization is not None and utilization <= rules.max_utilization_pct


def is_at_rest(gpu: Gpu, processes: Sequence[Process] | None, rules: Rules) -> bool:
    """Tell whether the card is idle, and draws no more power than an idle one: how long is counted by this.

    Utilization is that of a moment. A job that waits for its data just then reads 0 %, but its card draws
    far more than one whose memory is only held: that is a sixth of the limit, and two fifths of a small
    card's.
    """
    if not is_idle(gpu, processes, rules):
        return False
    if not gpu.power_w or not gpu.power_limit_w or is_free(gpu, processes, rules):
        return True
    return gpu.power_w <= AT_REST_POWER * gpu.power_limit_w


def is_free(gpu: Gpu, processes: Sequence[Process] | None, rules: Rules) -> bool:
    """Tell whether this GPU of a host that answered is free (processes None: list not known)."""
    if gpu.state == "faulty" or processes is None or not is_idle(gpu, processes, rules):
        return False
    return memory_is_free(gpu, rules) and in_use_by(processes, rules) == 0


def memory_is_free(gpu: Gpu, rules: Rules) -> bool:
    """Tell whether nobody holds memory, not even a process that can't be seen."""
    memory = memory_pct(gpu)
    return _has_unified_memory(gpu) if memory is None else memory <= rules.max_memory_pct


def in_use_by(processes: Iterable[Process], rules: Rules) -> int:
    """Count the processes that use their GPU: all but the ignored ones."""
    return sum(not is_ignored(process, rules) for process in processes)


def state_of(
    gpu: Gpu,
    processes: Sequence[Process] | None,
    rules: Rules,
    *,
    now: datetime,
    idle_since: datetime | None,
) -> State:
    """Judge a GPU of a host that answered, by the processes on it (None: list not known)."""
    if gpu.state == "faulty":
        return "faulty"
    if is_free(gpu, processes, rules):
        return "free"
    memory = memory_pct(gpu)
    if in_use_by(processes or (), rules) or (memory is not None and memory > rules.max_memory_pct):
        return _in_use(is_at_rest(gpu, processes, rules), idle_since, rules, now)
    return "busy" if gpu.utilization_pct is not None and not is_idle(gpu, processes, rules) else "unknown"


def users_of(processes: Iterable[Process], rules: Rules) -> tuple[str, ...]:
    """Return who uses a GPU, each once, in order."""
    using = {p.user for p in processes if p.user is not None and not is_ignored(p, rules)}
    return tuple(sorted(using))


def memory_by_user(gpu: Gpu, processes: Iterable[Process], rules: Rules) -> dict[str, int | None]:
    """Return the memory of each user of a GPU; None where that of one of their processes is not known."""
    memory: dict[str, int | None] = {}
    for process in processes:
        user, mib = process.user, process.memory_mib
        if user in gpu.users and not is_ignored(process, rules):
            before = memory.get(user, 0)
            memory[user] = None if before is None or mib is None else before + mib
    return {user: memory.get(user) for user in gpu.users}


def _in_use(at_rest: bool, idle_since: datetime | None, rules: Rules, now: datetime) -> State:
    if not at_rest or idle_since is None:
        return "busy"
    idle_min = (now - idle_since).total_seconds() / 60
    return "held" if idle_min >= rules.held_after_min else "busy"


def _has_unified_memory(gpu: Gpu) -> bool:
    if gpu.memory_used_mib is not None or gpu.memory_total_mib is not None:
        return False
    return any(part in (gpu.name or "") for part in UNIFIED_MEMORY_PARTS)
