"""Whom webmon logs in as: private keys, certificates, the agent. Each is loaded once."""

from __future__ import annotations

import base64
import threading
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import paramiko

from webmon.collect.ssh.agent import Agent, AgentKey
from webmon.errors import ConfigError, HostError

if TYPE_CHECKING:
    from pathlib import Path

    from webmon.config.settings import HostSettings

# Servers hang up after six failed logins; more keys than this would never be looked at.
MAX_KEYS = 5


@dataclass(frozen=True, slots=True)
class Key:
    """A key to try, and what to call it when it is refused."""

    key: Any
    name: str

    @property
    def blob(self) -> bytes:
        """Return what a host is shown: the certificate, or the public key."""
        certificate = getattr(self.key, "public_blob", None)
        return bytes(certificate.key_blob if certificate else self.key.asbytes())


class KeyFileError(Exception):
    """A key file can't be used; `remedy` says what to do."""

    def __init__(self, problem: str, remedy: str) -> None:
        """Say what is wrong with the file."""
        super().__init__(problem)
        self.remedy = remedy


class Keyring:
    """The keys of one poll: each file is read once, and each agent asked once."""

    def __init__(self) -> None:
        """Read nothing yet."""
        self._lock = threading.RLock()
        self._is_closed = False
        self._files: dict[Path, Any] = {}
        self._candidates: dict[tuple[object, ...], list[Key]] = {}
        self._agents: dict[str, Agent | None] = {}

    def check(self, path: Path, agent: str | None) -> None:
        """Fail with a clear line when the key that everything depends on can't be used."""
        try:
            self._from_file_or_agent(path, agent)
        except KeyFileError as problem:
            raise ConfigError(f"key_filename: {problem}", problem.remedy) from None

    def candidates(self, host: HostSettings) -> list[Key]:
        """Return the keys to try on a host: the one that is named, or else what ssh would try."""
        files = (host.key_filename, host.identity_files, host.certificate_files)
        asked = (*files, host.identity_agent, host.identities_only)
        with self._lock:
            if asked not in self._candidates:
                self._candidates[asked] = self._found(host)
            return self._candidates[asked]

    def _found(self, host: HostSettings) -> list[Key]:
        keys: list[Key] = []
        unusable: list[KeyFileError] = []
        named = host.key_filename is not None
        for path in (host.key_filename,) if host.key_filename is not None else host.identity_files:
            try:
                key = self._from_file_or_agent(path, host.identity_agent)
            except KeyFileError as problem:
                if named or path.exists():
                    unusable.append(problem)
            else:
                keys += _with_certificates(key, path, host.certificate_files)
        if not named and not host.identities_only:
            keys += self._agent_keys(host.identity_agent)
        if keys:
            return list({key.blob: key for key in keys}.values())[:MAX_KEYS]
        if unusable:
            raise HostError("key", str(unusable[0]), unusable[0].remedy)
        raise HostError(
            "key",
            "there is no private key to log in with",
            "Make one with `ssh-keygen -t ed25519` and name it: key_filename =",
        )

    def close(self) -> None:
        """End the connections to agents; one that hangs is not waited for, and ends by itself."""
        self._is_closed = True
        if not self._lock.acquire(timeout=0.2):
            return
        try:
            self._hang_up()
        finally:
            self._lock.release()

    def _hang_up(self) -> None:
        for agent in self._agents.values():
            if agent is not None:
                agent.close()
        self._agents.clear()

    def _from_file_or_agent(self, path: Path, agent: str | None) -> Key:
        with self._lock:
            if path not in self._files:
                try:
                    self._files[path] = _load(path)
                except KeyFileError as problem:
                    self._files[path] = problem
            loaded = self._files[path]
            if not isinstance(loaded, KeyFileError):
                return Key(loaded, str(path))
            # An encrypted key, or only its public half: the agent may hold it.
            public = _public_part(path)
            for key in self._agent_keys(agent) if public else ():
                if key.key.asbytes() == public:
                    return key
        raise loaded

    def _agent_keys(self, socket_path: str | None) -> list[Key]:
        if not socket_path:
            return []
        with self._lock:
            if socket_path not in self._agents:
                self._agents[socket_path] = Agent.at(socket_path)
            agent = self._agents[socket_path]
            if self._is_closed:
                self._hang_up()
                return []
        return [Key(key, f"{key.label} (agent)") for key in agent.held()] if agent is not None else []


def _load(path: Path) -> paramiko.PKey:
    remedy = "Name a private key that this user may read: key_filename ="
    try:
        return paramiko.PKey.from_path(path)
    except FileNotFoundError:
        raise KeyFileError(
            f"there is no key {path}", f"{remedy}, or make one: ssh-keygen -t ed25519 -f {path}"
        ) from None
    except OSError as error:
        raise KeyFileError(f"the key {path} can't be read: {error.strerror}", remedy) from None
    except Exception as error:  # noqa: BLE001 - a key file is any bytes; its reader has no root exception
        if isinstance(error, paramiko.PasswordRequiredException | TypeError) or _is_encrypted(path):
            raise KeyFileError(
                f"the key {path} is encrypted",
                f"Add it to an agent (ssh-add {path}), or make a key without a passphrase for webmon alone",
            ) from None
        said = str(error).strip().split("\n")[0][:100] or type(error).__name__
        certificate = path.with_name(f"{path.name}-cert.pub")
        if certificate.exists():
            raise KeyFileError(
                f"{certificate} is no certificate of the key beside it ({said})",
                "Remove it, or sign the key anew",
            ) from None
        raise KeyFileError(f"{path} is not a private key that can be used ({said})", remedy) from None


def _with_certificates(key: Key, path: Path, files: tuple[Path, ...]) -> list[Key]:
    """Return the key with each certificate that is about it, then by itself, as ssh tries them."""
    if isinstance(key.key, AgentKey):
        return [key]
    # After the algorithm's name a key and its certificate have the same numbers.
    blob = key.key.asbytes()
    numbers = blob[4 + int.from_bytes(blob[:4], "big") :]
    found = []
    for file in (path.with_name(f"{path.name}-cert.pub"), *files):
        certified = copy(key.key)
        try:
            certified.load_certificate(str(file))
        except (OSError, ValueError, paramiko.SSHException):
            continue  # it is not there, or about a key of another type
        if numbers in certified.public_blob.key_blob:
            found.append(Key(certified, str(file)))
    plain = copy(key.key)
    plain.public_blob = None
    return [*found, Key(plain, key.name)]


def _is_encrypted(path: Path) -> bool:
    try:
        return b"ENCRYPTED" in path.read_bytes()[:4096]
    except OSError:
        return False


def _public_part(path: Path) -> bytes | None:
    for name in (path, path.with_name(path.name + ".pub")):
        try:
            words = name.read_bytes()[:16384].split()
            if len(words) >= 2 and not words[0].startswith(b"-"):
                return base64.b64decode(words[1], validate=True)
        except (OSError, ValueError):
            continue
    return None
