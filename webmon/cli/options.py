"""What the commands have in common: their shape, their options, and the types of those."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NoReturn

from webmon.cli.terminal import screen_width
from webmon.columns import harmless

if TYPE_CHECKING:
    from collections.abc import Callable

    Commands = argparse._SubParsersAction["Parser"]  # noqa: SLF001 - argparse has no public name for it
    Run = Callable[[argparse.Namespace], int]


class _Help(argparse.RawDescriptionHelpFormatter):
    """With room for the longest option beside its help, and no line wider than the terminal."""

    def __init__(self, prog: str) -> None:
        # Left to itself it would load shutil to find out how wide the terminal is.
        super().__init__(prog, max_help_position=30, width=(screen_width(sys.stderr) or 100) - 2)

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Keep the lines as they are written; what is said beside an example goes below it if need be."""
        lines: list[str] = []
        for line in super()._fill_text(text, width, indent).splitlines():
            split = re.fullmatch(r"(  \S.*?) {2,}(.*)", line) if len(line) > width else None
            lines += [split[1], f"      {split[2]}"] if split else [line]
        return "\n".join(lines)

    def add_argument(self, action: argparse.Action) -> None:
        """Count the indentation of the commands too, which argparse forgets."""
        super().add_argument(action)
        names = [command.dest for command in getattr(action, "_choices_actions", ())]
        self._action_max_length = max([self._action_max_length, *(len(name) + 4 for name in names)])


class Parser(argparse.ArgumentParser):
    """Without abbreviated options: a mistyped one is an error, and an error is one line."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        """Set what all commands have alike."""
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", _Help)
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    def error(self, message: str) -> NoReturn:
        """Say what is wrong in one line, as all errors are: the usage would push it off the screen."""
        end = "" if message.endswith("?") else "."
        self.exit(2, f"{self.prog}: {harmless(message)}{end} See `{self.prog} --help`\n")


def add(
    commands: Commands, name: str, run: Run, text: str, examples: str, *, with_config: bool = True
) -> Parser:
    """Add a command with the options that all have."""
    command = commands.add_parser(name, help=text, description=f"{text}.", epilog=f"examples:\n{examples}")
    command.set_defaults(run=run, parser=command)
    if with_config:
        command.add_argument(
            "-c",
            "--config",
            metavar="FILE",
            help="the configuration (default: $WEBMON_CONFIG, ./config.ini, "
            "~/.config/webmon/config.ini, /etc/webmon/config.ini)",
        )
    level = command.add_mutually_exclusive_group()
    level.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    level.add_argument("-v", "--verbose", action="store_true", help="say more, also without a terminal")
    return command


def port(text: str) -> int:
    """Read a port."""
    if not (text.isascii() and text.isdigit() and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return int(text)


def seconds(text: str) -> float:
    """Read a number of seconds."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0.2 <= number <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds (0.2 to 86400)")
    return number


def count(text: str) -> int:
    """Read how many."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 1_000_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of GPUs (1 or more)")
    return int(text)


def whole(text: str) -> int:
    """Read a whole number that may be 0."""
    if not (text.isascii() and text.isdigit() and int(text) <= 1_000_000):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number (0 or more)")
    return int(text)


def number(text: str) -> int:
    """Read how many of anything."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= 1_000_000):
        raise argparse.ArgumentTypeError(f"{text!r} is no number (1 or more)")
    return int(text)


def days(text: str) -> int:
    """Read a number of days."""
    if not (text.isascii() and text.isdigit() and len(text) < 6 and 1 <= int(text) <= 36500):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of days (1 to 36500)")
    return int(text)


def moment(text: str) -> datetime:
    """Read `2h` (ago), `2026-11-17` or `2026-11-17T08:00`, in UTC unless it says otherwise."""
    # `20261117` is a day, and `2026` is nothing: of what is no time, least of all a number of seconds.
    if not text.isdigit():
        with contextlib.suppress(argparse.ArgumentTypeError):
            return datetime.now(UTC) - timedelta(seconds=duration(text))
    try:
        time = datetime.fromisoformat(text)
        return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no time: write 2h, 30d, 2026-11-17 or 2026-11-17T08:00"
        ) from None


def percentage(text: str) -> float:
    """Read a percentage, with its sign or without."""
    if not re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,6})?%?", text) or float(text.rstrip("%")) > 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage (0 to 100)")
    return float(text.rstrip("%"))


def devices(text: str) -> tuple[int, ...]:
    """Read `0,2`."""
    if not re.fullmatch(r"[0-9]{1,4}(,[0-9]{1,4})*", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no list of GPUs: write 0 or 0,2")
    return tuple(dict.fromkeys(int(part) for part in text.split(",")))


_UNITS = {"m": 1, "mib": 1, "g": 1024, "gib": 1024, "mb": 1e6 / 2**20, "gb": 1e9 / 2**20}


def memory(text: str) -> int:
    """Read `20G`, `5GiB`, `5000M` as MiB; GB and MB are powers of ten."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([A-Za-z]{1,3})", text)
    unit = _UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no memory: write 20G, 20GiB, 20GB or 20000M")
    return round(float(match[1]) * unit)


def duration(text: str) -> float:
    """Read `2h`, `30m`, `1h30m`, `90s` or `90` as seconds."""
    pattern = r"(?:([0-9]{1,5})d)?(?:([0-9]{1,6})h)?(?:([0-9]{1,7})m(?:in)?)?(?:([0-9]{1,9}(?:\.[0-9]+)?)s?)?"
    match = re.fullmatch(pattern, text)
    if not text or match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 2h, 30m, 1h30m or 90s")
    days, hours, minutes, rest = (float(part or 0) for part in match.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + rest
