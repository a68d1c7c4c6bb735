"""`[privacy]`: what is kept of the people and the commands on a host. Nothing else is stored."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from webmon.model import CLAIM

if TYPE_CHECKING:
    from collections.abc import Iterable

    from webmon.model import Process

_ARGUMENTS = re.compile(r"\s(?:-|[^\s=]+=)")
_PYTHON = re.compile(r"^(?:python|pypy)[0-9.]*$")

# What only starts a script, whose name says more; `python -m` has longer names for some.
_LAUNCHERS = frozenset({"accelerate", "deepspeed", "horovodrun", "mpiexec", "mpirun", "srun", "torchrun"})
_LAUNCHING_MODULES = frozenset({"torch.distributed.launch", "torch.distributed.run", *_LAUNCHERS})


class Privacy(NamedTuple):
    """What to keep of commands (name, full, none) and users (show, mask)."""

    command: str = "name"
    users: str = "show"
    salt: bytes = b""

    def process(self, process: Process) -> Process:
        """Return the process with no more in it than may be told."""
        user = self.user(process.user) if process.user is not None else None
        if self.command == "none":
            return process._replace(user=user, name=CLAIM if process.is_claim else None, command=None)
        if self.command == "full":
            return process._replace(user=user)
        # A process may have its arguments in its name, as a browser's do; or its user, in a path.
        name = _ARGUMENTS.split(process.name or "", maxsplit=1)[0].strip() or None
        if name and self.users == "mask":
            name = name.rpartition("/")[2] or None
        # A claim's name says that it is one, not what is run.
        runs = program(process.command, None if process.is_claim else process.name)
        return process._replace(user=user, name=name, command=runs)

    def user(self, name: str) -> str:
        """Return the user's name, or a pseudonym that stays the same for this data folder."""
        if self.users == "show":
            return name
        import hashlib
        import hmac

        digest = hmac.digest(self.salt, name.encode(), hashlib.sha256)
        return f"user-{digest[:4].hex()}"


def program(command: str | None, name: str | None) -> str | None:
    """Return what is run, without arguments, which may hold secrets: `train.py`, `jupyter`."""
    words = (command or name or "").split()
    if not words:
        return None
    first = words[0].rpartition("/")[2].rstrip(":") or words[0]
    if not _PYTHON.match(first):
        return (_script(words[1:]) if first in _LAUNCHERS else None) or first[:80]
    if "ipykernel_launcher" in words or any(word.endswith("ipykernel_launcher.py") for word in words):
        return "jupyter"
    for position, word in enumerate(words[1:], start=1):
        if word == "-m" and position + 1 < len(words):
            module = words[position + 1]
            rest = words[position + 2 :]
            return (_script(rest) if module in _LAUNCHING_MODULES else None) or module[:80]
        if word == "-c":
            break
        if word.endswith(".py"):
            return word.rpartition("/")[2][:80]
        if not word.startswith("-"):
            script = word.rpartition("/")[2]
            if script in _LAUNCHERS and "/" in word:
                return _script(words[position + 1 :]) or script
            return script[:80] if "/" in word and "=" not in word else first
    return first


def _script(arguments: Iterable[str]) -> str | None:
    """Return the script that a launcher is told to start: what is no option, no setting, and ends in .py."""
    for word in arguments:
        if word.endswith(".py") and not word.startswith("-") and "=" not in word:
            return word.rpartition("/")[2][:80]
    return None
