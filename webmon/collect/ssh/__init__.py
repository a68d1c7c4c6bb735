"""Run the probe on one host over SSH: one connection, one command, one deadline.

This folder, and the demo's hosts, are the only places that know of paramiko.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from webmon.collect.ssh import lean as _lean  # noqa: F401 - before all that imports paramiko

# isort: split
from webmon.collect import probe
from webmon.collect.ssh import conversation
from webmon.collect.ssh.jump import Gateways
from webmon.collect.ssh.keys import Keyring
from webmon.collect.ssh.known_hosts import KnownHosts
from webmon.collect.ssh.retry import retried
from webmon.collect.ssh.wire import Wire, connect
from webmon.errors import ConfigError, HostError

if TYPE_CHECKING:
    from pathlib import Path

    from webmon.config.settings import Config, HostSettings

# Its complaints come as HostErrors; on standard error they would be cron's mail.
logging.getLogger("paramiko").setLevel(logging.CRITICAL + 1)


class Ssh:
    """What the conversations of one poll share: known hosts, keys, gateways."""

    def __init__(self, config: Config) -> None:
        """Check the key that all hosts depend on; ConfigError if it can't be used."""
        self._known: dict[tuple[Path, ...], KnownHosts] = {}
        self._known_lock = threading.Lock()
        self._keyring = Keyring()
        self._gateways = Gateways(self._known_hosts, self._keyring)
        common = {
            (host.key_filename, host.identity_agent)
            for host in config.hosts
            if host.key_filename is not None
            and host.sources.get("key_filename") == config.sources.get("common.key_filename")
        }
        try:
            for path, agent in common:
                if path is not None:
                    self._keyring.check(path, agent)
        except ConfigError:
            self._keyring.close()
            raise

    def ask(self, host: HostSettings, token: str) -> bytes:
        """Return what the probe printed on a host, within its timeout; else HostError."""
        deadline = time.monotonic() + host.timeout
        if host.proxy_command is not None:
            raise HostError(
                "config",
                f"webmon does not run the ProxyCommand of ~/.ssh/config ({host.proxy_command[:60]})",
                "Use ProxyJump there, or proxy_jump = in webmon's configuration",
            )
        login = conversation.Login(
            host=host,
            keys=self._keyring.candidates(host),
            known=self._known_hosts(host),
            command=probe.command(token),
            script=probe.script(host.nvidia_smi, host.timeout).encode(),
            end_mark=f"\n@{token} end".encode(),
        )

        def converse() -> bytes:
            base = (
                self._gateways.connect(host, deadline)
                if host.jumps
                else connect(host.address, host.port, deadline, host.timeout)
            )
            return conversation.hold(Wire(base, deadline, host.timeout), login)

        return retried(converse, deadline)

    def close(self) -> None:
        """End the connections to gateways and agents."""
        self._gateways.close()
        self._keyring.close()

    def _known_hosts(self, host: HostSettings) -> KnownHosts:
        with self._known_lock:
            known = self._known.get(host.known_hosts)
            if known is None:
                known = self._known[host.known_hosts] = KnownHosts.read(host.known_hosts)
            return known
