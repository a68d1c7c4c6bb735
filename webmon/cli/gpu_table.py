"""GPUs and who is on them, as rows of a table in a terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from webmon.availability import is_ignored
from webmon.cli import terminal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from webmon.availability import Rules
    from webmon.model import Process
    from webmon.pick.choose import Offer

_COLOURS = {
    "free": terminal.GREEN,
    "busy": terminal.BLUE,
    "held": terminal.YELLOW,
    "faulty": terminal.RED,
    "unknown": terminal.RED,
}

# To how few characters a column may be cut on a narrow terminal, the first one first.
_LEAST = {"pids": 8, "cmd": 16, "users": 10, "type": 16, "host": 8}

# Which columns go altogether where that is not enough, the first one first.
_SPARED = ("MHz", "temp.", "pids", "power", "since", "cmd", "type", "mem. used/total", "users")


def lines(listed: Sequence[Offer], now: datetime, rules: Rules, *, with_host: bool) -> list[str]:
    """Return the table, its header first, as wide and as colourful as the terminal is."""
    rows: list[dict[str, str]] = []
    colours: list[str | None] = []
    colourful = terminal.in_colour()
    for offer in listed:
        processes = using(offer, rules)
        status = _status(offer, processes)
        rows.append(_row(offer, processes, status, now))
        colour = terminal.RED if status == "[!]" else _COLOURS[offer.gpu.state]
        colours.append(colour if colourful else None)
    spared = _SPARED if with_host else ("host", *_SPARED)
    return terminal.table(rows, colours, least=_LEAST, spared=spared, width=terminal.screen_width(sys.stdout))


def using(offer: Offer, rules: Rules) -> list[Process]:
    """Return the processes that use a GPU: all but the ignored ones."""
    return [process for process in offer.processes or () if not is_ignored(process, rules)]


def _row(offer: Offer, processes: Sequence[Process], status: str, now: datetime) -> dict[str, str]:
    gpu = offer.gpu
    users = sorted({process.user or "?" for process in processes} | set(gpu.users))
    oldest = min((p.started_at for p in processes if p.started_at), default=None)
    return {
        "host": gpu.host,
        "id": f"{gpu.index:>2}",
        "status": status,
        "type": _model(gpu.name),
        "util.": f"{'-' if gpu.utilization_pct is None else gpu.utilization_pct:>3} %",
        "mem. used/total": _memory(gpu.memory_used_mib, gpu.memory_total_mib),
        "temp.": f"{'-' if gpu.temperature_c is None else gpu.temperature_c:>3} C",
        "MHz": f"{'-' if gpu.sm_clock_mhz is None else gpu.sm_clock_mhz:>4}",
        "power": _power(gpu.power_w, gpu.power_limit_w),
        "users": ",".join(users),
        "since": ago((now - oldest).total_seconds()) + "ago" if oldest else "",
        "pids": ",".join(str(process.pid) for process in processes),
        "cmd": ", ".join(dict.fromkeys(program_of(process) for process in processes)),
    }


def _status(offer: Offer, processes: Sequence[Process]) -> str:
    """Return `[ ]` for a free GPU, `[~]` for one in use, `[!]` where that or its user is not known."""
    if offer.gpu.state == "free":
        return "[ ]"
    is_known = offer.gpu.state in ("busy", "held") and all(process.user for process in processes)
    return "[~]" if is_known else "[!]"


def program_of(process: Process) -> str:
    """Say what a process runs."""
    program = process.command or process.name or ""
    return f"claimed, {process.command or 'by somebody'}" if process.is_claim else program


def _model(name: str | None) -> str:
    return (name or "-").removeprefix("NVIDIA ")


def _memory(used: int | None, total: int | None) -> str:
    parts = ("-" if mib is None else f"{mib}" for mib in (used, total))
    return "{:>6} / {:>6} MiB".format(*parts)


def _power(now: float | None, limit: float | None) -> str:
    parts = ("-" if watts is None else f"{watts:.0f}" for watts in (now, limit))
    return "{:>3} / {:>3} W".format(*parts)


def ago(seconds: float) -> str:
    """Return `2 days ` or `14 hours `."""
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            number = int(seconds // size)
            return f"{number} {unit}{'' if number == 1 else 's'} "
    return f"{max(0, int(seconds))} s "
