"""history: what one host or GPU did; and `history import`, which adds what another tool has kept."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from webmon.cli import terminal
from webmon.cli.as_data import print_document, print_rows
from webmon.cli.options import add, moment, number
from webmon.cli.stored import add_data_options, data_folder, reading, snapshot_of, tell_age
from webmon.columns import harmless
from webmon.config.glance import glance
from webmon.errors import NotEnough, WishError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence
    from pathlib import Path

    from webmon.cli.options import Commands
    from webmon.model import Snapshot
    from webmon.store.history import Sample

# How many polls are listed if nothing says how many: an hour's.
_USUAL_POLLS = 12

_STATE_COLOURS = {"free": terminal.GREEN, "busy": terminal.BLUE, "held": terminal.YELLOW}

# Which columns go altogether on a narrow terminal, the first one first.
_SPARED = ("model", "temp.", "power", "mem. used/total", "users")


class _Wanted(NamedTuple):
    """A host, or one GPU of it by its index or the beginning of its uuid."""

    host: str
    gpu: str | None = None

    def is_of(self, sample: Sample) -> bool:
        if sample.host != self.host:
            return False
        if self.gpu is None or self.gpu == str(sample.index):
            return True
        return not self.gpu.isdigit() and (sample.uuid or "").startswith(self.gpu)


def add_commands(commands: Commands) -> None:
    """Add `history`."""
    command = add(
        commands,
        "history",
        _history,
        "List what a host or a GPU of it did, or import what another tool kept",
        "  webmon history gpu07                        the last 12 polls of all its GPUs\n"
        "  webmon history gpu07:2 -n 100               the last 100 of one of them\n"
        "  webmon history gpu07:2 --since 2h           or --since 2026-11-17, or 2026-11-17T08:00\n"
        "  webmon history gpu07 --since 30d --csv > gpu07.csv\n"
        "  webmon history import load_data.csv         one poll of Web-GPU-Monitor, as of the file's time",
    )
    command.add_argument(
        "what",
        nargs="+",
        metavar="HOST[:GPU]",
        help="a host, or a GPU of it by its index, or how its uuid begins; or import FILE…",
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
    if options.since and options.since > datetime.now(UTC):
        raise WishError(
            f"--since {options.since:%Y-%m-%d %H:%M} UTC is yet to come", "It is a time in the past"
        )
    folder = data_folder(options, glance(options.config))
    snapshot = snapshot_of(folder, options)
    wanted = _wanted(options.what[0], snapshot)
    with reading(folder):
        samples = _samples(folder, wanted, options.n, options.since)
    if not samples:
        raise NotEnough(_nothing(wanted[0], options, folder, snapshot))
    if options.json:
        rows = [_as_data(sample) for sample in samples]
        print_document({"schema": 1, "host": samples[0].host, "samples": rows})
    elif options.csv:
        from webmon.store.table import to_cell

        print_rows(
            samples[0]._fields,
            [{name: to_cell(value) for name, value in sample._asdict().items()} for sample in samples],
        )
    else:
        _print(samples)
    if snapshot:
        tell_age(snapshot.taken_at, options)
    return 0


def _wanted(text: str, snapshot: Snapshot | None) -> Sequence[_Wanted]:
    """Read `gpu07`, `gpu07:3`, `old:2222:0` or `gpu07:GPU-4f…`: what it can mean, the likeliest first.

    Of a host that the snapshot does not have, it can't be told whether `old:2222` is all of it.
    """
    hosts = {host.host for host in snapshot.hosts} if snapshot else set()
    host, _, gpu = text.rpartition(":")
    whole, part = _Wanted(text), _Wanted(host, gpu)
    if text in hosts or not host or not gpu:
        return (whole,)
    return (part,) if host in hosts else (whole, part)


def _samples(
    folder: Path, wanted: Sequence[_Wanted], polls: int | None, since: datetime | None
) -> list[Sample]:
    """Return the newest polls, or all since a moment, in the order of their times."""
    from webmon.store import history

    most = polls if polls is not None else None if since else _USUAL_POLLS
    found: list[Sample] = []
    for day in reversed(history.days(folder)):
        if since is not None and day < since.date():
            break
        of_day = history.read(folder, [one.host for one in wanted], day)
        for one in wanted:
            hits = [s for s in of_day if one.is_of(s) and (since is None or s.time >= since)]
            if hits:
                wanted, found = (one,), hits + found
                break
        times = sorted({sample.time for sample in found})
        if most is not None and len(times) >= most:
            return [sample for sample in found if sample.time >= times[-most]]
    return found


def _nothing(wanted: _Wanted, options: Namespace, folder: Path, snapshot: Snapshot | None) -> str:
    """Say that nothing was found, and what may have been meant."""
    from webmon.store import history

    if not history.days(folder):
        return f"{folder} has no history yet: `webmon fetch` adds to it with each poll"
    since = f" since {options.since:%Y-%m-%d %H:%M} UTC" if options.since else ""
    told = f"the history has nothing of {harmless(options.what[0])}{since}"
    if snapshot is None:
        return told
    names = [host.host for host in snapshot.hosts]
    if wanted.host in names:
        indices = [str(gpu.index) for gpu in snapshot.gpus if gpu.host == wanted.host]
        return f"{told}; {wanted.host} has {', '.join(indices) or 'no GPU'}" if wanted.gpu else told
    from difflib import get_close_matches

    close = get_close_matches(wanted.host, names, 1)
    return f"{told}; did you mean {close[0]}?" if close else told


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
    for line in terminal.table(rows, colours, least={"model": 12, "users": 8}, spared=_SPARED, width=width):
        print(line)


def _or_dash(value: int | None) -> str:
    return "-" if value is None else str(value)


def _as_data(sample: Sample) -> dict[str, Any]:
    from webmon.store.table import to_cell

    users = [user.rpartition("=") if "=" in user else (user, "", "") for user in sample.users]
    memory = {user: int(mib) if mib.isdigit() else None for user, _, mib in users}
    return {**sample._asdict(), "time": to_cell(sample.time), "users": memory}


def _import(options: Namespace) -> int:
    """Add files of Web-GPU-Monitor to the history, and sum them up."""
    from pathlib import Path

    from webmon import pipeline
    from webmon.cli.common import data_of, load, say
    from webmon.store import load_data, lock

    files = options.what[1:]
    if not files:
        raise WishError("no file is named", "Say `webmon history import load_data.csv`")
    if options.n or options.since or options.json or options.csv:
        raise WishError("-n, --since, --json and --csv are for looking", "Import first, and look then")
    config = load(options)
    folder = data_of(options, config)
    samples = [sample for file in files for sample in load_data.read(Path(file), options.time)]
    if not samples:
        raise NotEnough("there are no samples to import: only headers")
    newest = max(sample.time for sample in samples)
    if newest > datetime.now(UTC) + timedelta(minutes=5):
        raise WishError(f"{newest:%Y-%m-%d %H:%M} UTC is in the future", "Check --time, or the column `time`")
    try:
        with lock.hold(folder):
            new = pipeline.add_to_history(config, folder, samples)
    except lock.Locked as holder:
        raise NotEnough(
            f"a fetch is at work ({holder}); nothing imported: try again when it is done"
        ) from None
    oldest = min(sample.time for sample in samples)
    say(options, f"webmon: {new} of {len(samples)} samples were new", always=True)
    if datetime.now(UTC) - oldest > timedelta(days=config.data.keep_days):
        say(
            options,
            f"webmon: some are older than [data] keep_days = {config.data.keep_days}: their days are summed "
            "up, and the samples go with the next fetch",
            always=True,
        )
    return 0
