"""An ssh-agent: what it holds, and what it signs. One that does not answer hangs nobody."""

from __future__ import annotations

import socket
import struct
import threading
from typing import Any

import paramiko

from webmon.errors import HostError

# It may be on the other end of a connection that has died, or wait for somebody to nod.
TIMEOUT_S = 5.0


class Agent(paramiko.agent.AgentSSH):
    """A connection to an agent; paramiko's own looks for one in the environment and nowhere else."""

    def __init__(self, connection: socket.socket) -> None:
        """Ask it for its keys."""
        super().__init__()
        self.lock = threading.Lock()
        self.close = connection.close
        self._connect(connection)  # type: ignore[attr-defined]

    @classmethod
    def at(cls, path: str) -> Agent | None:
        """Return a connection to the agent at a socket; None if nobody answers there."""
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(TIMEOUT_S)
        try:
            connection.connect(path)
            return cls(connection)
        except (paramiko.SSHException, OSError, ValueError, TypeError, struct.error):
            connection.close()  # nobody there, or somebody who talks of something else
            return None

    def held(self) -> list[AgentKey]:
        """Return its keys and certificates."""
        return [AgentKey(key, self) for key in self.get_keys()]


class AgentKey:
    """What paramiko takes for a key. The agent has one connection: it signs for one host at a time."""

    def __init__(self, key: paramiko.AgentKey, agent: Agent) -> None:
        """Wrap a key that the agent has listed."""
        self._key = key
        self._agent = agent
        self.label = str(key.comment or key.get_name())
        if key.get_name().endswith("-cert-v01@openssh.com"):
            key.load_certificate(paramiko.Message(key.blob))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._key, name)

    def sign_ssh_data(self, data: bytes, algorithm: str | None = None) -> Any:
        """Let the agent sign; HostError if it does not."""
        with self._agent.lock:
            try:
                return self._key.sign_ssh_data(data, algorithm)
            except (paramiko.SSHException, OSError, AttributeError):
                self._agent.close()  # an answer that comes late would be taken for the next one's
        raise HostError(
            "key",
            f"the agent does not sign with its key {self.label}",
            "Is it locked, or does it wait to be confirmed? Use a key of webmon's own: key_filename =",
        )
