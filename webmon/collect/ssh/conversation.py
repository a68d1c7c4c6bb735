"""One host's whole conversation, in the thread that asks: log in, send the probe, read the answer.

paramiko runs a thread for every connection and wakes the asking one by events. Here its loop runs
in the asking thread itself. The loop takes its messages from a Packetizer; ours, `_Conversation`,
hands over all that is about keys and logging in, and keeps for itself what comes after: the one
channel on which the probe runs. That needs public methods only (`packetizer_class`,
`read_message`, `send_message`, `start_client(event)`, `auth_publickey(event)`), saves a third of the
CPU time of a host (benchmarks/README.md), and leaves no thread that could stay behind.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import paramiko
from paramiko.common import MSG_DEBUG, MSG_IGNORE
from paramiko.packet import Packetizer

from webmon.collect.ssh import known_hosts
from webmon.collect.ssh.channel import ANSWER_CAP_BYTES, Channel
from webmon.collect.ssh.failures import explain, refused
from webmon.errors import HostError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from webmon.collect.ssh.keys import Key
    from webmon.collect.ssh.wire import Wire
    from webmon.config.settings import HostSettings

# curve25519 and AES-GCM cost the least, on both sides. Nothing is taken off the lists: hosts with
# only RSA keys or older ciphers exist.
_FIRST_KEX = "curve25519-sha256@libssh.org"
_FIRST_CIPHER = "aes128-gcm@openssh.com"

# What an sshd tells for debugging; paramiko would format it, letter by letter, for a log.
_CHATTER = (MSG_IGNORE, MSG_DEBUG)


@dataclass(slots=True)
class Login:
    """What a conversation needs to know of its host."""

    host: HostSettings
    keys: list[Key]
    known: known_hosts.KnownHosts
    command: str
    script: bytes
    # The answer is complete once it ends with this and the exit status has come.
    end_mark: bytes


def hold(wire: Wire, login: Login) -> bytes:
    """Hold the conversation and return the probe's output; HostError says why there is none."""
    transport = _Transport(cast("Any", wire), packetizer_class=_Conversation)
    conversation = cast("_Conversation", transport.packetizer)
    conversation.begin(transport, wire, login)
    arrange(transport, login.host, login.known)
    try:
        transport.start_client(event=cast("threading.Event", _Flag()))
        transport.run()
        return conversation.answer()
    finally:
        wire.release()
        # A transport refers to itself in many places; freed now, it needs no garbage collector.
        conversation.end()
        vars(transport).clear()


def arrange(transport: paramiko.Transport, host: HostSettings, known: known_hosts.KnownHosts) -> None:
    """Put the cheapest algorithms first, and the type of host key that is known for this host."""
    options = transport.get_security_options()
    options.kex = _first(options.kex, lambda name: name == _FIRST_KEX)
    options.ciphers = _first(options.ciphers, lambda name: name == _FIRST_CIPHER)
    name = known_hosts.called(host.address, host.port, host.host_key_alias)
    types = {key[0] for key in known.keys(name)} if host.host_keys != "off" else set()
    if types:
        options.key_types = _first(
            options.key_types,
            lambda kind: kind in types or (kind.startswith("rsa-sha2-") and "ssh-rsa" in types),
        )


def check_host_key(transport: paramiko.Transport, host: HostSettings, known: known_hosts.KnownHosts) -> None:
    """Accept the key that the host has shown, or fail; before anything is told to it."""
    shown = transport.get_remote_server_key()
    key = (shown.get_name(), base64.b64encode(shown.asbytes()).decode())
    name = known_hosts.called(host.address, host.port, host.host_key_alias)
    known_hosts.check(known, name, key, host.host_keys)


def _first(names: Any, wanted: Callable[[str], bool]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: not wanted(name)))


class _Flag:
    """What paramiko takes for an Event. There is one thread, so nobody ever waits for it."""

    def __init__(self) -> None:
        self._is_set = False

    def set(self) -> None:
        """Remember that it has happened."""
        self._is_set = True

    def is_set(self) -> bool:
        """Tell whether it has."""
        return self._is_set


class _Transport(paramiko.Transport):
    """A transport that starts no thread: its loop is run by whoever wants it to run."""

    def start(self) -> None:
        """Do nothing; `run` is called by `hold`."""


class Untimed(Packetizer):
    """A Packetizer without paramiko's timer thread for each handshake, which can outlive a poll."""

    def start_handshake(self, timeout: float) -> None:
        """Start no timer thread: whoever waits has a deadline."""

    def complete_handshake(self) -> None:
        """Stop no timer thread."""

    def handshake_timed_out(self) -> bool:
        """Return no: see start_handshake."""
        return False


class _Conversation(Untimed):
    """Gives paramiko's loop its messages, and talks on the channel itself."""

    _login: Login
    _transport: paramiko.Transport | None
    _wire: Wire

    def begin(self, transport: paramiko.Transport, wire: Wire, login: Login) -> None:
        """Say whose conversation this is."""
        self._transport, self._wire, self._login = transport, wire, login
        self._untried = list(login.keys)
        self._logging_in: _Flag | None = None
        self._channel: Channel | None = None

    def read_message(self) -> Any:
        """Return the next message that is paramiko's to handle."""
        while True:
            self._take_next_step()
            kind, message = super().read_message()
            if kind in _CHATTER and self._logging_in is not None:
                continue
            if self._channel is None or not self._channel.handle(kind, message):
                return kind, message
            if self._channel.is_done:
                raise EOFError

    def answer(self) -> bytes:
        """Return what the probe printed; HostError if it did not come to its end."""
        transport = self._transport
        assert transport is not None
        error = transport.get_exception()
        channel = self._channel
        if self._wire.failure is not None or isinstance(error, HostError):
            raise explain(error, self._wire)
        if channel is not None and channel.is_done:
            if channel.status is not None:
                return channel.output()
            raise HostError(
                "cut-off",
                "the probe was ended before it had answered",
                "Does the host kill processes of this user, or has its memory run out?",
            )
        if self._wire.phase == "logging in" and error is None:  # it took its leave in good order
            raise refused(self._login.host, self._login.keys)
        raise explain(error, self._wire)

    def end(self) -> None:
        """Let go of everything."""
        self._transport = self._channel = None

    def _take_next_step(self) -> None:
        """Do what the last message has made possible: check the host, log in, open the channel."""
        transport = self._transport
        assert transport is not None
        if self._channel is not None:
            return
        if self._logging_in is None:
            if transport.completion_event is not None and transport.completion_event.is_set():
                check_host_key(transport, self._login.host, self._login.known)
                self._wire.phase = "logging in"
                self._try_next_key(transport)
            elif self._wire.received:
                self._wire.phase = "exchanging keys"
        elif self._logging_in.is_set():
            if transport.is_authenticated():
                self._open_channel()
            else:
                self._try_next_key(transport)

    def _try_next_key(self, transport: paramiko.Transport) -> None:
        if not self._untried:
            raise refused(self._login.host, self._login.keys, transport.get_exception())
        self._logging_in = _Flag()
        key = self._untried.pop(0).key
        transport.auth_publickey(self._login.host.user, key, event=cast("threading.Event", self._logging_in))

    def _open_channel(self) -> None:
        login = self._login
        self._wire.phase = "running the probe"
        self._wire.cap = self._wire.received + ANSWER_CAP_BYTES
        self._channel = Channel(self.send_message, login.host.user, login.command)
        self._channel.open(login.script, login.end_mark)
