"""What a stand-in nvidia-smi says: the content of the JSON file that $WEBMON_STANDIN names."""

from __future__ import annotations

from typing import Any

MODEL = "NVIDIA RTX A6000"


def uuid(index: int, host: int = 0) -> str:
    """Return the uuid of a card of a pretended host."""
    return f"GPU-{host:08x}-0000-4000-8000-{index:012x}"


def gpu(index: int, host: int = 0, **changes: str) -> dict[str, str]:
    """Return the row of an idle card; `memory__used="5"` changes its memory.used."""
    row = {
        "index": str(index),
        "uuid": uuid(index, host),
        "driver_version": "550.54.14",
        "utilization.gpu": "0",
        "utilization.memory": "0",
        "memory.used": "4",
        "memory.total": "49140",
        "temperature.gpu": "31",
        "power.draw": "21.53",
        "power.limit": "300.00",
        "fan.speed": "30",
        "clocks.sm": "210",
        "pstate": "P8",
        "mig.mode.current": "[N/A]",
        "name": MODEL,
    }
    return row | {name.replace("__", "."): value for name, value in changes.items()}


def process(
    index: int, pid: int, name: str = "python", memory: str = "1024", host: int = 0
) -> dict[str, str]:
    """Return the row of a process on a card."""
    return {"gpu_uuid": uuid(index, host), "pid": str(pid), "used_memory": memory, "process_name": name}


def healthy(gpus: int = 1, host: int = 0) -> dict[str, Any]:
    """Return the state of a host with so many idle cards."""
    return {"gpus": [gpu(index, host) for index in range(gpus)], "processes": []}


NO_DRIVER = {
    "failure": {
        "text": "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
        "Make sure that the latest NVIDIA driver is installed and running.\n",
        "exit": 9,
    }
}
HANGS = {"hangs": True}
