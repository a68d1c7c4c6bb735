"""The rows of `nvidia-smi --query-compute-apps`, with what the host knows of each process."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

from webmon.clean import clean
from webmon.collect import cells, claim_rows, diagnose, probe
from webmon.collect.owners import Owner, parse_cgroups, parse_owners
from webmon.model import CLAIM, Process

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
    known = _Known(sections, host, gpus, now)
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
        used = cells.whole({"memory.used": memory}, "memory.used")
        processes.append(known.process(uuid, int(pid))._replace(name=cells.text(name), memory_mib=used))
    return processes + _claims(sections, known, processes)


class _Known:
    """What the host says of its processes, beside nvidia-smi's rows."""

    def __init__(self, sections: list[Section], host: str, gpus: list[Gpu], now: datetime) -> None:
        self._host = host
        self._now = now
        self.index = {gpu.uuid: gpu.index for gpu in gpus}
        self._owners = parse_owners([line for s in sections if s.name == "owners" for line in s.lines])
        self._containers = parse_cgroups([line for s in sections if s.name == "cgroups" for line in s.lines])

    def process(self, uuid: str, pid: int) -> Process:
        """Return a process of this GPU: whose it is, since when, and what it runs."""
        owner = self._owners.get(pid, Owner())
        started_at = None
        if owner.seconds is not None:
            started_at = (self._now - timedelta(seconds=owner.seconds)).replace(microsecond=0)
        return Process(
            host=self._host,
            gpu_index=self.index.get(uuid),
            gpu_uuid=clean(uuid),
            pid=pid,
            user=_user(owner.user),
            command=clean(owner.command) or None if owner.command else None,
            started_at=started_at,
            container=self._containers.get(pid),
        )


def _claims(sections: list[Section], known: _Known, processes: list[Process]) -> list[Process]:
    """Return a process for each claim that is not on the GPU itself."""
    lines = [line for section in sections if section.name == "claims" for line in section.lines]
    claims = [known.process(uuid, pid) for uuid, pid in claim_rows.read(lines) if uuid in known.index]
    present = {(process.gpu_uuid, process.pid) for process in processes}
    return [claim._replace(name=CLAIM) for claim in claims if (claim.gpu_uuid, claim.pid) not in present]


def _is_row(values: list[str]) -> bool:
    return values[0].startswith(("GPU-", "MIG-")) and re.fullmatch(r"[0-9]{1,10}", values[1]) is not None


def _user(name: str | None) -> str | None:
    """Return a user's name; in a cell of several users `;` stands between them."""
    return clean(name[:MAX_USER_LENGTH]).replace(";", "_").replace("=", "_") or None if name else None
