"""Several users of one machine: root can be each of them, anybody else is only one."""

from __future__ import annotations

import os
import pwd
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from servers.here import STANDIN
from servers.programs import need

import webmon

if TYPE_CHECKING:
    from desk import Desk

_NAMES = ("nobody", "daemon", "www-data", "games", "mail")
_ROOT_OF_PACKAGE = Path(webmon.__file__).parents[1]


def become(user: str) -> list[str]:
    """Return what to put before a command to run it as a user; nothing for the one who runs the tests."""
    if user == me():
        return []
    about = pwd.getpwnam(user)
    return [
        need("setpriv", "util-linux"),
        f"--reuid={about.pw_uid}",
        f"--regid={about.pw_gid}",
        "--clear-groups",
    ]


def me() -> str:
    """Return the name of the user who runs the tests."""
    return pwd.getpwuid(os.geteuid()).pw_name


@cache
def everybody() -> list[str]:
    """Return all users that can be had here: where there is only one, only one."""
    if os.geteuid() != 0 or _python_for("nobody") is None:
        return [me()]
    return [name for name in _NAMES if _exists(name)]


def others(number: int = 1) -> list[str]:
    """Return users other than the one who runs the tests; without them, the test is skipped."""
    names = [name for name in everybody() if name != me()]
    if len(names) < number:
        pytest.skip("only root can be other users, with a Python that they may run")
    return names[:number]


def open_to_all(desk: Desk) -> list[str]:
    """Let anybody run webmon and nvidia-smi on this machine, and return the command that is webmon."""
    python = _python_for("nobody") if len(everybody()) > 1 else sys.executable
    assert python is not None
    desk.program("nvidia-smi", f'exec {shlex.join([python, "-I", "-S", str(STANDIN)])} "$@"')
    return [python, "-m", "webmon"]


def environment(desk: Desk) -> dict[str, str]:
    """Return what they need to find webmon, which is not installed for them."""
    return desk.environment | {"PYTHONPATH": str(_ROOT_OF_PACKAGE), "HOME": "/nonexistent"}


def _exists(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


@cache
def _python_for(user: str) -> str | None:
    """Return a Python that this user may run, with our webmon: the tests' own is often in a private home."""
    for python in (sys.executable, "/usr/bin/python3", "/usr/local/bin/python3"):
        done = subprocess.run(
            # By way of a shell: setpriv itself still has root's rights when it starts a program.
            [*become(user), "sh", "-c", 'exec "$@"', "sh", python, "-m", "webmon", "--version"],
            check=False,
            capture_output=True,
            cwd="/",
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(_ROOT_OF_PACKAGE)},
        )
        if done.returncode == 0:
            return python
    return None
