"""available, select, wait: which GPU is mine."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from webmon.cli.become import become
from webmon.cli.listing import add_cluster_options, is_about_the_cluster, load_cluster
from webmon.cli.options import add, count, duration, percentage, seconds
from webmon.cli.wishes import add_kind, add_wish, wish_of
from webmon.config.glance import glance
from webmon.errors import NotEnough, SiteError
from webmon.pick import choose, cluster, here, remote

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from webmon.cli.options import Commands
    from webmon.model import Gpu


def add_commands(commands: Commands) -> None:
    """Add `available`, `select` and `wait`."""
    available = add(
        commands,
        "available",
        _available,
        "Print the ids of the free GPUs, for scripts",
        "  CUDA_VISIBLE_DEVICES=$(webmon available) python train.py        all of them\n"
        "  CUDA_VISIBLE_DEVICES=$(webmon available -l 1) python train.py   at most one\n"
        "  webmon available --sort free-memory\n"
        "  webmon available --cluster --name A100                          host:id, one a line",
    )
    available.add_argument("-l", "--limit", type=count, metavar="N", help="at most so many")
    available.add_argument(
        "--max-used-percent",
        type=percentage,
        metavar="P",
        help="memory that may be in use, in %% (default: [free] max_memory_pct, 5)",
    )
    add_kind(available)
    available.add_argument("--sort", choices=choose.ORDERS, default="index", help="default: %(default)s")
    add_cluster_options(available)
    select = add(
        commands,
        "select",
        _select,
        "Pick idle GPUs and print their ids, or become a command that sees only them",
        "  webmon select -- python train.py --lr 0.1     on any free GPU, claimed for as long as it runs\n"
        "  webmon select --count 2 --name A6000 -- python train.py\n"
        "  webmon select --util 10 --processes 1         one that somebody uses a little will do\n"
        '  docker run --gpus \\"device=$(webmon select --count 2)\\" image\n'
        "  webmon select --cluster --free-memory 20G     prints host:id\n"
        "  webmon select --cluster -- nvidia-smi         runs it there, through ssh",
    )
    wait = add(
        commands,
        "wait",
        _wait,
        "Wait until enough GPUs are free, then do as select does",
        "  webmon wait -- python train.py                first come, first served\n"
        "  webmon wait --count 4 --timeout 2h -- ./run.sh\n"
        "  webmon wait --cluster --name H100 && echo there is one",
    )
    for command in (select, wait):
        add_wish(command)
        add_cluster_options(command)
    wait.add_argument(
        "--timeout", type=duration, metavar="TIME", help="give up after 2h, 30m, 90s (exit code 124)"
    )
    wait.add_argument(
        "--every", type=seconds, metavar="SECONDS", help="look so often (default: 2, or 15 with --cluster)"
    )


def _available(options: Namespace) -> int:
    settings = glance(options.config)
    wish = choose.Wish(
        name=options.name, free_memory_mib=options.free_memory, max_used_pct=options.max_used_percent
    )
    if is_about_the_cluster(options):
        snapshot = load_cluster(options, settings)
    else:
        from webmon.collect.here import look

        snapshot = look(settings)
    free = [offer for offer in choose.offers(snapshot) if choose.fits(offer, wish, settings.free)]
    ids = [
        f"{offer.gpu.host}:{offer.gpu.index}" if is_about_the_cluster(options) else str(offer.gpu.index)
        for offer in choose.ordered(free, options.sort, lambda: os.urandom(8))[: options.limit]
    ]
    if is_about_the_cluster(options):
        print("".join(f"{id_}\n" for id_ in ids), end="")
    else:
        print(",".join(ids))  # an empty line hides all GPUs, where it becomes CUDA_VISIBLE_DEVICES
    if not ids:
        raise NotEnough("no such GPU is free" if options.name or options.free_memory else "no GPU is free")
    return 0


def _select(options: Namespace) -> int:
    wish = wish_of(options)
    settings = glance(options.config)
    if is_about_the_cluster(options):
        host, gpus = cluster.pick(wish, load_cluster(options, settings), settings.free)
        return _go_there(options, host, gpus)
    return _go(options, here.pick(wish, settings, claim=not options.no_claim))


def _wait(options: Namespace) -> int:
    from webmon.cli.progress import Waiting
    from webmon.pick import wait

    wish = wish_of(options)
    settings = glance(options.config)
    waiting = Waiting(wish.count, shown=sys.stderr.isatty() and not options.quiet)
    try:
        if is_about_the_cluster(options):
            host, gpus = wait.until(
                lambda: cluster.pick(wish, load_cluster(options, settings), settings.free),
                options.timeout,
                options.every or wait.EVERY_CLUSTER_S,
                waiting,
            )
        else:
            every = options.every or wait.EVERY_HERE_S
            selection = wait.here_until(
                wish, settings, options.timeout, every, waiting, claim=not options.no_claim
            )
    finally:
        waiting.clear()
    return _go_there(options, host, gpus) if is_about_the_cluster(options) else _go(options, selection)


def _go(options: Namespace, selection: here.Selection) -> int:
    """Print the GPUs of this machine that were picked, or become the command."""
    ids = selection.uuids if options.uuid else selection.ids
    if options.program is None:
        if not options.quiet:
            print(ids)
        return 0
    if options.verbose:
        print(f"webmon: GPU {ids}", file=sys.stderr)
    environment = {**os.environ, **selection.environment, "CUDA_VISIBLE_DEVICES": ids}
    return become(options.program, environment, keep=selection.held.values())


def _go_there(options: Namespace, host: str, gpus: Sequence[Gpu]) -> int:
    """Print the GPUs of another host that were picked, or become an ssh that runs the command there."""
    ids = ",".join((gpu.uuid or "") if options.uuid else str(gpu.index) for gpu in gpus)
    if options.program is None:
        if not options.quiet:
            print(f"{host}:{ids}")
        return 0
    if host == "self" and (options.site_url or (not options.data and os.environ.get(cluster.SITE_VARIABLE))):
        raise SiteError(
            f"GPU {ids} of the monitoring machine itself was picked, and the site doesn't say its name",
            "Log in there, and say `webmon select -- …`",
        )
    if options.verbose or (sys.stderr.isatty() and not options.quiet):
        print(f"webmon: GPU {ids} of {host}", file=sys.stderr)  # else nobody knows where this is
    return become(
        remote.command(host, gpus, options.program, by_uuid=options.uuid, claim=not options.no_claim),
        dict(os.environ),
    )
