"""What was used: sums over samples, each of which stands for the time since the poll before.

A sum is in GPU-hours. A card that several users share counts for each by the share of its memory, so
that the parts add up to the card.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from webmon.availability import is_ignored
from webmon.model import natural_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from webmon.availability import Rules
    from webmon.model import Snapshot

K = TypeVar("K")


class Use(NamedTuple):
    """How long GPUs were in each state, how hard they worked, and what they drew: GPU-hours and kWh.

    `measured` are the hours with a known utilization, `worked` the same times utilization; `metered` are
    those with a known power draw. `sole` and `shared` make up the hours of users; `beside` are the hours
    on the cards that were shared, not split.
    """

    free: float = 0.0
    busy: float = 0.0
    held: float = 0.0
    faulty: float = 0.0
    unknown: float = 0.0
    sole: float = 0.0
    shared: float = 0.0
    beside: float = 0.0
    measured: float = 0.0
    worked: float = 0.0
    metered: float = 0.0
    energy: float = 0.0

    @property
    def hours(self) -> float:
        """Return all GPU-hours."""
        return self.free + self.busy + self.held + self.faulty + self.unknown

    @property
    def known(self) -> float:
        """Return the GPU-hours of which the state is known."""
        return self.hours - self.unknown

    @property
    def in_use(self) -> float:
        """Return the GPU-hours in somebody's hands."""
        return self.busy + self.held

    @property
    def utilization_pct(self) -> float | None:
        """Return the mean utilization, where it is known."""
        return _pct(self.worked, self.measured)

    @property
    def occupancy_pct(self) -> float | None:
        """Return which part of the known time GPUs were in somebody's hands."""
        return _pct(self.in_use, self.known)

    @property
    def held_pct(self) -> float | None:
        """Return which part of the known time GPUs were held but idle."""
        return _pct(self.held, self.known)

    @property
    def free_pct(self) -> float | None:
        """Return which part of the known time GPUs were free."""
        return _pct(self.free, self.known)

    @property
    def kwh(self) -> float | None:
        """Return the energy; None if no card told of its power draw."""
        return self.energy if self.metered else None


class Window(NamedTuple):
    """What was used from one moment to another, by whom (the largest first) and where."""

    start: datetime
    end: datetime
    polled_hours: float
    total: Use
    users: Mapping[str | None, Use]
    hosts: Mapping[str, Use]
    models: Mapping[str, Use]

    @property
    def hours(self) -> float:
        """Return how long it is."""
        return (self.end - self.start).total_seconds() / 3600

    @property
    def polled_pct(self) -> float:
        """Return for which part of it there are polls."""
        return min(100.0, 100 * self.polled_hours / self.hours)

    def coverage_pct(self, use: Use) -> float:
        """Return for which part of it is known what GPUs did: they were polled, and answered."""
        return self.polled_pct * (use.known / use.hours if use.hours else 0.0)


class Hour(NamedTuple):
    """What the GPUs did in one hour: all of them, and how many of each model were free on average."""

    start: datetime
    polled_hours: float
    total: Use
    free: Mapping[str, float]


# The mean utilization of a GPU in each of some hours.
Line: TypeAlias = "Sequence[float | None]"


class Past(NamedTuple):
    """What pages tell of the past. `lines` has the mean utilization of each GPU in the last 24 hours."""

    windows: Mapping[int, Window]
    hours: Sequence[Hour]
    lines: Mapping[tuple[str, str], Line]


NOTHING_PAST = Past({}, (), {})


class Now(NamedTuple):
    """What one user has just now."""

    gpus: Mapping[str, Sequence[int]]
    memory_mib: int | None
    processes: int

    @property
    def held(self) -> int:
        """Return how many GPUs."""
        return sum(len(indices) for indices in self.gpus.values())

    @property
    def places(self) -> str:
        """Return where they are: `gpu1:0,1 gpu2:3`."""
        return " ".join(f"{host}:{','.join(map(str, indices))}" for host, indices in self.gpus.items())


def gpu_key(uuid: str | None, index: int) -> str:
    """Return what a GPU of a host is known again by."""
    return uuid or str(index)


def total(uses: Iterable[Use]) -> Use:
    """Add up."""
    return Use(*map(sum, zip(*uses, strict=True))) if (uses := list(uses)) else Use()


def grouped(uses: Mapping[str, Use], group_of: Callable[[str], K]) -> dict[K, Use]:
    """Add up what is in the same group: hosts, or the names of a model."""
    groups: dict[K, list[Use]] = {}
    for name, use in uses.items():
        groups.setdefault(group_of(name), []).append(use)
    return {group: total(some) for group, some in groups.items()}


def users_now(snapshot: Snapshot, rules: Rules) -> dict[str | None, Now]:
    """Return what each user has; None stands for owners that are not known."""
    gpus: dict[str | None, dict[str, set[int]]] = {}
    memory: dict[str | None, int | None] = {}
    processes: dict[str | None, set[tuple[str, int]]] = {}
    for process in snapshot.processes:
        if is_ignored(process, rules):
            continue
        user = process.user
        on = gpus.setdefault(user, {})
        if process.gpu_index is not None:
            on.setdefault(process.host, set()).add(process.gpu_index)
        processes.setdefault(user, set()).add((process.host, process.pid))  # it may be on several GPUs
        if process.memory_mib is not None:
            memory[user] = (memory.get(user) or 0) + process.memory_mib
    return {
        user: Now(
            {host: sorted(on[host]) for host in sorted(on, key=natural_order)},
            memory.get(user),
            len(processes[user]),
        )
        for user, on in gpus.items()
    }


def _pct(part: float, whole: float) -> float | None:
    return 100 * part / whole if whole else None
