"""Where things are on the site: the file of each host, and the place of each GPU in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

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


def file_names(hosts: Iterable[str]) -> dict[str, str]:
    """Return the name of each host in files and links; two hosts never share one."""
    names: dict[str, str] = {}
    taken = {"index.json"}  # beside the folders of the hosts in states/
    for host in hosts:
        plain = in_files(host)
        plain = plain if plain.strip(".") else plain.replace(".", "_")
        name, number = plain, 1
        while name.casefold() in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name.casefold())
        names[host] = name
    return names


def gpu_places(gpus: Sequence[Gpu]) -> list[str]:
    """Return the id of each GPU on its host's page: `gpu3`; a second one of that index gets its own."""
    places: list[str] = []
    taken: set[str] = set()
    for gpu in gpus:
        place, number = f"gpu{gpu.index}", 1
        while place in taken:
            number += 1
            place = f"gpu{gpu.index}_{number}"
        taken.add(place)
        places.append(place)
    return places
