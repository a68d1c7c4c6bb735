"""history: what one host or GPU did; and `history import`, which adds what another tool has kept."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from webmon.cli import terminal
from webmon.cli.as_data import print_document, print_rows
from webmon.cli.options import add, moment, number
from webmon.cli.usage import add_data_options, data_folder, snapshot_of
from webmon.config.glance import glance
from webmon.errors import NotEnough, WishError

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path

    from webmon.cli.options import Commands
    from webmon.store.history import Sample

# How many polls are listed if nothing says how many: an hour's.
_USUAL_POLLS = 12

_STATE_COLOURS = {"free": terminal.GREEN, "busy": terminal.BLUE, "held": terminal.YELLOW}


def add_commands(commands: Commands) -> None:
    """Add `history`."""
    command = add(
        commands,
        "history",
        _history,
        "List what a host, or one of its GPUs, did in the past; or import what another tool has kept",
        "  webmon history gpu07                        the last 12 polls of all its GPUs\n"
        "  webmon history gpu07:3 -n 100               the last 100 of one of them\n"
        "  webmon history gpu07:3 --since 2h           or --since 2026-11-17, or 2026-11-17T08:00\n"
        "  webmon history gpu07 --since 30d --csv > gpu07.csv\n"
        "  webmon history import load_data.csv         one poll of Web-GPU-Monitor, as of the file's time",
    )
    command.add_argument(
        "what",
        nargs="+",
        metavar="HOST[:GPU]",
        help="a host, or a GPU of it by its index or uuid; or import FILE…",
    )
    command.add_argument("-n", type=number, metavar="N", help=f"the newest N polls (default: {_USUAL_POLLS})")
    command.add_argument(
        "--since",
        type=moment,
        metavar="WHEN",
        help="all polls since then: 2h, 30d, 2026-11-17, or 2026-11-17T08:00 (UTC)",
    )
    command.add_argument(
        "--time",
        type=moment,
        metavar="WHEN",
        help="with import: when the poll was (default: the file's time)",
    )
    add_data_options(command)
    command.usage = "webmon history HOST[:GPU] [options]\n       webmon history import FILE… [options]"


def _history(options: Namespace) -> int:
    if options.what[0] == "import":
        return _import(options)
    if len(options.what) > 1:
        raise WishError("one host or GPU at a time", "`webmon stats --by host` has all of them")
    if options.time is not None:
        raise WishError("--time goes with `webmon history import`", "Did you mean --since?")
    folder = data_folder(options, glance(options.config))
    host, gpu = _wanted(options.what[0], folder)
    samples = _samples(folder, host, gpu, options.n, options.since)
    if not samples:
        when = f" since {options.since:%Y-%m-%d %H:%M} UTC" if options.since else ""
        raise NotEnough(f"the history has nothing of {options.what[0]}{when}{_suggested(host, folder)}")
    if options.json:
        print_document({"schema": 1, "host": host, "samples": [_as_data(sample) for sample in samples]})
    elif options.csv:
        from webmon.store.table import to_cell

        print_rows([{name: to_cell(value) for name, value in sample._asdict().items()} for sample in samples])
    else:
        _print(samples)
    return 0


def _wanted(text: str, folder: Path) -> tuple[str, str | None]:
    """Read `gpu07`, `gpu07:3`, `old:2222:0` or `gpu07:GPU-4f…`; a name in the snapshot is a host."""
    snapshot = snapshot_of(folder)
    hosts = {host.host for host in snapshot.hosts} if snapshot else set()
    host, colon, gpu = text.rpartition(":")
    if text in hosts or not colon:
        return text, None
    return (host, gpu) if host in hosts or gpu.isdigit() or gpu.startswith(("GPU-", "MIG-")) else (text, None)


def _samples(
    folder: Path, host: str, gpu: str | None, polls: int | None, since: datetime | None
) -> list[Sample]:
    """Return the newest polls, or all since a moment, in the order of their times."""
    from webmon.store import history

    most = polls if polls is not None else None if since else _USUAL_POLLS
    found: list[Sample] = []
    for day in reversed(history.days(folder)):
        if since is not None and day < since.date():
            break
        of_day = history.read(folder, [host], day)
        found = [
            sample
            for sample in of_day
            if (gpu is None or gpu in (str(sample.index), sample.uuid))
            and (since is None or sample.time >= since)
        ] + found
        times = sorted({sample.time for sample in found})
        if most is not None and len(times) >= most:
            return [sample for sample in found if sample.time >= times[-most]]
    return found


def _print(samples: list[Sample]) -> None:
    rows = [
        {
            "time (UTC)": f"{sample.time:%Y-%m-%d %H:%M:%S}",
            "GPU": f"{sample.index:>3}",
            "state": sample.state,
            "util.": f"{_or_dash(sample.utilization_pct):>3} %",
            "mem. used/total": " / ".join(
                f"{_or_dash(mib):>6}" for mib in (sample.memory_used_mib, sample.memory_total_mib)
            )
            + " MiB",
            "power": f"{'-' if sample.power_w is None else round(sample.power_w):>4} W",
            "temp.": f"{_or_dash(sample.temperature_c):>3} C",
            "users": ",".join(user.rpartition("=")[0] or user for user in sample.users),
            "model": (sample.name or "-").removeprefix("NVIDIA "),
        }
        for sample in samples
    ]
    colourful = terminal.in_colour()
    colours = [_STATE_COLOURS.get(sample.state, terminal.RED) if colourful else None for sample in samples]
    width = terminal.screen_width(sys.stdout)
    spared = ("model", "temp.", "power", "users")
    for line in terminal.table(rows, colours, least={"model": 12, "users": 8}, spared=spared, width=width):
        print(line)


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)


def _as_data(sample: Sample) -> dict[str, Any]:
    from webmon.store.table import to_cell

    users = [user.rpartition("=") if "=" in user else (user, "", "") for user in sample.users]
    memory = {user: int(mib) if mib.isdigit() else None for user, _, mib in users}
    return {**sample._asdict(), "time": to_cell(sample.time), "users": memory}


def _suggested(host: str, folder: Path) -> str:
    from difflib import get_close_matches

    snapshot = snapshot_of(folder)
    names = [one.host for one in snapshot.hosts] if snapshot else []
    close = get_close_matches(host, names, 1) if host not in names else []
    return f"; did you mean {close[0]}?" if close else ""


def _import(options: Namespace) -> int:
    """Add files of Web-GPU-Monitor to the history, and sum them up."""
    from pathlib import Path

    from webmon import config as configuration
    from webmon import pipeline
    from webmon.cli.common import data_of, say
    from webmon.store import load_data, lock

    files = options.what[1:]
    if not files:
        raise WishError("which file?", "`webmon history import load_data.csv`")
    config = configuration.load(configuration.find(options.config))
    folder = data_of(options, config)
    samples = [sample for file in files for sample in load_data.read(Path(file), options.time)]
    try:
        with lock.hold(folder):
            new = pipeline.add_to_history(config, folder, samples)
    except lock.Locked as holder:
        raise NotEnough(
            f"a fetch is at work ({holder}); nothing imported: try again when it is done"
        ) from None
    oldest = min((sample.time for sample in samples), default=None)
    say(options, f"{new} of {len(samples)} samples were new", always=True)
    if oldest and datetime.now(UTC) - oldest > timedelta(days=config.data.keep_days):
        say(
            options,
            f"some are older than [data] keep_days = {config.data.keep_days}: their days are summed up, "
            "and the samples go with the next fetch",
            always=True,
        )
    return 0
