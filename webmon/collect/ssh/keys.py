"""Whom webmon logs in as: private keys, certificates, the agent. Each is loaded once."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import paramiko

from webmon.errors import ConfigError, HostError

if TYPE_CHECKING:
    from pathlib import Path

    from webmon.config.settings import HostSettings

_agent_lock = threading.Lock()

# Servers hang up after six failed logins; more keys than this would never be looked at.
MAX_KEYS = 5


@dataclass(frozen=True, slots=True)
class Key:
    """A key to try, and what to call it when it is refused."""

    key: Any
    name: str


class KeyFileError(Exception):
    """A key file can't be used; `remedy` says what to do."""

    def __init__(self, problem: str, remedy: str) -> None:
        """Say what is wrong with the file."""
        super().__init__(problem)
        self.remedy = remedy


def check(path: Path, agent: str | None) -> None:
    """Fail with a clear line when the key that everything depends on can't be used."""
    try:
        _from_file_or_agent(path, agent)
    except KeyFileError as problem:
        raise ConfigError(f"key_filename: {problem}", problem.remedy) from None


def candidates(host: HostSettings) -> list[Key]:
    """Return the keys to try on a host: the one that is named, or else what ssh would try."""
    try:
        if host.key_filename is not None:
            return [_from_file_or_agent(host.key_filename, host.identity_agent)]
        keys: list[Key] = []
        encrypted: list[KeyFileError] = []
        for path in host.identity_files:
            try:
                keys.append(_from_file_or_agent(path, host.identity_agent))
            except KeyFileError as problem:
                if path.exists():
                    encrypted.append(problem)
        if not host.identities_only:
            keys += _agent_keys(host.identity_agent)
    except KeyFileError as problem:
        raise HostError("key", str(problem), problem.remedy) from None
    keys = list(
        {key.key.asbytes() + bytes(str(_certificate(key.key)), "ascii"): key for key in keys}.values()
    )
    if not keys:
        if encrypted:
            raise HostError("key", str(encrypted[0]), encrypted[0].remedy)
        raise HostError(
            "key",
            "there is no private key to log in with",
            "Make one with `ssh-keygen -t ed25519` and name it: key_filename =",
        )
    return keys[:MAX_KEYS]


def _certificate(key: Any) -> str:
    blob = getattr(key, "public_blob", None)
    return blob.key_type if blob else ""


def _from_file_or_agent(path: Path, agent: str | None) -> Key:
    try:
        return _from_file(path)
    except KeyFileError:
        # An encrypted key, or only its public half: the agent may hold it.
        public = _public_part(path)
        for key in _agent_keys(agent) if public else ():
            if key.key.asbytes() == public:
                return key
        raise


@cache
def _load(path: Path) -> Key | KeyFileError:
    remedy = "Name a private key that this user may read: key_filename ="
    try:
        key = paramiko.PKey.from_path(path)
    except FileNotFoundError:
        return KeyFileError(
            f"there is no key {path}", f"{remedy}, or make one: ssh-keygen -t ed25519 -f {path}"
        )
    except OSError as error:
        return KeyFileError(f"the key {path} can't be read: {error.strerror}", remedy)
    except (paramiko.PasswordRequiredException, TypeError):
        return KeyFileError(
            f"the key {path} is encrypted",
            f"Add it to an agent (ssh-add {path}), or make a key without a passphrase for webmon alone",
        )
    except (paramiko.SSHException, ValueError, paramiko.pkey.UnknownKeyType, IndexError) as error:
        if _is_encrypted(path):
            return KeyFileError(
                f"the key {path} is encrypted",
                f"Add it to an agent (ssh-add {path}), or make a key without a passphrase for webmon alone",
            )
        said = str(error).strip().split("\n")[0][:100] or type(error).__name__
        return KeyFileError(f"{path} is not a private key that can be used ({said})", remedy)
    except Exception as error:  # noqa: BLE001 - a key file is any bytes; its reader has no root exception
        return KeyFileError(f"{path} is not a private key that can be used ({error})", remedy)
    return Key(key, str(path))


def _from_file(path: Path) -> Key:
    loaded = _load(path)
    if isinstance(loaded, KeyFileError):
        raise loaded
    return loaded


def _is_encrypted(path: Path) -> bool:
    try:
        return b"ENCRYPTED" in path.read_bytes()[:4096]
    except OSError:
        return False


def _public_part(path: Path) -> bytes | None:
    import base64
    import binascii

    for name in (path, path.with_name(path.name + ".pub")):
        try:
            words = name.read_bytes()[:16384].split()
            if len(words) >= 2 and not words[0].startswith(b"-"):
                return base64.b64decode(words[1], validate=True)
        except (OSError, ValueError, binascii.Error):
            continue
    return None


class _AgentKey:
    """A key of the agent. The agent has one connection, so it signs for one host at a time."""

    def __init__(self, key: paramiko.AgentKey) -> None:
        self._key = key

    def __getattr__(self, name: str) -> Any:
        return getattr(self._key, name)

    def sign_ssh_data(self, data: bytes, algorithm: str | None = None) -> Any:
        with _agent_lock:
            return self._key.sign_ssh_data(data, algorithm)


def _agent_keys(socket_path: str | None) -> list[Key]:
    with _agent_lock:
        return _ask_agent(socket_path) if socket_path else []


@cache
def _ask_agent(socket_path: str) -> list[Key]:
    # paramiko looks for the agent in the environment and nowhere else.
    before = os.environ.get("SSH_AUTH_SOCK")
    os.environ["SSH_AUTH_SOCK"] = socket_path
    try:
        agent_keys = paramiko.Agent().get_keys()
    except (paramiko.SSHException, OSError):
        return []
    finally:
        if before is None:
            del os.environ["SSH_AUTH_SOCK"]
        else:
            os.environ["SSH_AUTH_SOCK"] = before
    return [Key(_AgentKey(key), f"{key.comment or key.get_name()} (agent)") for key in agent_keys]
