"""What users.html shows: who has what now, and who used how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webmon.publish import words
from webmon.publish.addresses import host_page
from webmon.usage import total, users_now

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from webmon.publish.lab import Lab
    from webmon.publish.look import Look
    from webmon.usage import Now, Use, Window


@dataclass(frozen=True, slots=True)
class Holder:
    """What one user has now; `places` are texts with their links."""

    user: str
    gpus: int
    memory: str
    processes: int
    places: Sequence[tuple[str, str | None]]


@dataclass(frozen=True, slots=True)
class UserRow:
    """What one user used in some days; `level` is how much of the largest user's that is."""

    user: str
    hours: str
    level: str
    sole: str
    shared: str
    held: str
    utilization: str
    energy: str
    cost: str


@dataclass(frozen=True, slots=True)
class Account:
    """Some days: who used how much, all of them together, and how much of that time is known."""

    anchor: str
    title: str
    since: datetime
    coverage: str
    rows: Sequence[UserRow]
    total: UserRow


@dataclass(frozen=True, slots=True)
class People:
    """Everything on users.html."""

    holders: Sequence[Holder]
    accounts: Sequence[Account]
    has_cost: bool


def people(lab: Lab, look: Look) -> People:
    """Work out who uses what."""
    names = {one.host.host: one.name for one in lab.hosts}
    now = users_now(lab.snapshot, lab.rules)
    holders = sorted(now.items(), key=lambda item: (-(item[1].memory_mib or 0), -item[1].held, item[0] or ""))
    price = look.site.price_per_kwh
    return People(
        holders=[_holder(user, held, names) for user, held in holders],
        accounts=[_account(days, window, price) for days, window in lab.past.windows.items()],
        has_cost=price is not None,
    )


def user_name(user: str | None) -> str:
    """Write whose it is."""
    return user or words.HIDDEN


def title(days: int) -> str:
    """Name the last days."""
    return "24 hours" if days == 1 else f"{days} days"


def _holder(user: str | None, held: Now, names: Mapping[str, str]) -> Holder:
    return Holder(
        user=user_name(user),
        gpus=held.held,
        memory=words.memory_of(held.memory_mib),
        processes=held.processes,
        places=[
            (f"{host}:{','.join(map(str, indices))}", host_page(names[host]) if host in names else None)
            for host, indices in held.gpus.items()
        ],
    )


def _account(days: int, window: Window, price: float | None) -> Account:
    most = max((use.hours for use in window.users.values()), default=0.0)
    return Account(
        anchor=f"days-{days}",
        title=title(days),
        since=window.start,
        coverage=words.coverage(window),
        rows=[_row(user_name(user), use, most, price) for user, use in window.users.items()],
        total=_row("all users", total(window.users.values()), 0.0, price),
    )


def _row(user: str, use: Use, most: float, price: float | None) -> UserRow:
    return UserRow(
        user=user,
        hours=words.hours(use.hours),
        level=words.level(100 * use.hours / most) if most else "",
        sole=words.hours(use.sole),
        shared=words.hours(use.shared),
        held=words.hours(use.held),
        utilization=words.percent(use.utilization_pct),
        energy=words.hours(use.kwh),
        cost=words.cost(use.kwh, price),
    )
