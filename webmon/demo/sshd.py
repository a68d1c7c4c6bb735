"""A pretended host: a real SSH server on loopback, which runs what it is sent in a real shell.

It lets in one key, on 127.0.0.1 only. Its shell finds the stand-ins for nvidia-smi and ps first.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import subprocess
import threading
from typing import TYPE_CHECKING

import paramiko
from paramiko.common import (
    AUTH_FAILED,
    AUTH_SUCCESSFUL,
    OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED,
    OPEN_SUCCEEDED,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)

_COMMAND_SECONDS = 30


class HostServer:
    """One pretended host, listening on a free port of 127.0.0.1."""

    def __init__(
        self, host_key: paramiko.PKey, user_key: paramiko.PKey, environment: Callable[[], Mapping[str, str]]
    ) -> None:
        """Listen; `environment` gives the variables of each command that is run."""
        self._host_key = host_key
        self._user_key = user_key
        self._environment = environment
        self._transports: set[paramiko.Transport] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True, name=f"demo host {self.port}").start()

    def close(self) -> None:
        """Stop listening and end all connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for transport in list(self._transports):
            transport.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        transport = paramiko.Transport(connection)
        self._transports.add(transport)
        try:
            transport.add_server_key(self._host_key)
            session = _Session(self._user_key)
            transport.start_server(server=session)
            channel = transport.accept(_COMMAND_SECONDS)
            if channel is not None and session.asked.wait(_COMMAND_SECONDS):
                self._run(channel, session.command)
        except (paramiko.SSHException, EOFError, OSError):
            pass  # the other side has gone
        finally:
            transport.close()
            self._transports.discard(transport)

    def _run(self, channel: paramiko.Channel, command: str) -> None:
        variables = {**os.environ, **self._environment()}
        with subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=variables,
        ) as process:
            channel.settimeout(_COMMAND_SECONDS)
            script = b"".join(iter(lambda: channel.recv(65536), b""))
            try:
                output, _ = process.communicate(script, timeout=_COMMAND_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                return
        channel.sendall(output)
        channel.send_exit_status(process.returncode)
        channel.shutdown_write()
        channel.close()


class _Session(paramiko.ServerInterface):
    """Lets in one key, and takes one command."""

    def __init__(self, user_key: paramiko.PKey) -> None:
        self._user_key = user_key
        self.command = ""
        self.asked = threading.Event()

    def get_allowed_auths(self, username: str) -> str:  # noqa: ARG002
        return "publickey"

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:  # noqa: ARG002
        return AUTH_SUCCESSFUL if key == self._user_key else AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:  # noqa: ARG002
        is_session = kind == "session"
        return OPEN_SUCCEEDED if is_session else OPEN_FAILED_ADMINISTRATIVELY_PROHIBITED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:  # noqa: ARG002
        self.command = command.decode("utf-8", "replace")
        self.asked.set()
        return True
