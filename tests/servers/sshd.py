"""A real OpenSSH sshd on loopback. Each of its addresses is a pretended host with a GPU or more.

    with Sshd(folder, [Pretended(healthy(4)), Pretended(command="yes")]) as sshd:
        sshd.addresses, sshd.port, sshd.user, sshd.key, sshd.known_hosts

It runs as whoever runs the tests, root or not, and lets only that user in.
"""

from __future__ import annotations

import getpass
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import webmon
from servers import processes
from servers.programs import need
from servers.ssh_keys import make_key, public
from servers.states import healthy

if TYPE_CHECKING:
    from collections.abc import Sequence

# sshd listens on no more addresses than this.
MAX_HOSTS = 16

STANDIN = Path(webmon.__file__).parent / "demo" / "nvidia_smi.py"


@dataclass
class Pretended:
    """One host: what its nvidia-smi says, or what it does instead."""

    state: dict[str, Any] = field(default_factory=healthy)
    nvidia_smi: str = ""  # the text of a shell script that is its nvidia-smi
    command: str = ""  # ForceCommand: what is run whatever is asked for
    settings: Sequence[str] = ()  # more lines for its Match block


class Sshd:
    """An sshd that is running; `stop` ends it with all that it has started."""

    def __init__(
        self,
        folder: Path,
        hosts: Sequence[Pretended] = (Pretended(),),
        *,
        settings: Sequence[str] = (),
        host_keys: Sequence[str] = ("ed25519",),
        first_address: int = 11,
    ) -> None:
        """Start it; its files go to `folder`."""
        assert 1 <= len(hosts) <= MAX_HOSTS
        self.folder = folder
        self.addresses = [f"127.0.0.{first_address + number}" for number in range(len(hosts))]
        self.user = getpass.getuser()
        self.key = make_key(folder / "user_key")
        self.authorized_keys = folder / "authorized_keys"
        self.authorized_keys.write_text(public(self.key) + "\n")
        self.host_keys = {kind: make_key(folder / f"host_{kind}", kind) for kind in host_keys}
        self.known_hosts = folder / "known_hosts"
        self.port = 0
        self.pid = 0
        self._log = folder / "sshd.log"
        self._settings = settings
        self._blocks = self._match_blocks(hosts)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()
        self.known_hosts.write_text("".join(f"{line}\n" for line in self.known_lines()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def names(self) -> list[str]:
        """The hosts as `hosts =` takes them: `127.0.0.11:40022`."""
        return [f"{address}:{self.port}" for address in self.addresses]

    def known_lines(self) -> list[str]:
        """Return the lines of known_hosts about all hosts."""
        return [
            f"[{address}]:{self.port} {public(key)}"
            for address in self.addresses
            for key in self.host_keys.values()
        ]

    def state_file(self, number: int) -> Path:
        """Return the file that says what a host's nvidia-smi answers; it is read anew in every call."""
        return self.folder / f"state-{number}.json"

    def common(self, **changes: Any) -> dict[str, Any]:
        """Return a [common] section that reaches all hosts."""
        return {
            "hosts": self.names,
            "user": self.user,
            "key_filename": str(self.key),
            "known_hosts": str(self.known_hosts),
            "timeout": 10,
        } | changes

    def log(self) -> str:
        """Return what it has logged so far."""
        return self._log.read_text(errors="replace")

    def connections(self) -> int:
        """Return how many connections have come so far."""
        return len(re.findall(r"^Connection from ", self.log(), re.MULTILINE))

    def stop(self) -> None:
        """End it, and all that still runs in its sessions."""
        if self._process is None:
            return
        sessions = processes.descendants(self.pid)
        processes.end(self._process)
        self._process = None
        # Those whose session had ended before are nobody's children any more.
        sessions += processes.marked(self._mark())
        processes.kill(*sessions)
        processes.wait_until_gone(sessions)

    def _mark(self) -> str:
        return f"WEBMON_TEST_SSHD={self.folder}\0"

    def _match_blocks(self, hosts: Sequence[Pretended]) -> list[str]:
        lines = []
        for number, (address, host) in enumerate(zip(self.addresses, hosts, strict=True)):
            programs = self.folder / f"bin-{number}"
            programs.mkdir()
            script = (
                host.nvidia_smi
                or f'exec {shlex.quote(sys.executable)} -I -S {shlex.quote(str(STANDIN))} "$@"'
            )
            (programs / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
            (programs / "nvidia-smi").chmod(0o755)
            self.state_file(number).write_text(json.dumps(host.state))
            environment = {
                "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
                "WEBMON_STANDIN": self.state_file(number),
                "WEBMON_TEST_SSHD": self.folder,
                "SHLVL": "5",  # keeps bash from reading a .bashrc that is somebody's own
            }
            lines.append(f"Match LocalAddress {address}")
            lines.append("SetEnv " + " ".join(f'"{name}={value}"' for name, value in environment.items()))
            if host.command:
                lines.append(f"ForceCommand {host.command}")
            lines += host.settings
        return lines

    def start(self, port: int = 0) -> None:
        """Start it, after a `stop` perhaps, on a free port or on this one."""
        program = need("sshd", "openssh-server")
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        for _ in range(5):
            self.port = port or _free_port(self.addresses)
            config = self.folder / "sshd_config"
            config.write_text("".join(f"{line}\n" for line in [*self._config(), *self._blocks]))
            with open(self._log, "wb") as log:
                self._process = subprocess.Popen(
                    [program, "-D", "-e", "-f", str(config)],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env={**os.environ, "WEBMON_TEST_SSHD": str(self.folder)},
                )
            self.pid = self._process.pid
            if self._is_listening():
                return
            self.stop()
            if "Address already in use" not in self.log():
                break
        raise RuntimeError(f"sshd does not start:\n{self.log()}")

    def _config(self) -> list[str]:
        return [
            *self._settings,  # the first value that sshd reads is the one in force
            f"Port {self.port}",
            *(f"ListenAddress {address}" for address in self.addresses),
            *(f"HostKey {key}" for key in self.host_keys.values()),
            f"AuthorizedKeysFile {self.authorized_keys}",
            f"PidFile {self.folder}/sshd.pid",
            "UsePAM no",
            "StrictModes no",
            "PermitRootLogin yes",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PrintMotd no",
            "PrintLastLog no",
            "UseDNS no",
            "LogLevel VERBOSE",
            "MaxStartups 500",
        ]

    def _is_listening(self) -> bool:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if self.log().count("Server listening on") == len(self.addresses):
                return True
            if self._process is None or self._process.poll() is not None:
                return False
            time.sleep(0.01)
        return False


def _free_port(addresses: Sequence[str]) -> int:
    while True:
        sockets = [socket.socket() for _ in addresses]
        try:
            port = 0
            for address, listener in zip(addresses, sockets, strict=True):
                listener.bind((address, port))
                port = listener.getsockname()[1]
        except OSError:
            continue  # it is in use on another address
        else:
            return port
        finally:
            for listener in sockets:
                listener.close()
