"""A terminal of so many columns, as a person sits at one."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import subprocess
import termios
import unicodedata
from typing import TYPE_CHECKING, NamedTuple

from servers.command import WEBMON, environment

if TYPE_CHECKING:
    from pathlib import Path


class Seen(NamedTuple):
    """What a person has seen, and how it ended."""

    code: int
    text: str

    @property
    def lines(self) -> list[str]:
        """The lines, without colours."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.text).splitlines()


def on_a_screen(
    *arguments: str | Path, columns: int = 120, program: list[str] | None = None, **changes: str
) -> Seen:
    """Run `webmon …` with all of it on a terminal, to its end."""
    ours, theirs = os.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    variables = environment(**{"TERM": "xterm-256color", **changes})
    if "COLUMNS" not in changes:
        variables.pop("COLUMNS", None)
    command = [*(program or WEBMON), *map(str, arguments)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=variables)
    os.close(theirs)
    text = b""
    try:
        while select.select([ours], [], [], 30)[0] and (chunk := _read(ours)):
            text += chunk
        process.wait(10)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return Seen(process.returncode, text.decode(errors="replace").replace("\r\n", "\n"))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end has been closed
        return b""


def columns_of(line: str) -> int:
    """Count the columns that a line takes, as terminals do."""
    return sum(
        0
        if unicodedata.category(char) in ("Mn", "Me")
        else 2
        if unicodedata.east_asian_width(char) in "WF"
        else 1
        for char in line
    )


def can_do_harm(text: str) -> list[str]:
    """Return the characters that do something else than being shown; colours and new lines are ours."""
    rest = re.sub(r"\x1b\[[0-9;]*m", "", text).replace("\n", "")
    return [char for char in rest if unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp")]
