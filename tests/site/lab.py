"""A small lab, seen just now, and what may become of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from webmon.model import Gpu, Host, Process, Snapshot

A100 = "NVIDIA A100-SXM4-80GB"
A6000 = "NVIDIA RTX A6000"
RTX3090 = "NVIDIA GeForce RTX 3090"
HOSTILE = "<script>document.title='hacked'</script>"


def link(host, index, within="main"):
    """Return the selector of the link that each GPU is in the overview."""
    return f'{within} a[href="hosts/{host}.html#gpu{index}"]'


def lab():
    """Return four hosts with eight GPUs, half of them free; on gpu08's first one are 17 processes."""
    now = datetime.now(UTC).replace(microsecond=0)
    seen = {"checked_at": now, "last_seen": now, "driver": "550.54.15", "load1": 1.5, "cpus": 64}
    idle = {"state": "free", "utilization_pct": 0, "memory_used_mib": 4, "power_limit_w": 400.0}
    idle["idle_since"] = now - timedelta(minutes=20)
    busy = {"state": "busy", "utilization_pct": 97, "temperature_c": 71, "power_w": 310.0}
    return Snapshot(
        now,
        hosts=(
            Host("gpu07", "the new one", "vision", "up", gpus=4, **seen),
            Host("gpu08", None, "vision", "up", gpus=2, **seen),
            Host("gpu09", status="down", reason="timeout", error="no answer within 20 s", checked_at=now),
            Host("mixed:2222", status="up", gpus=2, **seen),
        ),
        gpus=(
            Gpu(
                "gpu07",
                0,
                "GPU-70",
                A100,
                memory_used_mib=78000,
                memory_total_mib=81920,
                power_limit_w=400.0,
                fan_pct=45,
                sm_clock_mhz=1410,
                pstate="P0",
                users=("alice", "bob"),
                **busy,
            ),
            *(Gpu("gpu07", index, f"GPU-7{index}", A100, memory_total_mib=81920, **idle) for index in (1, 2)),
            Gpu(
                "gpu07",
                3,
                "GPU-73",
                A100,
                "held",
                0,
                memory_used_mib=41000,
                memory_total_mib=81920,
                idle_since=now - timedelta(minutes=200),
                users=("chen",),
            ),
            Gpu("gpu08", 0, "GPU-80", RTX3090, memory_used_mib=17000, memory_total_mib=24576, **busy),
            Gpu("gpu08", 1, "GPU-81", RTX3090, memory_total_mib=24576, **idle),
            Gpu("mixed:2222", 0, "GPU-90", A6000, memory_total_mib=49140, **idle),
            Gpu("mixed:2222", 1, "GPU-91", RTX3090, memory_used_mib=20000, memory_total_mib=24576, **busy),
        ),
        processes=(
            process("gpu07", 0, "GPU-70", 102, "bob", "eval.py", 18000, now - timedelta(minutes=90)),
            process(
                "gpu07", 0, "GPU-70", 101, "alice", "train.py", 60000, now - timedelta(hours=50), "slurm-12"
            ),
            process("gpu07", 3, "GPU-73", 103, "chen", "jupyter", 41000),
            *(process("gpu08", 0, "GPU-80", 200 + n, "dora", f"worker{n}.py", 1000) for n in range(17)),
            process("mixed:2222", 1, "GPU-91", 301, "<img src=x>", HOSTILE),
        ),
    )


def process(host, index, uuid, pid, *known):
    """Return a process of python's: `process(host, index, uuid, pid, user, command, memory, …)`."""
    user, *rest = known
    return Process(host, index, uuid, pid, user, "python", *rest)


def later(snapshot, **changes):
    """Return what was found a second afterwards: `later(snapshot, hosts=…, gpus=…, processes=…)`."""
    return snapshot._replace(**{"taken_at": snapshot.taken_at + timedelta(seconds=1)} | changes)


def taken(snapshot, host, index, user="zoe"):
    """Return the snapshot of a second afterwards, when somebody has taken a free GPU."""
    gpus = [
        gpu._replace(state="busy", utilization_pct=88, memory_used_mib=9216, idle_since=None, users=(user,))
        if (gpu.host, gpu.index) == (host, index)
        else gpu
        for gpu in snapshot.gpus
    ]
    uuid = next(gpu.uuid for gpu in gpus if (gpu.host, gpu.index) == (host, index))
    new = process(host, index, uuid, 999, user, "new.py", 9000, snapshot.taken_at)
    return later(snapshot, gpus=tuple(gpus), processes=(*snapshot.processes, new))
