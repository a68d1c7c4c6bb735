"""What makes bash, zsh and fish complete webmon's commands and options, made from the parser itself."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

from webmon.cli.parser import build

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Option(NamedTuple):
    flags: tuple[str, ...]
    help: str
    choices: tuple[str, ...]
    takes: str | None
    """What its value is called; None where it takes none."""


class _Command(NamedTuple):
    name: str
    help: str
    options: tuple[_Option, ...]
    choices: tuple[str, ...]
    """What may stand after it, where that is one of a few words."""


def script(shell: str) -> str:
    """Return the script for one shell."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](list(_commands()))


def _commands() -> Iterator[_Command]:
    parser = build()
    (subparsers,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001
    helps = {action.dest: action.help or "" for action in subparsers._choices_actions}  # noqa: SLF001
    for name, command in subparsers.choices.items():
        actions = [action for action in command._actions if action.help != argparse.SUPPRESS]  # noqa: SLF001
        yield _Command(
            name,
            helps[name],
            tuple(_option(action) for action in actions if action.option_strings),
            tuple(
                str(choice)
                for action in actions
                if not action.option_strings
                for choice in action.choices or ()
            ),
        )


def _option(action: argparse.Action) -> _Option:
    takes = None if action.nargs == 0 else str(action.metavar or action.dest).upper()
    plain = (action.help or "").replace("%%", "%").replace("%(default)s", str(action.default))
    return _Option(
        tuple(action.option_strings),
        plain.replace("%(default)g", str(action.default)),
        tuple(str(choice) for choice in action.choices or ()),
        takes,
    )


_IS_FILE, _IS_FOLDER = ("FILE",), ("DIR",)


def _bash(commands: list[_Command]) -> str:
    cases, values = [], []
    for command in commands:
        words = [flag for option in command.options for flag in option.flags if flag.startswith("--")]
        cases.append(f'        {command.name}) words="{" ".join([*words, *command.choices])}" ;;')
        for option in command.options:
            if option.takes is None:
                continue
            pattern = "|".join(f"{command.name}:{flag}" for flag in option.flags)
            values.append(f"        {pattern}) {_bash_values(option)}; return ;;")
    names = " ".join(command.name for command in commands)
    return f"""# webmon: completion for bash
_webmon() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} command= words= i
    COMPREPLY=()
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${{COMP_WORDS[i]}} == -- ]]; then
            compopt -o default; return
        fi
        if [[ -z $command && ${{COMP_WORDS[i]}} != -* ]]; then command=${{COMP_WORDS[i]}}; fi
    done
    if [[ -z $command ]]; then
        COMPREPLY=($(compgen -W "{names} --help --version" -- "$word")); return
    fi
    case $command:$before in
{chr(10).join(values)}
    esac
    case $command in
{chr(10).join(cases)}
    esac
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -F _webmon webmon
"""


def _bash_values(option: _Option) -> str:
    if option.choices:
        return f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$word"))'
    if option.takes in _IS_FILE:
        return 'compopt -o filenames; COMPREPLY=($(compgen -f -- "$word"))'
    if option.takes in _IS_FOLDER:
        return 'compopt -o filenames; COMPREPLY=($(compgen -d -- "$word"))'
    return ":"


def _zsh(commands: list[_Command]) -> str:
    described = "\n".join(f"        {_single(f'{c.name}:{c.help}')}" for c in commands)
    cases = []
    for command in commands:
        specs = [_zsh_spec(option) for option in command.options]
        if command.choices:
            specs.append(_single(f"1:what:({' '.join(command.choices)})"))
        else:
            specs.append(_single("*::: :_normal") if command.name in ("select", "wait") else _single("*: :"))
        lines = " \\\n                ".join(specs)
        cases.append(f"        {command.name})\n            _arguments -s \\\n                {lines} ;;")
    return f"""#compdef webmon
# webmon: completion for zsh
_webmon() {{
    local -a commands
    commands=(
{described}
    )
    if (( CURRENT == 2 )); then
        _describe -t commands command commands
        _arguments '--help[show help]' '--version[show the version]'
        return
    fi
    local command=$words[2]
    shift words; (( CURRENT-- ))
    case $command in
{chr(10).join(cases)}
    esac
}}
compdef _webmon webmon
"""


def _zsh_spec(option: _Option) -> str:
    told = option.help.replace("[", "(").replace("]", ")").replace(":", "\\:")
    value = ""
    if option.choices:
        value = f":{option.takes}:({' '.join(option.choices)})"
    elif option.takes in _IS_FILE:
        value = ":file:_files"
    elif option.takes in _IS_FOLDER:
        value = ":folder:_files -/"
    elif option.takes is not None:
        value = f":{option.takes}: "
    specs = [_single(f"{flag}[{told}]{value}") for flag in option.flags]
    return " ".join(specs)


def _fish(commands: list[_Command]) -> str:
    lines = [
        "# webmon: completion for fish",
        "complete -c webmon -f",
        "complete -c webmon -n __fish_use_subcommand -l help -d 'show help'",
        "complete -c webmon -n __fish_use_subcommand -l version -d 'show the version'",
    ]
    for command in commands:
        told = _fish_single(command.help)
        lines.append(f"complete -c webmon -n __fish_use_subcommand -a {command.name} -d {told}")
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        if command.choices:
            lines.append(f"complete -c webmon {seen} -a '{' '.join(command.choices)}'")
        for option in command.options:
            flags = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in option.flags)
            value = ""
            if option.choices:
                value = f" -x -a '{' '.join(option.choices)}'"
            elif option.takes in (*_IS_FILE, *_IS_FOLDER):
                value = " -r -F"
            elif option.takes is not None:
                value = " -x"
            lines.append(f"complete -c webmon {seen} {flags}{value} -d {_fish_single(option.help)}")
    return "\n".join(lines) + "\n"


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_single(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
