"""What the overview shows, worked out from a snapshot: all the words, none of the HTML."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webmon.availability import memory_pct
from webmon.model import natural_order
from webmon.publish import words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from webmon.model import Gpu, Host, Process, Snapshot

# A state is told by a word, a shape and a colour; the colour is in the style sheet.
SHAPES = {"free": "✓", "busy": "■", "held": "◔", "faulty": "✕", "unknown": "?"}
WORDS = {"free": "free", "busy": "busy", "held": "idle, held", "faulty": "faulty", "unknown": "unknown"}


@dataclass(frozen=True, slots=True)
class GpuCell:
    """One GPU on the page. Levels are 0 to 100 for the bars, None for no bar."""

    index: int
    model: str
    state: str
    word: str
    shape: str
    utilization: str
    utilization_level: int | None
    memory: str
    memory_level: int | None
    temperature: str
    power: str
    mig: bool
    who: str
    program: str
    since: str
    others: int
    details: str


@dataclass(frozen=True, slots=True)
class HostCard:
    """One host on the page."""

    name: str
    anchor: str
    label: str | None
    group: str | None
    status: str
    facts: str
    free: int
    total: int
    error: str | None
    last_seen: datetime | None
    cells: Sequence[GpuCell]


@dataclass(frozen=True, slots=True)
class ModelTile:
    """How many cards of one model are free."""

    name: str
    free: int
    total: int

    @property
    def level(self) -> int:
        """Return how much of the tile's bar is full."""
        return 100 * self.free // self.total


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything on index.html."""

    taken_at: datetime
    stale_after_s: int
    is_stale: bool
    free: int
    total: int
    summary: str
    tiles: Sequence[ModelTile]
    hosts: Sequence[HostCard]


def overview(snapshot: Snapshot, now: datetime, period: timedelta) -> Overview:
    """Work out the overview. It is stale when it is older than three periods."""
    gpus = snapshot.gpus_by_host()
    processes = snapshot.processes_by_host()
    slugs = file_names([host.host for host in snapshot.hosts])
    cards = [
        _card(
            host,
            gpus.get(host.host, ()),
            processes.get(host.host, ()),
            snapshot.taken_at,
            slugs[host.host],
        )
        for host in sorted(snapshot.hosts, key=lambda host: natural_order(host.host))
    ]
    return Overview(
        taken_at=snapshot.taken_at,
        stale_after_s=int(3 * period.total_seconds()),
        is_stale=now - snapshot.taken_at > 3 * period,
        free=sum(card.free for card in cards),
        total=len(snapshot.gpus),
        summary=_summary(snapshot),
        tiles=_tiles(snapshot.gpus),
        hosts=cards,
    )


def file_names(hosts: Sequence[str]) -> dict[str, str]:
    """Return the name of each host in files and links; two hosts never share one."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for host in hosts:
        plain = re.sub(r"[^A-Za-z0-9._-]", "_", host)
        plain = plain if plain.strip(".") else plain.replace(".", "_")
        name, number = plain, 1
        while name.casefold() in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name.casefold())
        names[host] = name
    return names


def _summary(snapshot: Snapshot) -> str:
    up = sum(host.status == "up" for host in snapshot.hosts)
    parts = [f"{up} of {len(snapshot.hosts)} hosts up"]
    count = Counter(host.status for host in snapshot.hosts)
    parts += [f"{count[status]} {status}" for status in ("degraded", "down") if count[status]]
    used = [gpu.utilization_pct for gpu in snapshot.gpus if gpu.utilization_pct is not None]
    if used:
        parts.append(f"mean utilization {words.percent(sum(used) / len(used))}")
    known = [gpu for gpu in snapshot.gpus if gpu.memory_used_mib is not None and gpu.memory_total_mib]
    if known:
        taken = sum(gpu.memory_used_mib or 0 for gpu in known)
        parts.append(
            f"memory {words.gigabytes(taken, 0)} of "
            f"{words.gigabytes(sum(gpu.memory_total_mib or 0 for gpu in known), 0)} GB"
        )
    watts = [gpu.power_w for gpu in snapshot.gpus if gpu.power_w is not None]
    if watts:
        parts.append(f"{sum(watts) / 1000:.1f} kW")
    return " · ".join(parts)


def _tiles(gpus: Sequence[Gpu]) -> list[ModelTile]:
    total: Counter[str] = Counter()
    free: Counter[str] = Counter()
    for gpu in gpus:
        name = words.model(gpu.name)
        total[name] += 1
        free[name] += gpu.state == "free"
    tiles = [ModelTile(name, free[name], total[name]) for name in total if name != words.UNKNOWN]
    return sorted(tiles, key=lambda tile: (-tile.free, -tile.total, tile.name))


def _card(
    host: Host, gpus: Sequence[Gpu], processes: Sequence[Process], taken_at: datetime, anchor: str
) -> HostCard:
    on_gpu: dict[tuple[int | None, str | None], list[Process]] = defaultdict(list)
    for process in processes:
        on_gpu[process.gpu_index, process.gpu_uuid].append(process)
    return HostCard(
        name=host.host,
        anchor=anchor,
        label=host.label,
        group=host.group,
        status=host.status,
        facts=_facts(host, gpus),
        free=sum(gpu.state == "free" for gpu in gpus),
        total=len(gpus),
        error=host.error,
        last_seen=host.last_seen,
        cells=[_cell(gpu, on_gpu[gpu.index, gpu.uuid], taken_at, host.status) for gpu in gpus],
    )


def _facts(host: Host, gpus: Sequence[Gpu]) -> str:
    facts = [words.models(gpu.name for gpu in gpus), f"driver {host.driver}" if host.driver else ""]
    if host.load1 is not None:
        facts.append(f"load {host.load1:.1f}" + (f"/{host.cpus}" if host.cpus else ""))
    if host.ram_used_mib is not None:
        used, total = words.gigabytes(host.ram_used_mib, 0), words.gigabytes(host.ram_total_mib, 0)
        facts.append(f"RAM {used}/{total} GB")
    return " · ".join(fact for fact in facts if fact)


def _cell(gpu: Gpu, processes: Sequence[Process], taken_at: datetime, status: str) -> GpuCell:
    by_memory = sorted(processes, key=lambda p: (-(p.memory_mib or 0), p.pid))
    largest = by_memory[0] if by_memory else None
    used = memory_pct(gpu)
    return GpuCell(
        index=gpu.index,
        model=words.model(gpu.name),
        state=gpu.state,
        word=WORDS[gpu.state],
        shape=SHAPES[gpu.state],
        utilization=words.percent(gpu.utilization_pct),
        utilization_level=_level(gpu.utilization_pct),
        memory=words.memory(gpu.memory_used_mib, gpu.memory_total_mib),
        memory_level=_level(used),
        temperature=words.UNKNOWN if gpu.temperature_c is None else f"{gpu.temperature_c}\u202f°C",
        power=words.UNKNOWN if gpu.power_w is None else f"{gpu.power_w:.0f}\u202fW",
        mig=gpu.mig_mode == "Enabled",
        who=_who(gpu, largest, status),
        program=(largest.command or largest.name or "") if largest else "",
        since=_since(largest, taken_at),
        others=max(0, len(gpu.users) - 1),
        details=_details(gpu, by_memory, taken_at),
    )


def _level(percentage: float | None) -> int | None:
    return None if percentage is None else max(0, min(100, round(percentage)))


def _who(gpu: Gpu, largest: Process | None, status: str) -> str:
    if largest is not None:
        return largest.user or "owner hidden"
    if gpu.state == "faulty":
        return "lost or in error"
    if gpu.state == "unknown":
        return "no data" if status == "down" else "not known"
    return "no processes"


def _since(process: Process | None, taken_at: datetime) -> str:
    if process is None or process.started_at is None:
        return ""
    return words.duration(taken_at - process.started_at)


def _details(gpu: Gpu, processes: Sequence[Process], taken_at: datetime) -> str:
    """Return what the hover text says: every process, and the rest of the readings."""
    lines = [f"GPU {gpu.index}: {gpu.name or 'model not known'}, {WORDS[gpu.state]}"]
    for process in processes:
        parts = [
            process.user or "owner hidden",
            process.command or process.name or "",
            f"{words.gigabytes(process.memory_mib)} GB" if process.memory_mib is not None else "",
            f"pid {process.pid}",
            f"for {since}" if (since := _since(process, taken_at)) else "",
            f"in {process.container}" if process.container else "",
        ]
        lines.append(" · ".join(part for part in parts if part))
    readings = [
        f"{gpu.power_w:.0f} of {gpu.power_limit_w:.0f} W" if gpu.power_w and gpu.power_limit_w else "",
        f"{gpu.sm_clock_mhz} MHz" if gpu.sm_clock_mhz is not None else "",
        f"fan {gpu.fan_pct} %" if gpu.fan_pct is not None else "",
        f"idle since {words.moment(gpu.idle_since)}" if gpu.idle_since else "",
        "MIG" if gpu.mig_mode == "Enabled" else "",
        gpu.uuid or "",
    ]
    lines.append(" · ".join(part for part in readings if part))
    return "\n".join(line for line in lines if line)
