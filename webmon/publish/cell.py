"""What one GPU shows in the overview: a cell, and the hover text that says the rest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from webmon.publish import chart, words

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from webmon.model import Gpu, Process, Status
    from webmon.publish.chart import Shape
    from webmon.publish.lab import LabGpu


@dataclass(frozen=True, slots=True)
class GpuCell:
    """One GPU in the overview. Levels are classes of the bars."""

    index: int
    href: str
    model: str
    state: str
    mig: bool
    utilization: str
    utilization_level: str
    memory: str
    memory_level: str
    line: Shape | None
    line_words: str
    more: str
    is_owned: bool
    who: str
    program: str
    since: str
    title: str | None


def cell(on: LabGpu, href: str, status: Status, taken_at: datetime, *, titled: bool) -> GpuCell:
    """Work out a GPU's cell."""
    gpu, processes = on.gpu, on.processes
    largest = processes[0] if processes else None
    return GpuCell(
        index=gpu.index,
        href=href,
        model=words.model(gpu.name),
        state=gpu.state,
        mig=gpu.mig_mode == "Enabled",
        utilization=words.percent(gpu.utilization_pct),
        utilization_level=words.level(gpu.utilization_pct),
        memory=words.memory(gpu.memory_used_mib, gpu.memory_total_mib),
        memory_level=words.level(on.memory_pct),
        # Of thousands of GPUs the lines are on the pages of the hosts.
        line=chart.line(on.line) if titled else None,
        line_words=chart.line_words(on.line) if titled else "",
        more=f"{words.degrees(gpu.temperature_c)} · {words.watts(gpu.power_w)}",
        is_owned=largest is not None,
        who=_who(gpu, largest, status),
        program=words.program(largest) if largest else "",
        since=words.running(largest, taken_at) if largest else "",
        title=_title(gpu, processes, taken_at) if titled else None,
    )


def _who(gpu: Gpu, largest: Process | None, status: Status) -> str:
    """Say whose it is: the owner of the largest process, then everybody else who is on it."""
    if largest is not None:
        owner = words.user(largest)
        return ", ".join([owner, *(user for user in gpu.users if user != owner)])
    if gpu.state == "faulty":
        return "lost or in error"
    if gpu.state == "unknown":
        return "no data" if status == "down" else "not known"
    return "no processes"


def _title(gpu: Gpu, processes: Sequence[Process], taken_at: datetime) -> str:
    """Return the hover text: every process, and the rest of the readings."""
    lines = [f"GPU {gpu.index}: {gpu.name or 'model not known'}, {words.STATES[gpu.state]}"]
    for process in processes:
        running = words.running(process, taken_at)
        parts = [
            words.user(process),
            words.program(process),
            words.memory_of(process.memory_mib) if process.memory_mib is not None else "",
            f"pid {process.pid}",
            f"for {running}" if running else "",
            f"in {process.container}" if process.container else "",
        ]
        lines.append(" · ".join(part for part in parts if part))
    readings = [
        words.power(gpu.power_w, gpu.power_limit_w) if gpu.power_w is not None else "",
        words.megahertz(gpu.sm_clock_mhz) if gpu.sm_clock_mhz is not None else "",
        f"fan {words.percent(gpu.fan_pct)}" if gpu.fan_pct is not None else "",
        f"idle since {words.moment(gpu.idle_since)}" if gpu.idle_since else "",
        "MIG" if gpu.mig_mode == "Enabled" else "",
        gpu.uuid or "",
    ]
    lines.append(" · ".join(part for part in readings if part))
    return "\n".join(line for line in lines if line)
