"""users, stats: who used how much, and how much the GPUs were used."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from webmon.cli import terminal
from webmon.cli.as_data import print_document, print_rows
from webmon.cli.options import add, days
from webmon.config.glance import glance
from webmon.errors import ConfigError, DataError, NotEnough
from webmon.usage import Use, total, users_now

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from webmon.cli.options import Commands, Parser
    from webmon.config.glance import Glance
    from webmon.model import Snapshot
    from webmon.store.rollup import Rollups
    from webmon.usage import Now, Window

# What `webmon users` tells of, and which of them has the details, if no number of days is given.
_USUAL_DAYS = (1, 7, 30, 365)
_DETAILED_DAYS = 30

_STATES = ("free", "busy", "held", "faulty", "unknown")

# Columns of texts; the others are numbers.
_TEXTS = ("user", "host", "model", "group", "state", "on")

_NOBODY = "?"


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
        "  webmon stats --by user --days 365 --csv     for a spreadsheet",
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


def add_data_options(command: Parser) -> None:
    """Add where the data are, and the forms of the answer."""
    command.add_argument("--data", metavar="DIR", help="the data folder (default: [data] dir)")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--csv", action="store_true", help="as CSV")


def data_folder(options: Namespace, settings: Glance) -> Path:
    """Return the data folder; ConfigError if nothing says where it is."""
    from pathlib import Path

    folder = Path(options.data) if options.data is not None else settings.data
    if folder is None:
        raise ConfigError(
            "where the data are is not known: there is no configuration",
            "Name it with -c, or the data folder with --data; the page of webmon tells the same",
        )
    return folder


def snapshot_of(folder: Path) -> Snapshot | None:
    """Return the last snapshot, if there is one that can be read."""
    from webmon.store import snapshot

    try:
        return snapshot.load(folder)
    except DataError:
        return None


def _users(options: Namespace) -> int:
    settings = glance(options.config)
    folder = data_folder(options, settings)
    wanted = (options.days,) if options.days else _USUAL_DAYS
    detailed = options.days or _DETAILED_DAYS
    windows = _windows(folder, wanted)
    snapshot = snapshot_of(folder)
    now = users_now(snapshot, settings.free) if snapshot else {}
    names = sorted(
        {*now, *(user for window in windows.values() for user in window.users)}, key=_first(now, windows)
    )
    if options.json:
        print_document(
            {
                **_about(windows),
                "users": [
                    {
                        "user": user,
                        "now": _now_as_data(now.get(user)),
                        "days": {
                            str(n): _user_as_data(window.users.get(user, Use()))
                            for n, window in windows.items()
                        },
                    }
                    for user in names
                ],
            }
        )
        return 0
    rows = [_user_row(user, now.get(user), windows, detailed, only=options.days) for user in names]
    if options.csv:
        print_rows(rows)
    else:
        print(*_coverage_lines(windows), "", sep="\n")
        _print_table(rows)
    if not rows:
        raise NotEnough("nobody used a GPU, as far as is known")
    return 0


def _first(now: Mapping[str | None, Now], windows: Mapping[int, Window]) -> Any:
    """Order by the memory that users have now, as GPU Monitor does, and then by what they used."""
    longest = max(windows)

    def key(user: str | None) -> tuple[Any, ...]:
        held = now.get(user)
        use = windows[longest].users.get(user, Use())
        return (-((held.memory_mib or 0) if held else 0), -(held.held if held else 0), -use.hours, user or "")

    return key


def _user_row(
    user: str | None, held: Now | None, windows: Mapping[int, Window], detailed: int, *, only: int | None
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "user": _NOBODY if user is None else user,
        "gpus": held.held if held else 0,
        "memory_mib": held.memory_mib if held else 0,
        "processes": held.processes if held else 0,
        "on": held.places if held else "",
    }
    for number, window in windows.items():
        row[f"gpu_hours_{number}d"] = window.users.get(user, Use()).hours
    use = windows[detailed].users.get(user, Use())
    if only:
        row |= {"sole_hours": use.sole, "shared_hours": use.shared, "utilization_pct": use.utilization_pct}
    return row | {f"held_hours_{detailed}d": use.held, f"kwh_{detailed}d": use.kwh}


def _user_as_data(use: Use) -> dict[str, float | None]:
    return {
        "gpu_hours": _rounded(use.hours),
        "sole_hours": _rounded(use.sole),
        "shared_hours": _rounded(use.shared),
        "shared_cards_hours": _rounded(use.beside),
        "held_hours": _rounded(use.held),
        "utilization_pct": _rounded(use.utilization_pct),
        "kwh": _rounded(use.kwh),
    }


def _now_as_data(held: Now | None) -> dict[str, Any]:
    if held is None:
        return {"gpus": 0, "memory_mib": 0, "processes": 0, "on": {}}
    return {
        "gpus": held.held,
        "memory_mib": held.memory_mib,
        "processes": held.processes,
        "on": held.gpus,
    }


def _stats(options: Namespace) -> int:
    settings = glance(options.config)
    folder = data_folder(options, settings)
    window = _windows(folder, (options.days,))[options.days]
    rows = [
        _stats_row(options.by, name, use, window) for name, use in _by(options.by, window, folder).items()
    ]
    if options.json:
        print_document(
            {**_about({options.days: window}), "by": options.by, "rows": [_rounded_row(row) for row in rows]}
        )
    elif options.csv:
        print_rows(rows)
    else:
        print(*_coverage_lines({options.days: window}), "", sep="\n")
        _print_table(rows)
    return 0


def _by(what: str, window: Window, folder: Path) -> Mapping[str | None, Use]:
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
    snapshot = snapshot_of(folder)
    groups = {host.host: host.group for host in snapshot.hosts} if snapshot else {}
    names = sorted({groups.get(host) for host in hosts}, key=lambda name: (name is None, name or ""))
    return {name: total(use for host, use in hosts.items() if groups.get(host) == name) for name in names}


def _stats_row(by: str, name: str | None, use: Use, window: Window) -> dict[str, Any]:
    row: dict[str, Any] = {by: _NOBODY if name is None else name}
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


def _windows(folder: Path, wanted: Iterable[int]) -> dict[int, Window]:
    """Return what was used in the last days; NotEnough if nothing is known of any."""
    from webmon.store import stats
    from webmon.store.rollup import Rollups

    end = stats.last_time(folder)
    if end is None:
        raise NotEnough(f"{folder} has no history yet: `webmon fetch` adds to it with each poll")
    rollups: Rollups = Rollups(folder, end)
    windows = {number: stats.window(rollups, number) for number in wanted}
    if not any(window.polled_hours for window in windows.values()):
        raise NotEnough(f"{folder} has no poll of the last {max(windows)} days")
    return windows


def _about(windows: Mapping[int, Window]) -> dict[str, Any]:
    from webmon.store.table import to_cell

    end = next(iter(windows.values())).end
    return {
        "schema": 1,
        "until": to_cell(end),
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


def _coverage_lines(windows: Mapping[int, Window]) -> Iterable[str]:
    for number, window in windows.items():
        known = window.coverage_pct(window.total)
        yield (
            f"last {number} day{'s' * (number != 1)}, since {window.start:%Y-%m-%d %H:%M} UTC: "
            f"{window.polled_pct:.1f} % polled, {known:.1f} % of the GPU-hours known"
        )


def _print_table(rows: list[dict[str, Any]]) -> None:
    """Print rows as people read them: units in the header, numbers at the right."""
    columns = {_heading(name): [_cell(name, row[name]) for row in rows] for name in (rows[0] if rows else ())}
    texts = {_heading(name) for name in _TEXTS}
    aligned = {}
    for name, cells in columns.items():
        size = 0 if name in texts else max(len(text) for text in (name, *cells))
        aligned[name.rjust(size)] = [cell.rjust(size) for cell in cells]
    shown = [dict(zip(aligned, cells, strict=True)) for cells in zip(*aligned.values(), strict=True)]
    least = {"on": 12, "user": 8, "host": 8, "model": 12, "group": 8}
    width = terminal.screen_width(sys.stdout)
    for line in terminal.table(shown, [None] * len(shown), least=least, spared=("on",), width=width):
        print(line)


def _heading(name: str) -> str:
    """Write `gpu_hours_7d` as `GPU-h 7d`."""
    words = {"gpu_hours": "GPU-h", "held_hours": "held h", "sole_hours": "sole h", "shared_hours": "shared h"}
    words |= {
        "gpus": "GPUs",
        "memory_mib": "memory",
        "kwh": "kWh",
        "occupancy_pct": "in use",
        "coverage_pct": "known",
    }
    with_span = re.fullmatch(r"(.*)_(\d+d)", name)
    stem, span = with_span.groups() if with_span else (name, "")
    return f"{words.get(stem, stem.removesuffix('_pct').replace('_', ' '))} {span}".strip()


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name == "memory_mib":
        return f"{value / 1024:.1f} GB"
    if name.endswith("_pct"):
        return f"{value:.1f} %" if name == "coverage_pct" else f"{value:.0f} %"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _rounded_row(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: None if value == _NOBODY else _rounded(value) if isinstance(value, float) else value
        for name, value in row.items()
    }
