"""What the overview shows, worked out from a snapshot: all the words, none of the HTML."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webmon.model import natural_order
from webmon.publish import words
from webmon.publish.addresses import host_page
from webmon.publish.cell import cell

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from webmon.model import Gpu, Snapshot
    from webmon.publish.cell import GpuCell
    from webmon.publish.lab import Lab, LabHost

# With more GPUs than this the page saves: no hover texts (a third of a cell each; the host's page has
# their content), cards out of sight are not laid out, and squares are small.
FEW_GPUS = 500


@dataclass(frozen=True, slots=True)
class HostCard:
    """One host in the overview."""

    name: str
    anchor: str
    href: str
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
    def level(self) -> str:
        """Return how much of the tile's bar is full."""
        return words.level(100 * self.free / self.total)


@dataclass(frozen=True, slots=True)
class Overview:
    """Everything on index.html."""

    free: int
    total: int
    many: bool
    summary: str
    tiles: Sequence[ModelTile]
    memories: Sequence[int]
    hosts: Sequence[HostCard]


def overview(lab: Lab) -> Overview:
    """Work out the overview."""
    snapshot = lab.snapshot
    many = lab.total > FEW_GPUS
    return Overview(
        free=lab.free,
        total=lab.total,
        many=many,
        summary=_summary(snapshot),
        tiles=_tiles(snapshot.gpus),
        memories=sorted(
            {words.whole_gigabytes(gpu.memory_total_mib) for gpu in snapshot.gpus if gpu.memory_total_mib}
        ),
        hosts=[_card(one, lab.taken_at, titled=not many) for one in lab.hosts],
    )


def _summary(snapshot: Snapshot) -> str:
    count = Counter(host.status for host in snapshot.hosts)
    parts = [f"{count['up']} of {len(snapshot.hosts)} host{'s' * (len(snapshot.hosts) != 1)} up"]
    parts += [f"{count[status]} {status}" for status in ("degraded", "down") if count[status]]
    used = [gpu.utilization_pct for gpu in snapshot.gpus if gpu.utilization_pct is not None]
    if used:
        parts.append(f"mean utilization {words.percent(sum(used) / len(used))}")
    known = [gpu for gpu in snapshot.gpus if gpu.memory_used_mib is not None and gpu.memory_total_mib]
    if known:
        taken = sum(gpu.memory_used_mib or 0 for gpu in known)
        parts.append(f"memory {words.much_memory(taken, sum(gpu.memory_total_mib or 0 for gpu in known))}")
    power = [gpu.power_w for gpu in snapshot.gpus if gpu.power_w is not None]
    if power:
        parts.append(f"{sum(power) / 1000:.1f}\u202fkW")
    return " · ".join(parts)


def _tiles(gpus: Sequence[Gpu]) -> list[ModelTile]:
    total: Counter[str] = Counter()
    free: Counter[str] = Counter()
    for gpu in gpus:
        name = words.model(gpu.name)
        total[name] += 1
        free[name] += gpu.state == "free"
    tiles = [ModelTile(name, free[name], total[name]) for name in total if name != words.UNKNOWN]
    return sorted(tiles, key=lambda tile: (-tile.free, -tile.total, natural_order(tile.name)))


def _card(one: LabHost, taken_at: datetime, *, titled: bool) -> HostCard:
    host = one.host
    href = host_page(one.name)
    return HostCard(
        name=host.host,
        anchor=one.name,
        href=href,
        label=host.label,
        group=host.group,
        status=host.status,
        facts=words.facts(host, [on.gpu for on in one.gpus]),
        free=one.free,
        total=len(one.gpus),
        error=words.sentence(host.error),
        last_seen=host.last_seen,
        cells=[cell(on, f"{href}#{on.place}", host.status, taken_at, titled=titled) for on in one.gpus],
    )
