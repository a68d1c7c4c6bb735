"""ProxyJump: one connection to each gateway, shared by all the hosts behind it.

A gateway's sshd drops logins that come all at once (MaxStartups), so it sees one.
"""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING, Any, cast

import paramiko

from webmon.collect.ssh.conversation import Untimed, arrange, check_host_key
from webmon.collect.ssh.failures import explain, refused
from webmon.collect.ssh.retry import retried
from webmon.collect.ssh.wire import GREETING, Wire, connect, timed_out
from webmon.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable

    from webmon.collect.ssh.keys import Key, Keyring
    from webmon.collect.ssh.known_hosts import KnownHosts
    from webmon.config.settings import HostSettings

# Longer than any poll lasts: each host behind a gateway has a deadline of its own.
_LIFETIME = 24 * 3600.0


class _GatewayWire(Wire):
    """A wire for several threads: it sends at once, and `close` ends the read of another thread.

    Its descriptor is closed by the transport's thread, which is the last to read.
    """

    def __init__(self, base: socket.socket | paramiko.Channel, timeout: float) -> None:
        super().__init__(base, time.monotonic() + _LIFETIME, timeout)
        self._link = base

    def send(self, data: bytes) -> int:
        """Send some of the data and return how much."""
        return self._link.send(data)

    def close(self) -> None:
        """End the conversation; whoever is reading sees its end."""
        self._closed = True
        try:
            self._link.shutdown(socket.SHUT_RDWR)
        except (OSError, EOFError, paramiko.SSHException):
            pass  # the other side was quicker

    def trust(self) -> None:
        """Lift the cap: it is who it should be, and all that the hosts behind it say comes through here."""
        self.cap = 1 << 40


class _GatewayTransport(paramiko.Transport):
    """A transport with paramiko's own thread, as several hosts talk through it at once."""

    def run(self) -> None:
        """Run paramiko's loop, then give the descriptor back."""
        try:
            super().run()
        finally:
            cast("Wire", self.sock).release()


class Gateways:
    """The connections to all gateways of one poll."""

    def __init__(self, known: Callable[[HostSettings], KnownHosts], keyring: Keyring) -> None:
        """Connect to none yet."""
        self._known = known
        self._keyring = keyring
        self._lock = threading.Lock()
        self._ways: dict[tuple[HostSettings, ...], _Way] = {}

    def connect(self, host: HostSettings, deadline: float) -> paramiko.Channel:
        """Return a channel to a host through its gateways."""
        transport = self._through(host.jumps, deadline, host.timeout)
        left = deadline - time.monotonic()
        if left <= 0:
            raise timed_out(host.timeout, "connecting to its gateway")
        try:
            return transport.open_channel(
                "direct-tcpip", (host.address, host.port), ("127.0.0.1", 0), timeout=left
            )
        except (paramiko.SSHException, EOFError, OSError) as error:
            gateway = host.jumps[-1].name
            said = " ".join(str(error).split())[:150]
            if "Timeout" in said:
                raise timed_out(host.timeout, f"connecting through {gateway}") from None
            raise HostError(
                "jump",
                f"{gateway} could not connect to {host.address} port {host.port}: {said or 'it hung up'}",
                "Can the gateway reach the host, and does it allow TCP forwarding?",
            ) from None

    def close(self) -> None:
        """End all connections."""
        for way in list(self._ways.values()):
            if way.transport is not None:
                way.transport.close()
                way.transport.join(2)

    def _through(
        self, jumps: tuple[HostSettings, ...], deadline: float, timeout: float
    ) -> paramiko.Transport:
        with self._lock:
            way = self._ways.setdefault(jumps, _Way())
        if not way.lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            late = timed_out(timeout, "waiting for another host's login to it")
            raise _behind(jumps[-1], late)
        try:
            if way.failure is not None:
                raise way.failure
            if way.transport is None or not way.transport.is_active():
                try:
                    way.transport = retried(lambda: self._log_in(jumps, deadline), deadline)
                except HostError as error:
                    failure = _behind(jumps[-1], error)
                    # A host with less time than the gateway's own says nothing about the gateway.
                    if error.reason != "timeout" or timeout >= jumps[-1].timeout:
                        way.failure = failure
                    raise failure from None
            return way.transport
        finally:
            way.lock.release()

    def _log_in(self, jumps: tuple[HostSettings, ...], deadline: float) -> paramiko.Transport:
        gateway = jumps[-1]
        keys = self._keyring.candidates(gateway)
        base: socket.socket | paramiko.Channel
        if len(jumps) > 1:
            outer = self._through(jumps[:-1], deadline, gateway.timeout)
            target = (gateway.address, gateway.port)
            try:
                base = outer.open_channel("direct-tcpip", target, ("127.0.0.1", 0), timeout=10)
            except (paramiko.SSHException, EOFError, OSError) as error:
                raise HostError("jump", f"{jumps[-2].name} could not connect to it: {error}") from None
        else:
            base = connect(gateway.address, gateway.port, deadline, gateway.timeout)
        wire = _GatewayWire(base, gateway.timeout)
        known = self._known(gateway)
        transport = _GatewayTransport(cast("Any", wire), packetizer_class=Untimed)
        left = max(0.1, deadline - time.monotonic())
        transport.banner_timeout = transport.handshake_timeout = transport.auth_timeout = left
        arrange(transport, gateway, known)
        try:
            _authenticate(transport, gateway, known, keys, left)
        except BaseException:
            transport.close()
            raise
        wire.trust()
        return transport


class _Way:
    """One way through gateways: connected, failed, or not tried yet."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.transport: paramiko.Transport | None = None
        self.failure: HostError | None = None


def _authenticate(
    transport: paramiko.Transport, gateway: HostSettings, known: KnownHosts, keys: list[Key], left: float
) -> None:
    wire = cast("Wire", transport.sock)
    try:
        transport.start_client(timeout=left)
        if not transport.initial_kex_done:
            raise timed_out(gateway.timeout, "exchanging keys")
        check_host_key(transport, gateway, known)
        wire.phase = "logging in"
        for key in keys:
            try:
                transport.auth_publickey(gateway.user, key.key)
            except paramiko.AuthenticationException:
                if not transport.is_active():
                    break
            if transport.is_authenticated():
                return
    except (paramiko.SSHException, EOFError, OSError) as error:
        if wire.phase == GREETING and transport.remote_version:
            wire.phase = "exchanging keys"
        raise explain(error, wire) from None
    raise refused(gateway, keys)


def _behind(gateway: HostSettings, error: HostError) -> HostError:
    return HostError("jump", f"the gateway {gateway.name}: {error.problem}", error.remedy)
