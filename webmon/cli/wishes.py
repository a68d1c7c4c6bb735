"""What somebody wishes for, as options: which GPUs, and how many."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from webmon.cli.options import count, devices, memory, percentage, whole
from webmon.errors import WishError
from webmon.pick import choose

if TYPE_CHECKING:
    from webmon.cli.options import Parser
    from webmon.pick.choose import Wish


def add_kind(command: Parser) -> None:
    """Add what says which GPUs would do."""
    command.add_argument("-n", "--name", help="only models with this in their name: A6000")
    command.add_argument(
        "--free-memory", type=memory, metavar="SIZE", help="at least so much free memory: 20G, 5000M"
    )


def add_wish(command: Parser) -> None:
    """Add all that may be wished for, and the command that may follow."""
    command.add_argument("--count", type=count, metavar="N", help="default: 1, or all of --devices")
    add_kind(command)
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


def wish_of(options: argparse.Namespace) -> Wish:
    """Return what is wished for; WishError if it makes no sense."""
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
