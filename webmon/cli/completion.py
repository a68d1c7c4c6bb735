"""What makes bash, zsh and fish complete webmon's commands and options, made from the parser itself."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from webmon.cli import shells
from webmon.cli.parser import build

if TYPE_CHECKING:
    from collections.abc import Iterator


# What may stand after a command, and is one word with files after it.
_BEFORE_FILES = {"history": "import"}


class Option(NamedTuple):
    """One option, as a shell has to know it."""

    flags: tuple[str, ...]
    help: str
    choices: tuple[str, ...]
    takes: str | None
    """What its value is called; None where it takes none."""


class Command(NamedTuple):
    """One command, with its options."""

    name: str
    help: str
    options: tuple[Option, ...]
    choices: tuple[str, ...]
    """What may stand after it, where that is one of a few words."""
    before_files: str | None
    """A word that may stand after it, and has files after itself."""


def script(shell: str) -> str:
    """Return the script for one shell."""
    return {"bash": shells.bash, "zsh": shells.zsh, "fish": shells.fish}[shell](list(_commands()))


def _commands() -> Iterator[Command]:
    parser = build()
    (subparsers,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001
    helps = {action.dest: action.help or "" for action in subparsers._choices_actions}  # noqa: SLF001
    for name, command in subparsers.choices.items():
        actions = [action for action in command._actions if action.help != argparse.SUPPRESS]  # noqa: SLF001
        yield Command(
            name,
            helps[name],
            tuple(_option(action) for action in actions if action.option_strings),
            tuple(
                str(choice)
                for action in actions
                if not action.option_strings
                for choice in action.choices or ()
            ),
            _BEFORE_FILES.get(name),
        )


def _option(action: argparse.Action) -> Option:
    takes = None if action.nargs == 0 else str(action.metavar or action.dest).upper()
    plain = (action.help or "").replace("%%", "%").replace("%(default)s", str(action.default))
    return Option(
        tuple(action.option_strings),
        plain.replace("%(default)g", str(action.default)),
        tuple(str(choice) for choice in action.choices or ()),
        takes,
    )
