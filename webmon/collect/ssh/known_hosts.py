"""known_hosts, read once, and tolerant: a bad line is passed over, with a warning.

paramiko's own reader is quadratic, and one line that it does not understand (@cert-authority) makes
it refuse the file as a whole. Here names are looked up in a dict, hashed ones by their HMAC.
"""

from __future__ import annotations

import base64
import binascii
import fcntl
import hashlib
import hmac
import os
import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from webmon.config.ssh_config import matches
from webmon.errors import HostError

if TYPE_CHECKING:
    from pathlib import Path

_append_lock = threading.Lock()


@dataclass(slots=True)
class KnownHosts:
    """The host keys of some known_hosts files. A key is its type and its base64 text."""

    files: tuple[Path, ...] = ()
    warnings: list[str] = field(default_factory=list)
    _plain: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    _hashed: list[tuple[bytes, bytes, tuple[str, str]]] = field(default_factory=list)
    _patterns: list[tuple[list[str], tuple[str, str]]] = field(default_factory=list)
    _found: dict[str, set[tuple[str, str]]] = field(default_factory=dict)
    _revoked: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def read(cls, files: tuple[Path, ...]) -> KnownHosts:
        """Read the files; one that is not there has no keys in it."""
        known = cls(files)
        for path in files:
            try:
                lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
            except FileNotFoundError:
                continue
            except OSError as error:
                known.warnings.append(f"{path}: {error.strerror}; its host keys are not known")
                continue
            for number, line in enumerate(lines, start=1):
                if line.strip() and not line.lstrip().startswith("#"):
                    known._take(line.split(), f"{path}:{number}")
        return known

    def keys(self, name: str) -> set[tuple[str, str]]:
        """Return the keys that are known for a host, called as known_hosts calls it."""
        if name not in self._found:
            self._found[name] = self._search(name)
        return self._found[name]

    def _search(self, name: str) -> set[tuple[str, str]]:
        found = set(self._plain.get(name, ()))
        encoded = name.encode()
        for salt, digest, key in self._hashed:
            if hmac.digest(salt, encoded, hashlib.sha1) == digest:
                found.add(key)
        for patterns, key in self._patterns:
            if matches(name, patterns):
                found.add(key)
        return found

    def is_revoked(self, key: tuple[str, str]) -> bool:
        """Tell whether a key stands in an @revoked line."""
        return key in self._revoked

    def _take(self, words: list[str], where: str) -> None:
        marker = words.pop(0) if words[0].startswith("@") else ""
        if len(words) < 3 or not _is_base64(words[2]):
            self.warnings.append(f"{where}: this line can't be read; it is passed over")
            return
        names, key = words[0], (words[1], words[2])
        if marker == "@revoked":
            self._revoked.add(key)
        elif marker:
            return  # @cert-authority: hosts show their plain key as well
        elif names.startswith("|1|"):
            try:
                salt, digest = (base64.b64decode(part) for part in names.split("|")[2:4])
            except (ValueError, binascii.Error):
                self.warnings.append(f"{where}: this line can't be read; it is passed over")
            else:
                self._hashed.append((salt, digest, key))
        else:
            self.take_plain(names.split(","), key)

    def take_plain(self, names: list[str], key: tuple[str, str]) -> None:
        """Remember a key for hosts whose names are not hashed."""
        self._found.clear()
        if any(set(name) & set("*?!") for name in names):
            self._patterns.append((names, key))
        else:
            for name in names:
                self._plain.setdefault(name.lower(), set()).add(key)


def called(address: str, port: int, alias: str | None) -> str:
    """Return the name that known_hosts has for a host: `host`, or `[host]:2222`."""
    if alias:
        return alias.lower()
    return address.lower() if port == 22 else f"[{address.lower()}]:{port}"


def check(known: KnownHosts, name: str, key: tuple[str, str], policy: str) -> None:
    """Accept a host's key, or say why not. `accept-new` remembers the key of a new host."""
    if policy == "off":
        return
    if known.is_revoked(key):
        raise HostError(
            "host-key",
            f"the host key of {name} is revoked in known_hosts",
            "Do not log in; ask who runs the host",
        )
    expected = known.keys(name)
    if key in expected:
        return
    if not expected:
        if policy == "accept-new":
            _remember(known, name, key)
            return
        raise HostError(
            "host-key",
            f"the host key of {name} is not known ({key[0]} {fingerprint(key)}){_odd(known)}",
            f"Log in once with ssh to accept it, run `{_keyscan(name)} >> {_file(known)}`, "
            'or set host_keys = "accept-new"',
        )
    same_type = next((old for old in sorted(expected) if old[0] == key[0]), None)
    was = f"{fingerprint(same_type)} before" if same_type else "of another type before"
    raise HostError(
        "host-key",
        f"the host key of {name} has changed: {key[0]} {fingerprint(key)}, {was}",
        f"If the host was set up anew: `ssh-keygen -R '{name}' -f {_file(known)}`, then log in once "
        "with ssh. If not, somebody may be in between",
    )


def fingerprint(key: tuple[str, str]) -> str:
    """Return a key's fingerprint as ssh shows it."""
    digest = hashlib.sha256(base64.b64decode(key[1])).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")


def _remember(known: KnownHosts, name: str, key: tuple[str, str]) -> None:
    if not known.files:
        return
    path = known.files[0]
    with _append_lock:
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            with open(descriptor, "a+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                size = file.seek(0, os.SEEK_END)
                if size:
                    file.seek(size - 1)
                newline = b"\n" if size and file.read(1) != b"\n" else b""
                file.write(newline + f"{name} {key[0]} {key[1]}\n".encode())
        except OSError as error:
            raise HostError(
                "host-key",
                f"the new host key of {name} could not be saved in {path}: {error.strerror}",
                "Make the file writable, or name another one: known_hosts =",
            ) from None
        known.take_plain([name], key)


def _is_base64(text: str) -> bool:
    try:
        return bool(base64.b64decode(text, validate=True))
    except (ValueError, binascii.Error):
        return False


def _file(known: KnownHosts) -> str:
    return str(known.files[0]) if known.files else "~/.ssh/known_hosts"


def _odd(known: KnownHosts) -> str:
    """Name a line that could not be read: it may be the one that is missed."""
    more = len(known.warnings) - 1
    return "".join(f"; {warning}" for warning in known.warnings[:1]) + (
        f" (and {more} more)" if more > 0 else ""
    )


def _keyscan(name: str) -> str:
    if name.startswith("["):
        address, _, port = name[1:].partition("]:")
        return f"ssh-keyscan -p {port} {address}"
    return f"ssh-keyscan {name}"
