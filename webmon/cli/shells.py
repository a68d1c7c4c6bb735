"""The scripts that make bash, zsh and fish complete: one function a shell, commands in, text out."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from webmon.cli.completion import Command, Option

# What a value is, by its name in the help.
_IS_FILE, _IS_FOLDER = ("FILE",), ("DIR",)

_BASH_FILES = """IFS=$'\\n'; compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$word"))"""

# Without a command, `list` is meant.
_DEFAULT = "list"


def bash(commands: Sequence[Command]) -> str:
    """Return the script for bash."""
    cases, values, files = [], [], []
    for command in commands:
        words = [flag for option in command.options for flag in option.flags if flag.startswith("--")]
        if command.before_files:
            files.append(f"        {command.name}:{command.before_files}) {_BASH_FILES}; return ;;")
            words.append(command.before_files)
        cases.append(f'        {command.name}) words="{" ".join([*words, *command.choices])}" ;;')
        for option in command.options:
            if option.takes is not None:
                pattern = "|".join(f"{command.name}:{flag}" for flag in option.flags)
                values.append(f"        {pattern}) {_bash_values(option)}; return ;;")
    names = " ".join(command.name for command in commands)
    return f"""# webmon: completion for bash
_webmon() {{
    local IFS=$' \\t\\n' word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}}
    local command={_DEFAULT} words='' i
    COMPREPLY=()
    # bash takes --sort=name for three words
    if [[ $word == = ]]; then
        word=''
    elif [[ $before == = ]]; then
        before=${{COMP_WORDS[COMP_CWORD - 2]}}
    fi
    if ((COMP_CWORD > 1)) && [[ ${{COMP_WORDS[1]}} != -* ]]; then command=${{COMP_WORDS[1]}}; fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        if [[ ${{COMP_WORDS[i]}} == -- ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset $((i + 1))
            elif ((COMP_CWORD == i + 1)); then
                COMPREPLY=($(compgen -c -- "$word"))
            else
                compopt -o default 2>/dev/null
            fi
            return
        fi
    done
    case $command:$before in
{chr(10).join(values)}
    esac
    if ((COMP_CWORD > 2)) && [[ $word != -* ]]; then
        case $command:${{COMP_WORDS[2]}} in
{chr(10).join(files)}
        esac
    fi
    case $command in
{chr(10).join(cases)}
    esac
    if ((COMP_CWORD == 1)) && [[ $word != -?* || $word == --[hv]* ]]; then
        words="{names} --help --version"
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -F _webmon webmon
"""


def _bash_values(option: Option) -> str:
    if option.choices:
        return f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$word"))'
    if option.takes in _IS_FILE:
        return _BASH_FILES
    if option.takes in _IS_FOLDER:
        return _BASH_FILES.replace("-f", "-d")
    return ":"


def zsh(commands: Sequence[Command]) -> str:
    """Return the script for zsh."""
    described = "\n".join(f"        {_single(f'{c.name}:{c.help}')}" for c in commands)
    cases = []
    for command in commands:
        specs = [_zsh_spec(option) for option in command.options]
        if command.choices:
            specs.append(_single(f"1:what:({' '.join(command.choices)})"))
        elif command.before_files:
            specs.append(_single(f"1:what:({command.before_files})"))
            specs.append(_single("*:file:_files"))
        else:
            specs.append(_single("*: :"))
        lines = " \\\n                ".join(specs)
        cases.append(f"        {command.name})\n            _arguments -s \\\n                {lines} ;;")
    return f"""#compdef webmon
# webmon: completion for zsh
_webmon() {{
    local -i end=$words[(i)--]
    if (( end < CURRENT )); then  # the user's command
        shift $end words; (( CURRENT -= end ))
        _normal
        return
    fi
    local -a commands
    commands=(
{described}
    )
    local command={_DEFAULT}
    if (( CURRENT == 2 )) && [[ $words[2] != -?* || $words[2] == --[hv]* ]]; then
        _describe -t commands command commands
        _arguments '--help[show help]' '--version[show the version]'
        return
    fi
    if [[ $words[2] != -* ]]; then
        command=$words[2]
        shift words; (( CURRENT-- ))
    fi
    case $command in
{chr(10).join(cases)}
    esac
}}
# As a file in $fpath it is run when it is needed for the first time; with eval it is made known.
if [[ $funcstack[1] == _webmon ]]; then _webmon "$@"; else compdef _webmon webmon; fi
"""


def _zsh_spec(option: Option) -> str:
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
    # A long option takes its value after `=` too.
    joined = "=" if value else ""
    specs = [
        _single(f"{flag}{joined if flag.startswith('--') else ''}[{told}]{value}") for flag in option.flags
    ]
    return " ".join(specs)


def fish(commands: Sequence[Command]) -> str:
    """Return the script for fish."""
    lines = [
        "# webmon: completion for fish",
        "function __webmon_at",
        "    set -l words (commandline -opc)",
        f"    set -l command {_DEFAULT}",
        "    contains -- -- $words; and return 1",
        "    set -q words[2]; and not string match -q -- '-*' $words[2]; and set command $words[2]",
        "    contains -- $command $argv",
        "end",
        "function __webmon_program",
        "    set -l words (commandline -opc)",
        "    set -l end (contains -i -- -- $words); or return",
        "    complete -C (string join -- ' ' (string escape -- $words[(math $end + 1)..]) (commandline -ct))",
        "end",
        "complete -c webmon -f",
        "complete -c webmon -n 'contains -- -- (commandline -opc)' -a '(__webmon_program)'",
        "complete -c webmon -n '__fish_is_first_token' -l help -d 'show help'",
        "complete -c webmon -n '__fish_is_first_token' -l version -d 'show the version'",
    ]
    for command in commands:
        told = _fish_single(command.help)
        lines.append(f"complete -c webmon -n __fish_is_first_token -a {command.name} -d {told}")
        lines += _fish_options(command)
    return "\n".join(lines) + "\n"


def _fish_options(command: Command) -> Iterator[str]:
    at = f"complete -c webmon -n '__webmon_at {command.name}'"
    if command.choices:
        yield f"{at} -a '{' '.join(command.choices)}'"
    if command.before_files:
        word = command.before_files
        yield f"{at} -a {word}"
        yield f"complete -c webmon -n '__webmon_at {command.name}; and __fish_seen_subcommand_from {word}' -F"
    for option in command.options:
        flags = " ".join(f"-l {f[2:]}" if f.startswith("--") else f"-s {f[1:]}" for f in option.flags)
        value = ""
        if option.choices:
            value = f" -x -a '{' '.join(option.choices)}'"
        elif option.takes in (*_IS_FILE, *_IS_FOLDER):
            value = " -r -F"
        elif option.takes is not None:
            value = " -x"
        yield f"{at} {flags}{value} -d {_fish_single(option.help)}"


def _single(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_single(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
