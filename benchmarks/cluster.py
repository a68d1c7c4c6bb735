"""A pretended cluster of any size, as snapshots in a data folder: what a fetch would have saved.

    python benchmarks/cluster.py data                       1,000 hosts with 8 GPUs each
    python benchmarks/cluster.py data --hosts 50 --polls 3  three polls, one minute apart

The same seed gives the same cluster. The last poll is now; between two polls every reading
changes and about one GPU in fifty changes hands.
"""

from __future__ import annotations

import argparse
import random
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from webmon.model import Gpu, Host, Process, Snapshot
from webmon.store import snapshot as store

BETWEEN_POLLS = timedelta(minutes=1)


class Card(NamedTuple):
    """A type of card, with how common it is."""

    name: str
    memory: int
    power: int
    clock: int
    share: int
    has_fan: bool = False
    has_mig: bool = False


CARDS = (
    Card("NVIDIA H100 80GB HBM3", 81559, 700, 1980, 25, has_mig=True),
    Card("NVIDIA A100-SXM4-80GB", 81920, 400, 1410, 20, has_mig=True),
    Card("NVIDIA A100-PCIE-40GB", 40960, 250, 1410, 10, has_mig=True),
    Card("NVIDIA H200", 143771, 700, 1980, 5, has_mig=True),
    Card("NVIDIA L40S", 46068, 350, 2520, 8),
    Card("NVIDIA RTX A6000", 49140, 300, 1800, 10, has_fan=True),
    Card("NVIDIA GeForce RTX 3090", 24576, 350, 1695, 12, has_fan=True),
    Card("Tesla V100-SXM2-32GB", 32768, 300, 1530, 6),
    Card("NVIDIA GeForce GTX 1080 Ti", 11264, 250, 1911, 4, has_fan=True),
)
DRIVERS = ("570.86.10", "550.54.15", "550.127.08", "535.161.07")
GROUPS = ("vision", "nlp", "speech", "robots", "theory", "genomics", "climate", "graphics", "teaching")
NAMES = ("meier", "kim", "rossi", "sato", "novak", "singh", "chen", "garcia", "ivanova", "okafor", "larsen")
NAMES += ("dubois", "haddad", "silva", "kowalski", "nguyen")

# As nvidia-smi names it, and as it is told to people.
PROGRAMS = (
    ("python", "train.py"),
    ("python", "main.py"),
    ("python3", "evaluate.py"),
    ("python3", "run_experiment.py"),
    ("/usr/bin/python3", "finetune.py"),
    ("/usr/bin/python3", "inference_server.py"),
    ("/opt/conda/bin/python", "torch.distributed.run"),
    ("/opt/conda/bin/python", "ipykernel_launcher"),
    ("/opt/conda/envs/llm/bin/python3.11", "pretrain_gpt.py"),
    ("/opt/conda/envs/llm/bin/python3.11", "run_clm.py"),
    ("/opt/conda/envs/diffusion/bin/python", "train_text_to_image_lora.py"),
    ("VLLM::EngineCore", "VLLM::EngineCore"),
    ("/usr/local/bin/ollama", "ollama"),
    ("gmx_mpi", "gmx_mpi"),
    ("./build/bin/simulate", "simulate"),
)
DOWN = {
    "timeout": "no answer within 20 s, connecting. Is the host overloaded, or a firewall dropping packets?",
    "refused": "nothing listens on port 22. Is sshd running, on another port perhaps?",
    "unreachable": "there is no way to the host: No route to host. Is it switched on?",
}
DEGRADED = {
    "lost-gpu": "1 GPU lost or in error: GPU is lost. Reboot the host",
    "no-processes": "the list of processes could not be had, so that nothing here counts as free",
}
# One host in a hundred is down, one in a hundred is degraded.
TROUBLE = {"": 980, "timeout": 5, "refused": 2, "unreachable": 3, "lost-gpu": 7, "no-processes": 3}


class Job(NamedTuple):
    """What somebody has started."""

    user: str
    name: str
    command: str
    started_at: datetime
    container: str | None


@dataclass
class Slot:
    """A place for a card, and what is on it just now."""

    index: int
    uuid: str
    mig: bool
    state: str = "free"
    processes: list[Process] = field(default_factory=list)
    since: datetime | None = None


@dataclass
class Machine:
    """A host, with what stays the same from poll to poll."""

    name: str
    group: str
    label: str | None
    card: Card
    driver: str
    cpus: int
    ram: int
    slots: list[Slot]
    trouble: str = ""
    down_since: datetime | None = None


class Cluster:
    """All machines; `now` is the time of the next poll."""

    def __init__(self, hosts: int, gpus: int, start: datetime, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._now = start
        accounts = [initial + name for initial in "abcdefghijklmnoprstvwyz" for name in NAMES]
        self._users = self._random.sample(accounts, 300)
        # A few have most of the jobs.
        self._activity = [1 / (rank + 5) for rank in range(len(self._users))]
        self._machines = [self._machine(number, gpus) for number in range(1, hosts + 1)]
        for machine in self._machines:
            self._fill(machine, machine.slots)

    def poll(self) -> Snapshot:
        """Return what a fetch sees, and let a minute go by."""
        hosts = tuple(self._host(machine) for machine in self._machines)
        gpus = tuple(self._gpu(machine, slot) for machine in self._machines for slot in machine.slots)
        listed = [machine for machine in self._machines if machine.trouble not in (*DOWN, "no-processes")]
        processes = tuple(p for machine in listed for slot in machine.slots for p in slot.processes)
        snapshot = Snapshot(self._now, hosts, gpus, processes)
        self._now += BETWEEN_POLLS
        for machine in self._machines:
            self._fill(machine, [slot for slot in machine.slots if self._chance(0.02)])
        return snapshot

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _ago(self, least_s: int, most_s: int) -> datetime:
        return self._now - timedelta(seconds=self._random.randint(least_s, most_s))

    def _machine(self, number: int, gpus: int) -> Machine:
        draw = self._random
        card = draw.choices(CARDS, [card.share for card in CARDS])[0]
        is_split = card.has_mig and self._chance(0.06)
        slots = []
        for index in range(gpus):
            name = f"GPU-{uuid.UUID(int=draw.getrandbits(128), version=4)}"
            slots.append(Slot(index, name, mig=is_split and self._chance(0.5)))
        trouble = draw.choices(list(TROUBLE), list(TROUBLE.values()))[0]
        if trouble == "lost-gpu":
            draw.choice(slots).state = "faulty"
        return Machine(
            name=f"gpu{number:04d}.lab",
            group=GROUPS[number // 40 % len(GROUPS)],
            label=f"rack {number // 8 + 1}" if self._chance(0.1) else None,
            card=card,
            driver=draw.choice(DRIVERS),
            cpus=draw.choice((32, 64, 128, 256)),
            ram=draw.choice((257_000, 515_000, 1_031_000, 2_063_000)),
            slots=slots,
            trouble=trouble,
            down_since=self._ago(300, 900_000) if trouble in DOWN else None,
        )

    def _fill(self, machine: Machine, slots: list[Slot]) -> None:
        """Give these cards to other people, or to nobody: one, two, four or eight at a time."""
        rest = [slot for slot in slots if slot.state != "faulty"]
        while rest:
            number = self._random.choices((1, 2, 4, 8), (10, 3, 2, 1))[0]
            together, rest = rest[:number], rest[number:]
            state = self._random.choices(("free", "held", "busy"), (25, 10, 65))[0]
            job = self._job(held=state == "held")
            for slot in together:
                # Of a part of a card nobody knows whether it is idle.
                slot.state = "busy" if slot.mig and state == "held" else state
                slot.since = None if slot.state == "busy" else self._ago(2_000, 90_000)
                slot.processes = []
                if state != "free":
                    slot.processes = self._processes(machine, slot, job)
                elif machine.card.has_fan and self._chance(0.1):
                    slot.processes = [self._desktop(machine, slot)]

    def _job(self, *, held: bool = False) -> Job:
        user = self._random.choices(self._users, self._activity)[0]
        started_at = self._ago(100_000, 2_000_000) if held else self._ago(20, 700_000)
        container = f"slurm-{self._random.randint(80_000, 99_999)}" if self._chance(0.3) else None
        return Job(user, *self._random.choice(PROGRAMS), started_at, container)

    def _processes(self, machine: Machine, slot: Slot, job: Job) -> list[Process]:
        """Return what runs on a card: mostly one process, sometimes several, of several users."""
        number = self._random.randint(2, 5) if slot.mig or self._chance(0.12) else 1
        memory = int(machine.card.memory * self._random.uniform(0.06, 0.95)) // number
        processes = []
        for _ in range(number):
            processes.append(
                Process(
                    machine.name,
                    slot.index,
                    slot.uuid,
                    pid=self._random.randint(2_000, 4_194_303),
                    user=None if self._chance(0.003) else job.user,
                    name=job.name,
                    command=job.command,
                    memory_mib=memory,
                    started_at=job.started_at,
                    container=job.container,
                )
            )
            if self._chance(0.4):
                job = self._job()
        return processes

    def _desktop(self, machine: Machine, slot: Slot) -> Process:
        """Return what is ignored: the card stays free."""
        place = (machine.name, slot.index, slot.uuid, self._random.randint(900, 4_000))
        return Process(*place, "root", "/usr/lib/xorg/Xorg", "Xorg", 4, self._ago(90_000, 2_000_000))

    def _host(self, machine: Machine) -> Host:
        draw = self._random
        known = (machine.name, machine.label, machine.group)
        if machine.trouble in DOWN:
            error, seen = DOWN[machine.trouble], machine.down_since
            slow = 20_003 if machine.trouble == "timeout" else draw.randint(2, 40)
            count = len(machine.slots)
            return Host(*known, "down", machine.trouble, error, self._now, seen, slow, gpus=count)
        return Host(
            *known,
            status="degraded" if machine.trouble else "up",
            reason=machine.trouble or None,
            error=DEGRADED.get(machine.trouble),
            checked_at=self._now,
            last_seen=self._now,
            duration_ms=draw.randint(180, 1_400),
            driver=machine.driver,
            gpus=len(machine.slots),
            load1=round(draw.uniform(0, machine.cpus), 2),
            cpus=machine.cpus,
            ram_used_mib=int(machine.ram * draw.uniform(0.02, 0.9)),
            ram_total_mib=machine.ram,
        )

    def _gpu(self, machine: Machine, slot: Slot) -> Gpu:
        draw, card = self._random, machine.card
        known = (machine.name, slot.index, slot.uuid, card.name)
        if machine.trouble in DOWN:
            return Gpu(*known, "unknown")
        if slot.state == "faulty":
            return Gpu(*known, "faulty")
        is_busy, is_listed = slot.state == "busy", machine.trouble != "no-processes"
        users = {p.user for p in slot.processes if p.user and p.command != "Xorg"} if is_listed else ()
        return Gpu(
            *known,
            state="unknown" if slot.state == "free" and not is_listed else slot.state,
            utilization_pct=None if slot.mig else draw.randint(8, 100) if is_busy else 0,
            memory_utilization_pct=None if slot.mig else draw.randint(1, 80) if is_busy else 0,
            memory_used_mib=sum(p.memory_mib or 0 for p in slot.processes) + draw.randint(1, 18),
            memory_total_mib=card.memory,
            temperature_c=draw.randint(44, 86) if is_busy else draw.randint(24, 42),
            power_w=round(card.power * (draw.uniform(0.4, 1.0) if is_busy else draw.uniform(0.05, 0.18)), 2),
            power_limit_w=card.power,
            fan_pct=draw.randint(35, 100) if card.has_fan else None,
            sm_clock_mhz=card.clock - 15 * draw.randint(0, 12) if is_busy else 210,
            pstate="P0" if is_busy else "P8",
            mig_mode=("Enabled" if slot.mig else "Disabled") if card.has_mig else None,
            idle_since=slot.since,
            users=tuple(sorted(users)),
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="the data folder")
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--gpus", type=int, default=8, help="of each host")
    parser.add_argument("--polls", type=int, default=1)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    now = datetime.now(UTC).replace(microsecond=0)
    start = now - (options.polls - 1) * BETWEEN_POLLS
    cluster = Cluster(options.hosts, options.gpus, start, options.seed)
    for _ in range(options.polls):
        snapshot = cluster.poll()
        store.save(options.folder, snapshot, keep=options.polls)
    print(f"{snapshot.summary()}; {len(snapshot.processes)} processes")


if __name__ == "__main__":
    main()
