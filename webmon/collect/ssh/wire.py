"""A socket with one absolute deadline and a cap on bytes: what nothing can hang or flood.

Every timeout of paramiko is for one read, so a host that drips, stalls or never ends can hold it
for good. It is given this object as its socket instead: at the deadline, or at the cap, reading
and writing fail. `close` only shuts down; `release` closes the descriptor, once nobody reads.
"""

from __future__ import annotations

import errno
import socket
import struct
import time
from typing import TYPE_CHECKING

from webmon.errors import HostError

if TYPE_CHECKING:
    import paramiko

# Two delayed acknowledgements of 40 ms each are spared by these; Linux has both.
_QUICKACK = getattr(socket, "TCP_QUICKACK", None)
_CHUNK = 65536

# How much later than its deadline a read may fail.
_SLACK_S = 0.5

# So much of what is said in place of a greeting is kept, for the error.
_HEARD = 100

# The first of the phases of a conversation, in the words of the errors.
GREETING = "waiting for its greeting"

# Before the login a host has nothing long to say; a greeting that never ends stops here.
GREETING_CAP_BYTES = 256 * 1024


class WireError(OSError):
    """The deadline or the cap was reached; `Wire.failure` says which."""


class DroppedError(HostError):
    """The host closed the connection before it had greeted."""


class Wire:
    """What paramiko takes for a socket, in a conversation that one thread holds by itself.

    What is sent goes out when the next thing is read: messages that belong together leave together,
    and wake the other side once.
    """

    def __init__(self, base: socket.socket | paramiko.Channel, deadline: float, timeout: float) -> None:
        """Wrap a connected socket, or a channel through a jump host."""
        self.failure: HostError | None = None
        self.phase = GREETING
        self.cap = GREETING_CAP_BYTES
        self.received = 0
        self.heard = b""
        self._base = base
        self._deadline = deadline
        self._timeout = timeout
        self._buffer = b""
        self._unsent = b""
        self._closed = False  # paramiko looks at it, as every socket has it
        self._tcp = base if isinstance(base, socket.socket) and base.family != socket.AF_UNIX else None
        self._armed = float("inf")
        if self._tcp is not None:
            self._tcp.settimeout(None)
            self._tcp.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._acknowledge_at_once()

    def time_left(self) -> float:
        """Return the seconds until the deadline; fail if there are none."""
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise self._fail(timed_out(self._timeout, self.phase))
        return left

    def recv(self, size: int) -> bytes:
        """Return up to so many bytes; nothing at the end of the stream."""
        if not self._buffer:
            self._buffer = self._receive()
        chunk, self._buffer = self._buffer[:size], self._buffer[size:]
        return chunk

    def send(self, data: bytes) -> int:
        """Take the data, all of it; it goes out before the next read."""
        self._unsent += data
        return len(data)

    def settimeout(self, seconds: float | None) -> None:
        """Do nothing: the deadline holds, and without this paramiko wakes ten times a second."""

    def gettimeout(self) -> None:
        """Return nothing: see settimeout."""

    def getpeername(self) -> object:
        """Return the other end's address."""
        return self._base.getpeername()

    def close(self) -> None:
        """Do nothing: paramiko calls it in its loop, and `release` comes right after that."""

    def release(self) -> None:
        """End the connection and give the descriptor back. Only once nobody reads any more."""
        self._base.close()

    def flush(self) -> None:
        """Send what has not been sent yet."""
        data, self._unsent = self._unsent, b""
        try:
            self._base.sendall(data)
        except (TimeoutError, BlockingIOError):
            raise self._fail(timed_out(self._timeout, self.phase)) from None
        except OSError:
            pass  # it has hung up; what it said before that can still be read

    def _receive(self) -> bytes:
        self._arm()
        if self._unsent:
            self.flush()
        try:
            chunk = self._base.recv(_CHUNK)
        except (TimeoutError, BlockingIOError):
            raise self._fail(timed_out(self._timeout, self.phase)) from None
        if self._tcp is not None:
            self._acknowledge_at_once()
        self.received += len(chunk)
        if self.phase == GREETING and len(self.heard) < _HEARD:
            self.heard += chunk[: _HEARD - len(self.heard)]
        if self.received > self.cap:
            raise self._fail(too_much(self.cap, self.phase))
        return chunk

    def _arm(self) -> None:
        """See to it that the next read or write fails soon after the deadline.

        The kernel's own timeouts are set anew only once they are off by more than the slack: a
        timeout of Python's costs two further system calls, and a turn at its lock, every time.
        """
        left = self.time_left()
        if self._tcp is None:
            self._base.settimeout(left)
        elif self._armed > left + _SLACK_S:
            self._armed = left
            value = struct.pack("ll", int(left), max(1000, int(left % 1 * 1e6)))
            self._tcp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, value)
            self._tcp.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, value)

    def _acknowledge_at_once(self) -> None:
        if _QUICKACK is not None and self._tcp is not None:
            try:
                self._tcp.setsockopt(socket.IPPROTO_TCP, _QUICKACK, 1)
            except OSError:
                pass  # the connection has just ended; the next read says so

    def _fail(self, failure: HostError) -> WireError:
        self.failure = self.failure or failure
        # With an errno that does not make it a TimeoutError: paramiko would go on waiting.
        return WireError(errno.EPROTO, str(failure))


def timed_out(timeout: float, phase: str) -> HostError:
    """Say that the deadline was reached, and what was being done."""
    remedy = "Is the host overloaded, or a firewall dropping packets? If it is only slow, raise `timeout`"
    if phase == "running the probe":
        remedy = "Run nvidia-smi there: a driver may hang. If it is only slow, raise `timeout`"
    return HostError("timeout", f"no answer within {timeout:g} s, {phase}", remedy)


def too_much(cap: int, phase: str) -> HostError:
    """Say that the host sends more than any honest answer has."""
    size = f"{cap // 2**20} MiB" if cap >= 2**20 else f"{cap // 1024} KiB"
    return HostError(
        "too-much-output",
        f"more than {size} of output, {phase}",
        "Log in by hand: does its shell, or nvidia-smi, print without end?",
    )


def dropped(heard: str = "") -> DroppedError:
    """Say that the host has no time for us, and what it said, if anything."""
    return DroppedError(
        "closed",
        f"the host closed the connection, {GREETING}" + (f": {heard}" if heard else ""),
        "Look at its sshd's log; many logins at once can hit MaxStartups",
    )


def connect(address: str, port: int, deadline: float, timeout: float) -> socket.socket:
    """Return a TCP connection, trying each of the name's addresses while there is time."""
    try:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        said = error.strerror if isinstance(error, socket.gaierror) else "not a valid name"
        raise HostError(
            "dns",
            f"the name {address} could not be resolved: {said}",
            "Check the spelling in `hosts`, or give its address: hostname = under its [host] section",
        ) from None
    problem: HostError | None = None
    for position, (family, kind, protocol, _, target) in enumerate(found):
        left = deadline - time.monotonic()
        if left <= 0:
            break
        try:
            connection = socket.socket(family, kind, protocol)
        except OSError as error:  # no IPv6 in this kernel, say: the next address may do
            problem = problem or _not_connected(error, address, port, timeout)
            continue
        connection.settimeout(left / (len(found) - position))
        try:
            connection.connect(target)
        except OSError as error:
            connection.close()
            problem = _not_connected(error, address, port, timeout)
        else:
            return connection
    raise problem or timed_out(timeout, "looking up its name")


def _not_connected(error: OSError, address: str, port: int, timeout: float) -> HostError:
    if isinstance(error, TimeoutError):
        return timed_out(timeout, "connecting")
    if isinstance(error, ConnectionResetError):
        return dropped()
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return HostError(
            "internal",
            f"webmon may open no more files: {error.strerror}",
            "Raise the limit (ulimit -n), or ask fewer hosts at the same time: jobs =",
        )
    if isinstance(error, ConnectionRefusedError):
        return HostError(
            "refused",
            f"{address} refuses connections on port {port}",
            "Is sshd running there, and on that port? Check the firewall",
        )
    return HostError(
        "unreachable",
        f"{address} can't be reached: {error.strerror or error}",
        "Is the host switched on, and in a network that this machine can reach?",
    )
