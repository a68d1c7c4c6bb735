"""`hosts` → names: ranges, `user@host:port`, `[v6]:port`, `self`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product

MAX_HOSTS = 20_000
MAX_LENGTH = 200  # pages are named after hosts, and the name of a file ends at 255 bytes
_RANGE = re.compile(r"\[([0-9][0-9,\-]*)\]")
_BAD = re.compile(r"[\s/\\\"'`<>|;,&$(){}*?!#^]|[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class HostName:
    """One entry of `hosts`, taken apart. `name` is what everything else calls the host."""

    name: str
    address: str
    user: str | None = None
    port: int | None = None

    @property
    def is_self(self) -> bool:
        """Tell whether this is the machine that webmon runs on, without SSH."""
        return self.name == "self"


def split(text: str) -> list[str]:
    """Split `a, b[1,2] c` at its commas and spaces, though not within brackets."""
    text = text.strip()
    if _is_bracketed_list(text):
        text = text[1:-1]
    entries: list[str] = []
    depth, entry = 0, ""
    for char in text:
        depth += {"[": 1, "]": -1}.get(char, 0)
        if depth <= 0 and (char == "," or char.isspace()):
            entries.append(entry)
            entry = ""
        else:
            entry += char
    return [stripped for e in [*entries, entry] if (stripped := e.strip().strip("\"'"))]


def _is_bracketed_list(text: str) -> bool:
    """Tell `[a, b]` from `[::1]` and from `[::1], [::2]`."""
    depth = 0
    for position, char in enumerate(text):
        depth += {"[": 1, "]": -1}.get(char, 0)
        if depth == 0:
            return (
                position == len(text) - 1
                and position > 0
                and (bool(re.search(r"[,\s]", text)) or ":" not in text)
            )
    return False


def expand(entry: str) -> list[str]:
    """Expand `gpu[01-03,7].lab` to its names. ValueError says what is wrong with it."""
    pieces: list[list[str]] = []
    end, total = 0, 1
    for match in _RANGE.finditer(entry):
        pieces += [[entry[end : match.start()]], numbers := _numbers(match[1], entry)]
        end = match.end()
        total *= len(numbers)
        if total > MAX_HOSTS:
            msg = f"{entry!r} stands for more than {MAX_HOSTS} hosts"
            raise ValueError(msg)
    pieces.append([entry[end:]])
    return ["".join(parts) for parts in product(*pieces)]


def parse(text: str) -> HostName:
    """Take `user@host:port` apart. ValueError says what is wrong with it."""
    user, at, name = text.rpartition("@")
    if at and not user:
        msg = f"{text!r} has no user before the @"
        raise ValueError(msg)
    address, port = _address_and_port(name, text)
    if not address or address.startswith(("-", ".")) or len(text) > MAX_LENGTH or _BAD.search(text):
        msg = f"{text!r} is not a host name"
        raise ValueError(msg)
    return HostName(name, address, user or None, port)


def _address_and_port(name: str, text: str) -> tuple[str, int | None]:
    if name.startswith("["):
        address, bracket, rest = name[1:].partition("]")
        if not bracket or ":" not in address or (rest and not rest.startswith(":")):
            msg = f"{text!r} is not a host name; an IPv6 address is written [fe80::1]:22"
            raise ValueError(msg)
        return address, _port(rest[1:], text) if rest else None
    if "[" in name or "]" in name:
        msg = f"{text!r} is not a range; a range is written gpu[01-16]"
        raise ValueError(msg)
    if name.count(":") > 1:
        return name, None
    address, colon, port = name.partition(":")
    return address, _port(port, text) if colon else None


def _port(digits: str, text: str) -> int:
    if not (digits.isascii() and digits.isdigit() and 0 < int(digits[:6]) < 65536):
        msg = f"{text!r} has no port number after the colon (1 to 65535)"
        raise ValueError(msg)
    return int(digits)


def _numbers(text: str, entry: str) -> list[str]:
    numbers: list[str] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        last = last if dash else first
        if not first.isdigit() or not last.isdigit() or len(first + last) > 30:
            msg = f"{entry!r} is not a range; a range is written gpu[01-16]"
            raise ValueError(msg)
        if int(last) < int(first):
            msg = f"{entry!r} counts down; write [{last}-{first}]"
            raise ValueError(msg)
        if int(last) - int(first) >= MAX_HOSTS:
            msg = f"{entry!r} stands for more than {MAX_HOSTS} hosts"
            raise ValueError(msg)
        numbers += [f"{n:0{len(first)}d}" for n in range(int(first), int(last) + 1)]
    return numbers
