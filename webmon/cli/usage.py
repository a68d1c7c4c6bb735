"""users, stats: who used how much, and how much the GPUs were used."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from webmon.cli import usage_table
from webmon.cli.as_data import print_document, print_rows
from webmon.cli.options import add, days
from webmon.cli.stored import add_data_options, data_folder, reading, snapshot_of, tell_age
from webmon.config.glance import glance
from webmon.errors import NotEnough
from webmon.usage import Now, Use, grouped, users_now

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Mapping
    from datetime import datetime
    from pathlib import Path

    from webmon.cli.options import Commands
    from webmon.model import Snapshot
    from webmon.usage import Window

# What `webmon users` tells of, and which of them has the details, if no number of days is given.
_USUAL_DAYS = (1, 7, 30, 365)
_DETAILED_DAYS = 30

_STATES = ("free", "busy", "held", "faulty", "unknown")

_NOTHING_NOW = Now({}, 0, 0)


def add_commands(commands: Commands) -> None:
    """Add `users` and `stats`."""
    users = add(
        commands,
        "users",
        _users,
        "Tell who has which GPUs now, and who used how much",
        "  webmon users                    now, and GPU-hours of the last 1, 7, 30 and 365 days\n"
        "  webmon users --days 14          now, and the last 14 days in detail\n"
        "  webmon users --json | jq '.users[] | {user, gpus: .now.gpus}'",
    )
    users.add_argument("--days", type=days, metavar="N", help="the last N days, up to the last poll")
    add_data_options(users)
    stats = add(
        commands,
        "stats",
        _stats,
        "Tell how much GPUs were used: by user, host, model, group or state",
        "  webmon stats                                by host, over the last 30 days\n"
        "  webmon stats --by model --days 7            do we need more of them?\n"
        "  webmon stats --by user --days 365 --csv     a year, for a script",
    )
    stats.add_argument(
        "--by",
        choices=("user", "host", "model", "group", "state"),
        default="host",
        help="what a row is about (default: %(default)s)",
    )
    stats.add_argument(
        "--days",
        type=days,
        metavar="N",
        default=30,
        help="the last N days, up to the last poll (default: %(default)s)",
    )
    add_data_options(stats)


def _users(options: Namespace) -> int:
    settings = glance(options.config)
    folder = data_folder(options, settings)
    windows = _windows(folder, (options.days,) if options.days else _USUAL_DAYS, options)
    snapshot = snapshot_of(folder, options)
    now = None if snapshot is None else users_now(snapshot, settings.free)
    users = {user for window in windows.values() for user in window.users}
    names = sorted(users | set(now or ()), key=_first(now or {}, windows))
    if options.json:
        print_document({**_about(windows), "users": [_user_as_data(user, now, windows) for user in names]})
    else:
        rows = [_user_row(user, now, windows, only=options.days) for user in names]
        _print(rows, _user_row(None, now, windows, only=options.days), windows, as_csv=options.csv)
    tell_age(_end(windows), options)
    return 0 if names else 1


def _print(
    rows: list[dict[str, Any]], example: dict[str, Any], windows: Mapping[int, Window], *, as_csv: bool
) -> None:
    """Print rows, which have the columns of the example, as CSV or for a person."""
    if as_csv:
        print_rows(list(example), rows)
        return
    print(*usage_table.coverage(windows), "", sep="\n")
    if not rows:
        raise NotEnough("nobody used a GPU, as far as is known")
    print(*usage_table.lines(rows), sep="\n")


def _first(now: Mapping[str | None, Now], windows: Mapping[int, Window]) -> Any:
    """Order by the memory that users have now, as GPU Monitor does, and then by what they used."""
    longest = max(windows)

    def key(user: str | None) -> tuple[Any, ...]:
        held = now.get(user)
        use = windows[longest].users.get(user, Use())
        return (-((held.memory_mib or 0) if held else 0), -(held.held if held else 0), -use.hours, user or "")

    return key


def _user_row(
    user: str | None, now: Mapping[str | None, Now] | None, windows: Mapping[int, Window], *, only: int | None
) -> dict[str, Any]:
    held = None if now is None else now.get(user, _NOTHING_NOW)
    row: dict[str, Any] = {
        "user": user,
        "gpus": held and held.held,
        "memory_mib": held and held.memory_mib,
        "processes": held and held.processes,
        "on": held and held.places,
    }
    for number, window in windows.items():
        row[f"gpu_hours_{number}d"] = window.users.get(user, Use()).hours
    detailed = only or _DETAILED_DAYS
    use = windows[detailed].users.get(user, Use())
    if only:
        row |= {"sole_hours": use.sole, "shared_hours": use.shared, "utilization_pct": use.utilization_pct}
    return row | {f"held_hours_{detailed}d": use.held, f"kwh_{detailed}d": use.kwh}


def _user_as_data(
    user: str | None, now: Mapping[str | None, Now] | None, windows: Mapping[int, Window]
) -> dict[str, Any]:
    uses = {str(number): window.users.get(user, Use()) for number, window in windows.items()}
    return {
        "user": user,
        "now": None if now is None else _now_as_data(now.get(user, _NOTHING_NOW)),
        "days": {number: _use_as_data(use) for number, use in uses.items()},
    }


def _use_as_data(use: Use) -> dict[str, float | None]:
    return {
        "gpu_hours": _rounded(use.hours),
        "sole_hours": _rounded(use.sole),
        "shared_hours": _rounded(use.shared),
        "shared_cards_hours": _rounded(use.beside),
        "held_hours": _rounded(use.held),
        "utilization_pct": _rounded(use.utilization_pct),
        "kwh": _rounded(use.kwh),
    }


def _now_as_data(held: Now) -> dict[str, Any]:
    return {
        "gpus": held.held,
        "memory_mib": held.memory_mib,
        "processes": held.processes,
        "on": held.gpus,
    }


def _stats(options: Namespace) -> int:
    folder = data_folder(options, glance(options.config))
    windows = _windows(folder, (options.days,), options)
    window = windows[options.days]
    snapshot = snapshot_of(folder, options) if options.by == "group" else None
    uses = _by(options.by, window, snapshot)
    rows = [_stats_row(options.by, name, use, window) for name, use in uses.items()]
    if options.json:
        print_document({**_about(windows), "by": options.by, "rows": [_rounded_row(row) for row in rows]})
    else:
        _print(rows, _stats_row(options.by, None, Use(), window), windows, as_csv=options.csv)
    tell_age(_end(windows), options)
    return 0 if rows else 1


def _by(what: str, window: Window, snapshot: Snapshot | None) -> Mapping[str | None, Use]:
    if what == "user":
        return window.users
    if what == "state":
        return {state: Use(**{state: getattr(window.total, state)}) for state in _STATES}
    if what == "model":
        return {name or None: use for name, use in sorted(window.models.items())}
    from webmon.model import natural_order

    hosts = {host: window.hosts[host] for host in sorted(window.hosts, key=natural_order)}
    if what == "host":
        return {host: use for host, use in hosts.items()}  # noqa: C416 - dict() would keep the type
    groups = {host.host: host.group for host in snapshot.hosts} if snapshot else {}
    uses = grouped(hosts, groups.get)
    return {name: uses[name] for name in sorted(uses, key=lambda name: (name is None, name or ""))}


def _stats_row(by: str, name: str | None, use: Use, window: Window) -> dict[str, Any]:
    row: dict[str, Any] = {by: name}
    if by == "state":
        return row | {"gpu_hours": use.hours, "share_pct": 100 * use.hours / (window.total.hours or 1)}
    if by == "user":
        return row | {
            "gpu_hours": use.hours,
            "sole_hours": use.sole,
            "shared_hours": use.shared,
            "held_hours": use.held,
            "utilization_pct": use.utilization_pct,
            "kwh": use.kwh,
        }
    return row | {
        "gpu_hours": use.in_use,
        "occupancy_pct": use.occupancy_pct,
        "utilization_pct": use.utilization_pct,
        "free_pct": use.free_pct,
        "held_pct": use.held_pct,
        "kwh": use.kwh,
        "coverage_pct": window.coverage_pct(use),
    }


def _windows(folder: Path, wanted: Iterable[int], options: Namespace) -> dict[int, Window]:
    """Return what was used in the last days; NotEnough if nothing is known of any."""
    from webmon.store import stats
    from webmon.store.rollup import Rollups

    windows: dict[int, Window] = {}
    with reading(folder):
        end = stats.last_time(folder)
        rollups = None if end is None else Rollups(folder, end)
        if rollups and rollups.known_days():
            windows = {number: stats.window(rollups, number) for number in wanted}
    if rollups and rollups.unsaved and not options.quiet:
        print(f"webmon: some of the history is left out: {rollups.unsaved}", file=sys.stderr)
    if not windows:
        raise NotEnough(f"{folder} has no history yet: `webmon fetch` adds to it with each poll")
    if not any(window.polled_hours for window in windows.values()):
        longest = max(windows)
        raise NotEnough(f"{folder} has no poll of the last {longest} day{'' if longest == 1 else 's'}")
    return windows


def _end(windows: Mapping[int, Window]) -> datetime:
    return next(iter(windows.values())).end


def _about(windows: Mapping[int, Window]) -> dict[str, Any]:
    from webmon.store.table import to_cell

    return {
        "schema": 1,
        "until": to_cell(_end(windows)),
        "windows": [
            {
                "days": number,
                "since": to_cell(window.start),
                "polled_pct": _rounded(window.polled_pct),
                "coverage_pct": _rounded(window.coverage_pct(window.total)),
            }
            for number, window in windows.items()
        ],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _rounded_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _rounded(value) if isinstance(value, float) else value for name, value in row.items()}
