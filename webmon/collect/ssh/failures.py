"""Whatever ends a conversation → one HostError, with its reason and its remedy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from paramiko.ssh_exception import IncompatiblePeer

from webmon.collect.ssh.wire import GREETING, dropped
from webmon.errors import HostError

if TYPE_CHECKING:
    from webmon.collect.ssh.keys import Key
    from webmon.collect.ssh.wire import Wire
    from webmon.config.settings import HostSettings


# What sshd says, if anything, to those that it drops.
_TOO_BUSY = ("Exceeded MaxStartups", "Not allowed at this time")


def refused(host: HostSettings, keys: list[Key], said: Any = None) -> HostError:
    """Say that the host lets none of the keys in."""
    names = ", ".join(key.name for key in keys)
    allowed = getattr(said, "allowed_types", None)
    more = f"; it wants {', '.join(map(str, allowed))}" if allowed and "publickey" not in allowed else ""
    return HostError(
        "auth",
        f"{host.user} may not log in with {names}{more}",
        f"Put the line that `webmon deploy key` prints into ~{host.user}/.ssh/authorized_keys there",
    )


def explain(error: BaseException | None, wire: Wire) -> HostError:
    """Turn whatever ended a conversation into one HostError. Every low-level failure comes by here."""
    if wire.failure is not None:
        return wire.failure
    if isinstance(error, HostError):
        return error
    if wire.phase == GREETING:
        return _not_greeted(wire)
    said = " ".join(str(error).split())[:200] if error is not None else ""
    if isinstance(error, IncompatiblePeer):
        return HostError(
            "protocol",
            f"no common algorithm: {said}",
            "The host's sshd is too old (SHA-1 and DSA are gone), or allows too little: "
            "curve25519-sha256, aes128-gcm@openssh.com and an ed25519 host key would do",
        )
    if error is None or isinstance(error, EOFError | OSError):
        return HostError("closed", f"the host closed the connection, {wire.phase}", "Look at its sshd's log")
    return HostError("protocol", f"the SSH conversation failed, {wire.phase}: {said}", "Try it with ssh -v")


def _not_greeted(wire: Wire) -> HostError:
    """Tell an sshd that has too much to do from what is no sshd."""
    heard = " ".join(wire.heard.decode("utf-8", "replace").split())
    if not heard or heard.startswith(_TOO_BUSY):
        return dropped(heard)
    return HostError("protocol", f"not an SSH 2 server: it says {heard!r}", "Is the port right?")
