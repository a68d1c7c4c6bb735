"""Servers that do what no sshd should, and relays that spoil what one says.

    with Hostile(mute="silent", slow=relay(sshd.addresses[0], sshd.port, delay=0.1)) as servers:
        servers.port["mute"]

They run in a process of their own: what they open is not counted as the tests' own.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Self

_PROGRAM = Path(__file__).with_name("behaviours.py")


def relay(
    address: str, port: int, *, delay: float = 0, limit: int | None = None, drops: int = 0
) -> dict[str, Any]:
    """Describe a server that hands everything on, late, and cuts off after so many bytes.

    The first connections, as many as `drops` says, are closed without a word.
    """
    return {"does": "relay", "to": [address, port], "delay": delay, "limit": limit, "drops": drops}


class Hostile:
    """Servers on 127.0.0.1: `refuse`, `unanswered`, or a behaviour of servers/behaviours.py."""

    def __init__(self, **servers: str | dict[str, Any]) -> None:
        """Start them."""
        wanted = {name: {"does": what} if isinstance(what, str) else what for name, what in servers.items()}
        self._process = subprocess.Popen(
            [sys.executable, "-I", _PROGRAM, json.dumps(wanted)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self.port: dict[str, int] = json.loads(self._process.stdout.readline())

    def name(self, server: str) -> str:
        """Return a server as `hosts =` takes it."""
        return f"127.0.0.1:{self.port[server]}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()
