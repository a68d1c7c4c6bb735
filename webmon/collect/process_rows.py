"""The rows of `nvidia-smi --query-compute-apps`, with what the host knows of each process."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from webmon.collect import cells, diagnose, probe
from webmon.collect.clean import clean
from webmon.collect.owners import Owner, parse_cgroups, parse_owners
from webmon.model import Process

if TYPE_CHECKING:
    from datetime import datetime

    from webmon.collect.sections import Section
    from webmon.model import Gpu

# With this, even the longest list of users fits in a cell that CSV readers take.
MAX_USER_LENGTH = 64


def read(
    sections: list[Section], host: str, gpus: list[Gpu], now: datetime, remarks: list[str]
) -> list[Process] | None:
    """Return the processes; None when the list could not be had."""
    section = next((s for s in sections if s.name == "processes"), None)
    if section is None:
        return None
    # A corrupted infoROM is a warning, with a code of its own; the rows are whole.
    warned = section.code == 14 and any(diagnose.is_warning(line) for line in section.lines)
    if (section.code != 0 and not warned) or len(section.lines) > probe.MAX_PROCESSES:
        remarks += [clean(line)[:300] for line in section.lines[:5]]
        return None
    index = {gpu.uuid: gpu.index for gpu in gpus}
    owners = parse_owners([line for s in sections if s.name == "owners" for line in s.lines])
    containers = parse_cgroups([line for s in sections if s.name == "cgroups" for line in s.lines])
    processes: list[Process] = []
    for line in section.lines:
        values = [cell.strip() for cell in line.split(", ", len(probe.PROCESS_FIELDS) - 1)]
        if len(values) == len(probe.PROCESS_FIELDS) - 1:
            values.append("")
        if len(values) != len(probe.PROCESS_FIELDS) or not _is_row(values):
            if not line.startswith("gpu_uuid"):
                remarks.append(clean(line)[:300])
            # A complaint, or a row that hides its process: there may be more than is listed.
            if diagnose.is_trouble(line) or line.startswith(("GPU-", "MIG-")):
                return None
            continue
        uuid, pid, memory, name = values
        owner = owners.get(int(pid), Owner())
        processes.append(
            Process(
                host=host,
                gpu_index=index.get(uuid),
                gpu_uuid=clean(uuid),
                pid=int(pid),
                user=_user(owner.user),
                name=cells.text(name),
                command=clean(owner.command) or None if owner.command else None,
                memory_mib=cells.whole({"memory.used": memory}, "memory.used"),
                started_at=None
                if owner.seconds is None
                else (now - timedelta(seconds=owner.seconds)).replace(microsecond=0),
                container=containers.get(int(pid)),
            )
        )
    return processes


def _is_row(values: list[str]) -> bool:
    return values[0].startswith(("GPU-", "MIG-")) and re.fullmatch(r"[0-9]{1,10}", values[1]) is not None


def _user(name: str | None) -> str | None:
    """Return a user's name; in a cell of several users `;` stands between them."""
    return clean(name[:MAX_USER_LENGTH]).replace(";", "_").replace("=", "_") or None if name else None
