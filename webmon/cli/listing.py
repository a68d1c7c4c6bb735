"""`webmon list`: the GPUs of this machine, or of the whole cluster, and who is on them."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from webmon.cli import gpu_table
from webmon.cli.options import add
from webmon.cli.stored import OLD_S
from webmon.columns import harmless
from webmon.config.glance import glance
from webmon.errors import NotEnough, WishError
from webmon.model import Snapshot
from webmon.pick.choose import ORDERS, Offer, offers, ordered

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from webmon.availability import Rules
    from webmon.cli.options import Commands, Parser
    from webmon.config.glance import Glance
    from webmon.model import Host

_STATES = ("free", "held", "busy", "unknown", "faulty")


def add_commands(commands: Commands) -> None:
    """Add `list`."""
    command = add(
        commands,
        "list",
        _list,
        "List GPUs and who is on them: this machine's, or with --cluster everybody's",
        "  webmon                                 this machine, the short form\n"
        "  webmon list --cluster                  the last snapshot of all hosts\n"
        "  webmon list --from http://mon/gpus/    the same, from webmon's page\n"
        '  webmon list gpu07 "gpu1*"              some hosts of it\n'
        '  webmon list --cluster --filter "free a100" --sort free-memory\n'
        "  webmon list --json | jq '.gpus[].state'",
    )
    command.add_argument(
        "hosts",
        nargs="*",
        metavar="HOST",
        help="only these hosts of the cluster: names, or patterns like gpu1*",
    )
    add_cluster_options(command)
    command.add_argument(
        "--filter",
        metavar="WORDS",
        help='only GPUs that have all these words in host, model, state, users …: "free a100"',
    )
    orders = (*ORDERS, "state")
    command.add_argument(
        "--sort",
        metavar="ORDER",
        choices=orders,
        default="index",
        help=f"which first: {', '.join(orders)} (default: %(default)s)",
    )
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON, in the form of the site's snapshot.json")
    form.add_argument("--csv", action="store_true", help="as CSV, with the columns of gpus.csv")
    command.usage = "webmon list [HOST…] [options]"


def add_cluster_options(command: Parser) -> None:
    """Add what says that the cluster is meant, and where its last snapshot is."""
    command.add_argument(
        "--cluster",
        action="store_true",
        help="the whole cluster, as its last snapshot has it, and not this machine",
    )
    place = command.add_mutually_exclusive_group()
    place.add_argument(
        "--from",
        dest="site_url",
        metavar="URL",
        help="the cluster, as webmon's page there has it (--cluster alone: the page at $WEBMON_SITE)",
    )
    place.add_argument("--data", metavar="DIR", help="the cluster, as this data folder has it")


def is_about_the_cluster(options: Namespace) -> bool:
    """Tell whether the cluster is meant."""
    return options.cluster or options.site_url is not None or options.data is not None


def load_cluster(options: Namespace, settings: Glance) -> Snapshot:
    """Return the last snapshot, and say so if it is old."""
    from pathlib import Path

    from webmon.pick import cluster

    data = Path(options.data) if options.data is not None else None
    snapshot = cluster.load(options.site_url, data, lambda: settings.data)
    age = (datetime.now(UTC) - snapshot.taken_at).total_seconds()
    if age > OLD_S and not options.quiet and "told_age" not in options:
        options.told_age = True  # `wait` comes here again and again
        told = f"webmon: this snapshot is {gpu_table.ago(age)}old: is webmon still run by cron?"
        print(told, file=sys.stderr)
    return snapshot


def _list(options: Namespace) -> int:
    settings = glance(options.config)
    name = os.uname().nodename
    is_elsewhere = any(host not in (name, name.partition(".")[0]) for host in options.hosts)
    is_cluster = is_elsewhere or is_about_the_cluster(options)
    if is_cluster:
        snapshot = _only_hosts(load_cluster(options, settings), options.hosts)
    else:
        from webmon.collect.here import look

        snapshot = look(settings)
    listed = _filtered(offers(snapshot), options.filter, snapshot, settings.free)
    if options.sort == "state":
        listed.sort(key=lambda offer: _STATES.index(offer.gpu.state))
    else:
        listed = ordered(listed, options.sort, lambda: os.urandom(8))
    if options.json:
        from webmon.cli.as_data import print_json

        print_json(snapshot, listed)
    elif options.csv:
        from webmon.cli.as_data import print_csv

        print_csv(listed)
    elif listed:
        for line in gpu_table.lines(listed, snapshot.taken_at, settings.free, with_host=is_cluster):
            print(line)
    _tell_trouble(snapshot, quiet=options.quiet)
    if not listed and (options.filter or not is_cluster):
        raise NotEnough("no GPU matches" if options.filter else "this machine has no GPU")
    if not listed and not (options.json or options.csv):  # those say it themselves
        raise NotEnough(f"the snapshot has no GPU{' of these hosts' if options.hosts else ''}")
    return 0 if listed else 1


def _only_hosts(snapshot: Snapshot, patterns: Sequence[str]) -> Snapshot:
    if not patterns:
        return snapshot
    wanted: dict[str, None] = {}
    for pattern in patterns:
        hits = [
            host.host
            for host in snapshot.hosts
            if fnmatchcase(host.host, pattern) or pattern in (host.host, host.label)
        ]
        if not hits:
            from difflib import get_close_matches

            close = get_close_matches(pattern, [host.host for host in snapshot.hosts], 1)
            remedy = f"Did you mean {close[0]!r}?" if close else ""
            raise WishError(f"there is no host {pattern!r} in the snapshot", remedy)
        wanted.update(dict.fromkeys(hits))
    return Snapshot(
        snapshot.taken_at,
        tuple(host for host in snapshot.hosts if host.host in wanted),
        tuple(gpu for gpu in snapshot.gpus if gpu.host in wanted),
        tuple(process for process in snapshot.processes if process.host in wanted),
    )


def _filtered(offered: list[Offer], words: str | None, snapshot: Snapshot, rules: Rules) -> list[Offer]:
    if not words:
        return offered
    asked = words.casefold().split()
    hosts = {host.host: host for host in snapshot.hosts}
    return [
        offer
        for offer in offered
        if all(word in _text(offer, hosts[offer.gpu.host], rules) for word in asked)
    ]


def _text(offer: Offer, host: Host, rules: Rules) -> str:
    """Return all that a filter looks at."""
    gpu, using = offer.gpu, gpu_table.using(offer, rules)
    parts = [
        host.host,
        host.label,
        host.group,
        gpu.name,
        gpu.state,
        *gpu.users,
        *map(gpu_table.program_of, using),
    ]
    return "\n".join(part for part in parts if part).casefold()


def _tell_trouble(snapshot: Snapshot, *, quiet: bool) -> None:
    """Say what is wrong with the hosts that are listed: it is no part of the table."""
    for host in snapshot.hosts:
        if host.error and not quiet:
            told = harmless(f"{host.host} is {host.status}: {host.error}")
            print(f"webmon: {told}", file=sys.stderr)
