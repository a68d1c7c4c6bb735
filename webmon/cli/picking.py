"""available, select, wait: which GPU is mine."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from webmon.cli.become import become
from webmon.cli.listing import add_cluster_options, is_about_the_cluster, load_cluster
from webmon.cli.options import add, count, devices, duration, memory, percentage, seconds, whole
from webmon.config.glance import glance
from webmon.errors import NotEnough, SiteError, WishError
from webmon.pick import choose, cluster, here, remote

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from webmon.cli.options import Commands, Parser
    from webmon.model import Gpu
    from webmon.pick.choose import Wish


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
    _add_kind(available)
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
        _add_wish(command)
        add_cluster_options(command)
    wait.add_argument(
        "--timeout", type=duration, metavar="TIME", help="give up after 2h, 30m, 90s (exit code 124)"
    )
    wait.add_argument(
        "--every", type=seconds, metavar="SECONDS", help="look so often (default: 2, or 15 with --cluster)"
    )


def _add_kind(command: Parser) -> None:
    command.add_argument("-n", "--name", help="only models with this in their name: A6000")
    command.add_argument(
        "--free-memory", type=memory, metavar="SIZE", help="at least so much free memory: 20G, 5000M"
    )


def _add_wish(command: Parser) -> None:
    command.add_argument("--count", type=count, metavar="N", help="default: 1, or all of --devices")
    _add_kind(command)
    command.add_argument("-d", "--devices", type=devices, metavar="IDS", help="only among these: 0,2")
    command.add_argument("-u", "--util", type=percentage, metavar="P", help="utilization of at most P %%")
    both = ("--mem_util", "--mem-util")  # as gpuselect has it, and as all other options are written
    command.add_argument("-m", *both, type=percentage, metavar="P", help="memory utilization of at most P %%")
    command.add_argument("-p", "--processes", type=whole, metavar="N", help="at most N on it (default: 0)")
    command.add_argument(
        "--sort", choices=choose.ORDERS, default="random", help="which first (default: %(default)s)"
    )
    command.add_argument("--uuid", action="store_true", help="UUIDs in place of ids")
    command.add_argument("--no-claim", action="store_true", help="let others pick the same GPU")
    command.add_argument("words", nargs="*", help=argparse.SUPPRESS)
    command.usage = f"webmon {command.prog.split()[-1]} [options] [-- COMMAND ARGUMENT…]"


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
    wish = _wish(options)
    settings = glance(options.config)
    if is_about_the_cluster(options):
        host, gpus = cluster.pick(wish, load_cluster(options, settings), settings.free)
        return _go_there(options, host, gpus)
    return _go(options, here.pick(wish, settings, claim=not options.no_claim))


def _wait(options: Namespace) -> int:
    from webmon.cli.progress import Waiting
    from webmon.pick import wait

    wish = _wish(options)
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


def _wish(options: Namespace) -> Wish:
    if options.words or options.program == []:
        known = f"{options.words[0]!r} stands before" if options.words else "nothing stands after"
        example = f"webmon {options.command} -- python train.py"
        raise WishError(f"{known} `--`", f"The command comes after it: {example}")
    wish = choose.Wish(
        count=options.count or len(options.devices or ()) or 1,
        name=options.name,
        devices=options.devices or (),
        util=options.util,
        mem_util=options.mem_util,
        processes=options.processes,
        free_memory_mib=options.free_memory,
        sort=options.sort,
    )
    wish.check()
    return wish


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
    if options.verbose:
        print(f"webmon: GPU {ids} of {host}", file=sys.stderr)
    return become(
        remote.command(host, gpus, options.program, by_uuid=options.uuid, claim=not options.no_claim),
        dict(os.environ),
    )
