"""Who owns a process, since when, and in which container: the probe's `ps` and cgroup lines."""

from __future__ import annotations

import re
from typing import NamedTuple

_PS = re.compile(r"^\s*(\d{1,10})\s+(\d{1,12})\s+(\S+)\s+(-?\d{1,12})\s?(.*)$", re.ASCII | re.DOTALL)
_CGROUP = re.compile(r"^(\d{1,10}) (.*)$", re.ASCII | re.DOTALL)
_CONTAINER = re.compile(r"(?:^|[/:.\-_])([0-9a-f]{64})(?=$|[/.:])")
_SLURM = re.compile(r"/job_(\d{1,12})(?=$|/)", re.ASCII)
_LXC = re.compile(r"/lxc(?:\.payload)?[./]([A-Za-z0-9_.-]{1,64})(?=$|/)")

# A process that is older than this has no known age: its machine's clock has been wrong.
_CENTURY = 36525 * 24 * 3600


class Owner(NamedTuple):
    """What the host knows of one process; all None when it is hidden or gone."""

    user: str | None = None
    seconds: int | None = None
    command: str | None = None


def parse_owners(lines: list[str]) -> dict[int, Owner]:
    """Read `pid uid user elapsed command…` rows; anything else is passed over."""
    owners: dict[int, Owner] = {}
    for line in lines:
        if match := _PS.match(line):
            pid, uid, user, seconds, command = match.groups()
            name = user if user != "?" else uid
            age = max(0, int(seconds))
            owners.setdefault(int(pid), Owner(name, age if age < _CENTURY else None, command.strip()))
    return owners


def parse_cgroups(lines: list[str]) -> dict[int, str]:
    """Find the container's id (12 digits, as docker shows it) or the Slurm job of each pid."""
    found: dict[int, str] = {}
    for line in lines:
        match = _CGROUP.match(line)
        if match is None or int(match[1]) in found:
            continue
        path = match[2]
        slurm = path.find("slurm")
        if slurm >= 0 and (job := _SLURM.search(path, slurm)):
            found[int(match[1])] = f"slurm-{job[1]}"
        elif ids := _CONTAINER.findall(path):
            found[int(match[1])] = ids[-1][:12]
        elif lxc := _LXC.search(path):
            found[int(match[1])] = f"lxc-{lxc[1]}"
    return found
