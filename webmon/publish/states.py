"""The newest sample of each host as JSON, in the shape that vesta's clients read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from webmon.publish.addresses import host_states
from webmon.publish.words import program

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from webmon.model import Process
    from webmon.publish.lab import Lab, LabGpu, LabHost
    from webmon.publish.look import Look

# Another address below states/ is answered with this, and with status 404.
NOT_FOUND = "404.json"


def states(lab: Lab, _look: Look) -> Iterator[tuple[str, str]]:
    """Return the path and the text of each file."""
    entries = [
        entry(one.host.host, one.host.status, one.address, [sample(one, lab.taken_at)]) for one in lab.hosts
    ]
    yield "states/index.json", joined(entries)
    for one, written in zip(lab.hosts, entries, strict=True):
        yield host_states(one.name), joined([written])
    yield NOT_FOUND, error(404, "not found")


def joined(entries: Sequence[str]) -> str:
    """Write hosts' entries as one document."""
    return "{" + ",\n".join(entries) + "}\n"


def entry(host: str, status: str, address: str | None, samples: Iterable[str]) -> str:
    """Write a host's entry, its samples from the oldest to the newest."""
    rest = json.dumps({"ip_address": address, "status": status}, ensure_ascii=False)[1:]
    return f'{json.dumps(host, ensure_ascii=False)}: {{"data": [' + ",\n".join(samples) + f"], {rest}"


def error(code: int, info: str) -> str:
    """Write what a wrong request is answered with."""
    return json.dumps({"status": "ERROR", "status_code": code, "info": info}) + "\n"


def sample(one: LabHost, taken_at: datetime) -> str:
    """Write what a host answered in one poll; of one that said nothing of its GPUs, there are none in it."""
    is_down = one.host.status == "down" or not any(on.was_read for on in one.gpus)
    on_host = () if is_down else one.gpus
    moment = taken_at.strftime("%Y/%m/%d %H:%M:%S.000")  # in UTC, as nvidia-smi writes it
    gpu_data = {f"gpu:{on.number}": _gpu(on, moment) for on in on_host}
    return written({"gpu_data": gpu_data, "timestamp": int(taken_at.strftime("%Y%m%d%H%M%S"))})


# Writes a sample. One for all: json.dumps would make a new one every time.
written = json.JSONEncoder(ensure_ascii=False).encode


def _gpu(on: LabGpu, moment: str) -> dict[str, Any]:
    gpu = on.gpu
    known = on.processes_are_known or on.processes
    return {
        "available_memory": on.memory_free_mib,
        "device_num": gpu.index,
        "gpu_name": gpu.name,
        "gpu_volatile": gpu.utilization_pct,
        "processes": [_process(process) for process in on.processes] if known else None,
        "state": gpu.state,
        "temperature": gpu.temperature_c,
        "timestamp": moment,
        "total_memory": gpu.memory_total_mib,
        "used_memory": gpu.memory_used_mib,
        "uuid": gpu.uuid,
    }


def _process(process: Process) -> dict[str, Any]:
    return {
        "name": program(process) or None,
        "pid": process.pid,
        "used_memory": process.memory_mib,
        "user": process.user,
    }
