"""Where things are on the site: the file of each host, and the place of each GPU in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from webmon.model import Gpu


# A name in a file system has room for 255 bytes, the ending and a number among them.
_LONGEST = 200


def host_page(name: str) -> str:
    """Return the path of a host's page; `name` is its name in files."""
    return f"hosts/{name}.html"


def host_text(name: str) -> str:
    """Return the path of a host's page for terminals."""
    return f"hosts/{name}.txt"


def host_metrics(name: str) -> str:
    """Return the path of a host's metrics."""
    return f"hosts/{name}.metrics"


def host_states(name: str) -> str:
    """Return the path of a host's newest sample."""
    return f"states/{name}/index.json"


def in_files(host: str) -> str:
    """Return a host's name with nothing in it that means something in files and links."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", host)[:_LONGEST]


def file_names(hosts: Sequence[str]) -> dict[str, str]:
    """Return the name of each host in files and links; two hosts never share one, nor differ by case only."""
    plain = [in_files(host) for host in hosts]
    plain = [name if name.strip(".") else name.replace(".", "_") for name in plain]
    # index.json stands beside the folders of the hosts in states/.
    return dict(zip(hosts, told_apart(plain, key=str.casefold, taken=("index.json",)), strict=True))


def gpu_places(gpus: Sequence[Gpu]) -> list[str]:
    """Return the id of each GPU on its host's page: `gpu3`; a second one of that index gets its own."""
    return told_apart(f"gpu{gpu.index}" for gpu in gpus)


def told_apart(
    texts: Iterable[str], *, key: Callable[[str], str] = str, taken: Iterable[str] = ()
) -> list[str]:
    """Return texts of which no two have the same key: a second one gets a number."""
    keys = set(taken)
    apart: list[str] = []
    for text in texts:
        free, number = text, 1
        while key(free) in keys:
            number += 1
            free = f"{text}_{number}"
        keys.add(key(free))
        apart.append(free)
    return apart
