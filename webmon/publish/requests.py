"""Which file of the site a request means: vesta's addresses stand for files that render has written.

cron/nginx.conf says the same in nginx's words.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote

from webmon.publish.addresses import host_states, host_text, in_files

_YES = ("true", "1", "yes")

# `/path?query`, or the whole address, as a proxy is asked. It fits anything.
_TARGET = re.compile(r"(?:https?://[^/?#]*)?([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.DOTALL)


class Wanted(NamedTuple):
    """A file of the site; or, with `samples`, so many samples of the hosts that are in it."""

    path: str
    samples: int | None = None


def wanted(target: str) -> Wanted | None:
    """Return what a request means; None for what can't be a file, ValueError for a wrong fetch_num."""
    path, arguments = _parts(target)
    if not path.startswith("/") or "\x00" in path or any(part.startswith(".") for part in path.split("/")):
        return None
    path = path[1:]
    states = re.fullmatch(r"states(?:/|/index\.json)?", path)
    host = None if states else re.fullmatch(r"states/([^/]+)(?:/|/index\.json)?", path)
    if _is(arguments, "term"):
        if host:
            return Wanted(host_text(in_files(host[1])))
        if states or path == "":
            return Wanted("detail.txt" if _is(arguments, "detail") else "term.txt")
    if host:
        return Wanted(host_states(in_files(host[1])), _samples(arguments))
    if states:
        return Wanted("states/index.json", _samples(arguments))
    return Wanted(f"{path}index.html" if path == "" or path.endswith("/") else path)


def is_from_a_program(target: str) -> bool:
    """Tell whether whoever asks for this reads JSON, in an error too."""
    path, _ = _parts(target)
    return path == "/states" or path.startswith("/states/")


def _parts(target: str) -> tuple[str, dict[str, list[str]]]:
    """Return the path, and the arguments as nginx takes them: nothing in them is decoded."""
    parts = _TARGET.fullmatch(target)
    assert parts
    arguments: dict[str, list[str]] = {}
    for argument in (parts[2] or "").split("&"):
        name, _, value = argument.partition("=")
        arguments.setdefault(name.lower(), []).append(value)
    return re.sub("/+", "/", unquote(parts[1] or "/", errors="replace")), arguments


def _is(arguments: dict[str, list[str]], name: str) -> bool:
    return arguments.get(name, [""])[0].lower() in _YES


def _samples(arguments: dict[str, list[str]]) -> int | None:
    texts = arguments.get("fetch_num", [""])
    if texts == [""]:
        return None
    if len(texts) > 1 or not re.fullmatch(r"0*[1-9][0-9]{0,5}", texts[0]):
        raise ValueError("fetch_num is a whole number from 1 to 999999")
    return int(texts[0])
