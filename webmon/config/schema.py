"""The sections and keys that a configuration may have, with their types and defaults.

docs/configuration.md describes every key; a test holds the two together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webmon.availability import Rules
from webmon.config import hostlist

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class Key:
    """One key: how its value is read, and what it is when nobody says."""

    read: Callable[[Any], Any]
    default: Any = None
    per_host: bool = False


def text(value: Any) -> str:
    """Read a text that is not empty and stands on one line."""
    if isinstance(value, bool) or not isinstance(value, str):
        raise ValueError(f'is {_kind(value)}, not a text: write it in quotes, "{value}"')
    if not value.strip():
        raise ValueError("is empty: give it a value, or remove the line")
    if any(ord(char) < 32 or ord(char) == 127 for char in value):
        raise ValueError("has a control character in it: it has to be one line of text")
    return value.strip()


def texts(value: Any) -> tuple[str, ...]:
    """Read a list of texts; a text with commas is a list too, with brackets or without."""
    if isinstance(value, str):
        bare = value.strip()
        bare = bare[1:-1] if bare.startswith("[") and bare.endswith("]") else bare
        return tuple(part for item in bare.split(",") if (part := item.strip(" \t\"'")))
    if not isinstance(value, list):
        raise ValueError(f'is {_kind(value)}, not a list: write ["a", "b"]')
    return tuple(text(item) for item in value)


def hosts(value: Any) -> tuple[hostlist.HostName, ...]:
    """Read `hosts`, its ranges expanded."""
    entries = [value] if isinstance(value, str) else value
    if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
        raise ValueError(f'is {_kind(value)}, not a list of names: write ["gpu[01-16]", "bob@old:2222"]')
    names: dict[str, hostlist.HostName] = {}
    for entry in (part for item in entries for part in hostlist.split(item)):
        for expanded in hostlist.expand(entry):
            host = hostlist.parse(expanded)
            known = names.setdefault(host.name, host)
            if known != host:
                raise ValueError(f"names {host.name} twice, with different users")
        if len(names) > hostlist.MAX_HOSTS:
            raise ValueError(f"stands for more than {hostlist.MAX_HOSTS} hosts")
    if not names:
        raise ValueError('is empty: name at least one host, or "self" for this machine')
    return tuple(names.values())


def number(minimum: float, maximum: float) -> Callable[[Any], float]:
    """Make the reader of a number within limits."""

    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"is {_kind(value)}, not a number{_as_number(value)}")
        if not minimum <= value <= maximum:
            raise ValueError(f"is {value}; it goes from {minimum:g} to {maximum:g}")
        return float(value)

    return read


def whole(minimum: int, maximum: int) -> Callable[[Any], int]:
    """Make the reader of a whole number within limits."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"is {_kind(value)}, not a whole number{_as_number(value)}")
        if not minimum <= value <= maximum:
            raise ValueError(f"is {value}; it goes from {minimum} to {maximum}")
        return value

    return read


def choice(*choices: str) -> Callable[[Any], str]:
    """Make the reader of one word out of a few."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"is {value!r}; it can be " + " or ".join(f'"{c}"' for c in choices))
        return str(value)

    return read


def command(value: Any) -> str:
    """Read a command that goes into the probe as it is: a path, or a few plain words."""
    if not re.fullmatch(r"[A-Za-z0-9./_][A-Za-z0-9 ./_+=:@,-]*", text(value)):
        raise ValueError("may only have letters, digits, spaces and ./_+=:@,- in it")
    return text(value)


def jumps(value: Any) -> tuple[hostlist.HostName, ...]:
    """Read `user@jump:port`, or several hops with commas between them; "none" is no hop."""
    if text(value).lower() == "none":
        return ()
    return tuple(hostlist.parse(hop.strip()) for hop in text(value).split(","))


_RULES = Rules()

SECTIONS: dict[str, dict[str, Key]] = {
    "common": {
        "hosts": Key(hosts),
        "user": Key(text, per_host=True),
        "port": Key(whole(1, 65535), per_host=True),
        "key_filename": Key(text, per_host=True),
        "timeout": Key(number(1, 600), 20.0, per_host=True),
        "jobs": Key(whole(1, 512), 32),
        "known_hosts": Key(text, per_host=True),
        "host_keys": Key(choice("strict", "accept-new", "off"), "strict", per_host=True),
        "proxy_jump": Key(jumps, per_host=True),
        "nvidia_smi": Key(command, "nvidia-smi", per_host=True),
    },
    "free": {
        "max_memory_pct": Key(number(0, 100), _RULES.max_memory_pct),
        "max_utilization_pct": Key(number(0, 100), _RULES.max_utilization_pct),
        "ignore": Key(texts, _RULES.ignore),
        "held_after_min": Key(number(0, 525_600), _RULES.held_after_min),
    },
    "data": {
        "dir": Key(text, "data"),
        "keep_days": Key(whole(1, 36500), 90),
        "keep_rollup_days": Key(whole(1, 36500), 400),
        "keep_snapshots": Key(whole(2, 100_000), 36),
    },
    "site": {
        "dir": Key(text, "site"),
        "title": Key(text, "GPU monitor"),
        "refresh": Key(whole(1, 86400), 60),
        "price_per_kwh": Key(number(0, 100_000)),
        "templates": Key(text),
    },
    "privacy": {
        "command": Key(choice("name", "full", "none"), "name"),
        "users": Key(choice("show", "mask"), "show"),
    },
    "notify": {
        "urls": Key(texts, ()),
        "rules": Key(texts, ()),
    },
}

# `[host."NAME"]`: what overrides [common], and what only a host has.
HOST_KEYS: dict[str, Key] = {
    **{name: key for name, key in SECTIONS["common"].items() if key.per_host},
    "hostname": Key(text),
    "label": Key(text),
    "group": Key(text),
}


def _kind(value: Any) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text", list: "a list"}
    return names.get(type(value), "a section" if isinstance(value, dict) else "a date or time")


def _as_number(value: Any) -> str:
    if isinstance(value, str) and (digits := re.match(r"\s*(\d+(?:\.\d+)?)", value)):
        return f": write {digits[1]}"
    return ""
