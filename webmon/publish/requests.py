"""Which file of the site a request means: vesta's addresses stand for files that render has written.

cron/nginx.conf says the same in nginx's words.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from webmon.publish.addresses import host_states, host_text, in_files

_YES = ("true", "1", "yes")


class Wanted(NamedTuple):
    """A file of the site; or, with `samples`, so many samples of the hosts that are in it."""

    path: str
    samples: int | None = None


def wanted(target: str) -> Wanted | None:
    """Return what a request means; None for what can't be a file, ValueError for a wrong fetch_num."""
    parts = urlsplit(target)
    path = unquote(parts.path, errors="replace").lstrip("/")
    if "\x00" in path or any(part.startswith(".") for part in path.split("/")):
        return None
    query = parse_qs(parts.query, max_num_fields=100)
    states = re.fullmatch(r"states(?:/|/index\.json)?", path)
    host = None if states else re.fullmatch(r"states/([^/]+)/?", path)
    if _is(query, "term"):
        if host:
            return Wanted(host_text(in_files(host[1])))
        if states or path == "":
            return Wanted("detail.txt" if _is(query, "detail") else "term.txt")
    if host:
        return Wanted(host_states(in_files(host[1])), _samples(query))
    if states:
        return Wanted("states/index.json", _samples(query))
    return Wanted(f"{path}index.html" if path == "" or path.endswith("/") else path)


def _is(query: dict[str, list[str]], name: str) -> bool:
    return query.get(name, [""])[0].lower() in _YES


def _samples(query: dict[str, list[str]]) -> int | None:
    text = query.get("fetch_num", [""])[0]
    if not text:
        return None
    if not re.fullmatch(r"0*[1-9][0-9]{0,5}", text):
        raise ValueError("fetch_num is a whole number from 1 to 999999")
    return int(text)
