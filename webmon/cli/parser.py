"""The command line → options. Only the module of the command that is called is loaded."""

from __future__ import annotations

from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING

from webmon import __version__
from webmon.cli.options import Parser

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

# Where each command is at home: a module of this folder.
_HOMES = {
    "list": "listing",
    "available": "picking",
    "select": "picking",
    "wait": "picking",
    "users": "usage",
    "stats": "usage",
    "history": "past",
    "fetch": "pipeline",
    "render": "pipeline",
    "update": "pipeline",
    "config": "setup",
    "deploy": "setup",
    "completion": "setup",
    "serve": "trial",
    "demo": "trial",
}

# What follows these is their value, even if a command is called the same.
_WITH_VALUE = (
    "-c",
    "--config",
    "--from",
    "--data",
    "--filter",
    "--sort",
    "--by",
    "--days",
    "--since",
    "--time",
)

# These run a command of the user's, which stands after `--`.
_RUN_COMMANDS = ("select", "wait")


def parse(argv: list[str]) -> argparse.Namespace:
    """Return the options of one call; exit 2 with one line if they make no sense."""
    if argv[:1] == ["help"]:
        argv = [*argv[1:2], "--help"]
    if not argv or (argv[0].startswith("-") and argv[0] not in ("-h", "--help", "--version")):
        _check_order(argv)
        argv = ["list", *argv]  # the short form
    elif argv[0] not in _HOMES and not argv[0].startswith("-"):
        Parser(prog="webmon").error(f"there is no command {argv[0]!r}{_suggested(argv[0], _HOMES, '`{}`')}")
    program: list[str] | None = None
    if argv[0] in _RUN_COMMANDS and "--" in argv:
        end = argv.index("--")
        argv, program = argv[:end], argv[end + 1 :]
    options, unknown = build(argv[0]).parse_known_args(argv)
    if unknown:
        options.parser.error(_unknown(unknown, options))
    options.program = program
    return options


def _check_order(argv: list[str]) -> None:
    """Refuse `webmon -q select`: it would list, and take the command for a host."""
    words = argv[: argv.index("--")] if "--" in argv else argv
    for before, word in pairwise(words):
        if word in _HOMES and before not in _WITH_VALUE:
            Parser(prog="webmon").error(f"options come after the command: `webmon {word} {words[0]} …`")


def _unknown(words: list[str], options: argparse.Namespace) -> str:
    """Say what was not understood, and what may have been meant."""
    # Without the dashes: they are alike in all options, and would make any two of them similar.
    flags = [flag for action in options.parser._actions for flag in action.option_strings]  # noqa: SLF001
    known = [flag.removeprefix("--") for flag in flags if flag.startswith("--")]
    hint = _suggested(words[0].partition("=")[0].lstrip("-"), known, "--{}")
    if not hint and options.command in _RUN_COMMANDS:
        hint = "; the options of a command of your own come after `--`"
    return f"unrecognized arguments: {' '.join(words)}{hint}"


def _suggested(word: str, known: Iterable[str], form: str) -> str:
    from difflib import get_close_matches

    close = get_close_matches(word, known, 1, cutoff=0.7)
    return f"; did you mean {form.format(close[0])}?" if close else ""


def build(command: str | None = None) -> argparse.ArgumentParser:
    """Return the parser of one command, or of all where it is none of them."""
    parser = Parser(
        prog="webmon",
        usage="webmon [COMMAND] [options]",
        description="webmon tells a lab where its free GPUs are.",
        epilog="Without a command it is `webmon list`: the GPUs of this machine.\n"
        "Options come after the command; `webmon COMMAND --help` has them, with examples.\n"
        "To monitor a cluster, look at `webmon demo`; then say\n"
        "`webmon config --example > config.ini`, and edit three lines of it.",
    )
    parser.add_argument("--version", action="version", version=f"webmon {__version__}")
    commands = parser.add_subparsers(
        title="commands",
        dest="command",
        metavar="COMMAND",
        required=True,
        parser_class=Parser,
        prog="webmon",
    )
    homes = [_HOMES[command]] if command in _HOMES else dict.fromkeys(_HOMES.values())
    for home in homes:
        import_module(f"webmon.cli.{home}").add_commands(commands)
    return parser
