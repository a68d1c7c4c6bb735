"""A real ssh-agent."""

from __future__ import annotations

import os
import subprocess
import time
from typing import TYPE_CHECKING, Self

from servers.programs import need

if TYPE_CHECKING:
    from pathlib import Path


class Agent:
    """An ssh-agent without keys; its folder's path has to be short, as that of every socket."""

    PASSPHRASE = "a passphrase"

    def __init__(self, folder: Path) -> None:
        """Start it."""
        self._folder = folder
        self.socket = folder / "socket"
        program = need("ssh-agent", "openssh-client")
        self._process = subprocess.Popen([program, "-D", "-a", self.socket], stdout=subprocess.DEVNULL)
        while not self.socket.exists() and self._process.poll() is None:
            time.sleep(0.01)

    def add(self, key: Path) -> None:
        """Give it a key; if that is encrypted, with PASSPHRASE."""
        ask_pass = self._folder / "ask-pass"
        ask_pass.write_text(f"#!/bin/sh\necho '{self.PASSPHRASE}'\n")
        ask_pass.chmod(0o755)
        environment = {
            **os.environ,
            "SSH_AUTH_SOCK": str(self.socket),
            "SSH_ASKPASS": str(ask_pass),
            "SSH_ASKPASS_REQUIRE": "force",
            "DISPLAY": ":9",
        }
        program = need("ssh-add", "openssh-client")
        subprocess.run([program, "-q", key], check=True, env=environment, stdin=subprocess.DEVNULL)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(5)
