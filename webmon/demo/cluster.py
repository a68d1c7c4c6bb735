"""The demo's cluster: what each pretended host says at a given minute.

Everything follows from the host, the card and the time, so that it changes from minute to minute
and is the same for whoever asks in the same one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

_USERS = ("alice", "bob", "chen", "dmitri", "erika", "farid", "grace")
_COMMANDS = (
    "python train.py --config configs/base.yaml --wandb-key 0f3c",
    "/usr/bin/python3 -m torch.distributed.run finetune.py",
    "/opt/conda/bin/python -m ipykernel_launcher -f /run/user/1000/kernel.json",
    "python evaluate.py --checkpoint last.pt",
    "/opt/vllm/bin/vllm serve meta-llama/Llama-3.1-70B",
    "python3 preprocess.py, part <3> & more",
)


@dataclass(frozen=True, slots=True)
class Card:
    """A type of card: its name, memory in MiB, power limit in W."""

    name: str
    memory: int
    power: int
    has_fan: bool = False


H100 = Card("NVIDIA H100 80GB HBM3", 81559, 700)
A100 = Card("NVIDIA A100-SXM4-80GB", 81920, 400)
A6000 = Card("NVIDIA RTX A6000", 49140, 300, has_fan=True)
RTX3090 = Card("NVIDIA GeForce RTX 3090", 24576, 350, has_fan=True)
GTX1080TI = Card("GeForce GTX 1080 Ti", 11178, 250, has_fan=True)

# What a card does: changes by the minute, is free, busy or held for good, ill, or split into parts.
ROLES = ("changing", "free", "busy", "held", "faulty", "mig")


@dataclass(frozen=True, slots=True)
class DemoHost:
    """A pretended host: its cards, each with its role."""

    name: str
    card: Card = RTX3090
    roles: tuple[str, ...] = ()
    driver: str = "550.54.15"
    group: str = ""
    label: str = ""
    is_down: bool = False
    failure: tuple[str, int] | None = None
    refused_fields: tuple[str, ...] = ()


_NO_DRIVER = (
    "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
    "Make sure that the latest NVIDIA driver is installed and running.\n"
)

CLUSTER = (
    DemoHost("gpu01", H100, ("changing", "free", *("changing",) * 6), "570.86.10", "vision", "the new one"),
    DemoHost("gpu02", A100, ("held", *("changing",) * 7), "550.54.15", "vision"),
    DemoHost("gpu03", H100, ("mig", "free", "changing", "busy"), "590.48.01", "speech"),
    DemoHost("gpu04", RTX3090, ("busy", "held", *("changing",) * 5, "faulty"), "550.54.15", "speech"),
    DemoHost("gpu05", A6000, ("changing", "free", "changing", "changing"), "535.161.07", "robots"),
    DemoHost(
        "gpu06",
        GTX1080TI,
        ("free", "changing"),
        "418.87.00",
        "robots",
        "teaching",
        refused_fields=("mig.mode.current",),
    ),
    DemoHost("gpu07", A6000, ("changing",) * 4, is_down=True, group="robots"),
    DemoHost(
        "gpu10",
        A100,
        failure=(_NO_DRIVER, 9),
        group="vision",
    ),
)


def state(host: DemoHost, minute: int) -> dict[str, Any]:
    """Return what this host's nvidia-smi and ps say in a given minute."""
    if host.failure:
        text, code = host.failure
        return {"failure": {"text": text, "exit": code}, "owners": []}
    gpus: list[dict[str, str]] = []
    processes: list[dict[str, str]] = []
    owners: list[dict[str, str]] = []
    for index, role in enumerate(host.roles):
        running = _running(host, index, role, minute)
        gpus.append(_gpu(host, index, role, running, minute))
        for process in running:
            processes.append(
                {name: process[name] for name in ("gpu_uuid", "pid", "used_memory", "process_name")}
            )
            owners.append({name: process[name] for name in ("pid", "uid", "user", "etimes", "args")})
    return {
        "gpus": gpus,
        "processes": processes,
        "owners": owners,
        "refused_fields": list(host.refused_fields),
    }


def _gpu(host: DemoHost, index: int, role: str, running: list[dict[str, str]], minute: int) -> dict[str, str]:
    card = host.card
    used = sum(int(process["used_memory"]) for process in running) + (2 if running else 0)
    busy = bool(running) and role != "held"
    load = 35 + _chance(host.name, index, minute // 2, "load") * 65 // 100 if busy else 0
    row = {
        "index": str(index),
        "uuid": _uuid(host.name, index),
        "driver_version": host.driver,
        "utilization.gpu": str(load),
        "utilization.memory": str(load // 2),
        "memory.used": str(used),
        "memory.total": str(card.memory),
        "temperature.gpu": str(31 + load // 2),
        "power.draw": f"{card.power * (12 + load * 0.8) / 100:.2f}",
        "power.limit": f"{card.power}.00",
        "clocks.sm": "1980" if busy else "210",
        "pstate": "P0" if busy else "P8",
        "mig.mode.current": "[N/A]",
        "name": card.name,
    }
    if card.has_fan:
        row["fan.speed"] = str(30 + load // 2)
    if card in (H100, A100):
        row["mig.mode.current"] = "Enabled" if role == "mig" else "Disabled"
    if role == "mig":
        row |= {"utilization.gpu": "[N/A]", "utilization.memory": "[N/A]"}
    if role == "faulty":
        row |= dict.fromkeys(("utilization.gpu", "temperature.gpu", "power.draw"), "[GPU requires reset]")
        row["memory.used"] = "0"
    return row


def _running(host: DemoHost, index: int, role: str, minute: int) -> list[dict[str, str]]:
    """Return the processes on a card; a job lasts some minutes, then the next one may come."""
    if role in ("free", "faulty"):
        return []
    length = 4 + _chance(host.name, index, 0, "length") % 9
    offset = _chance(host.name, index, 0, "offset")
    job = 0 if role in ("busy", "held", "mig") else (minute + offset) // length
    if role == "changing" and _chance(host.name, index, job, "is there one") < 35:
        return []
    age = (minute + offset) % length if role == "changing" else minute % 2000 + 95
    several = 1 + (_chance(host.name, index, job, "several") < 25)
    return [_process(host, index, job, number, several, age) for number in range(several)]


def _process(host: DemoHost, index: int, job: int, number: int, several: int, age: int) -> dict[str, str]:
    part = f"{job}.{number}"
    user = _USERS[_chance(host.name, index, part, "user") % len(_USERS)]
    command = _COMMANDS[_chance(host.name, index, part, "command") % len(_COMMANDS)]
    share = 20 + _chance(host.name, index, part, "memory") * 70 // 100
    return {
        "gpu_uuid": _uuid(host.name, index),
        "pid": str(2000 + _chance(host.name, index, part, "pid") * 97 + index * 10007 + number),
        "used_memory": str(host.card.memory * share // 100 // several),
        "process_name": command.split(" ")[0],
        "uid": str(1000 + _USERS.index(user)),
        "user": user,
        "etimes": str(age * 60 + 17),
        "args": command,
    }


def _uuid(name: str, index: int) -> str:
    digits = hashlib.sha256(f"{name}/{index}".encode()).hexdigest()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"


def _chance(*of: object) -> int:
    """Return a number from 0 to 99 that these things always have."""
    return hashlib.sha256("/".join(map(str, of)).encode()).digest()[0] * 100 // 256
