"""What a host's own page shows: everything that is known of it, worked out from a snapshot."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webmon.model import ssh_arguments
from webmon.publish import chart, words
from webmon.publish.addresses import host_metrics, host_page, host_states, host_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from webmon.model import Process
    from webmon.publish.chart import Shape
    from webmon.publish.lab import Lab, LabGpu, LabHost


@dataclass(frozen=True, slots=True)
class ProcessRow:
    """One process, in full."""

    user: str
    program: str
    memory: str
    pid: int
    started_at: datetime | None
    container: str


@dataclass(frozen=True, slots=True)
class GpuSheet:
    """One GPU, in full."""

    place: str
    index: int
    name: str
    state: str
    word: str
    copy: str
    utilization: str
    utilization_level: str
    memory: str
    memory_level: str
    line: Shape | None
    line_words: str
    line_mean: str
    idle_since: datetime | None
    memory_utilization: str
    temperature: str
    power: str
    fan: str
    clock: str
    power_state: str
    mig: str
    driver: str
    uuid: str
    processes: Sequence[ProcessRow]
    nobody: str


@dataclass(frozen=True, slots=True)
class HostSheet:
    """One host, in full."""

    path: str
    text: str
    states: str
    metrics: str
    name: str
    label: str | None
    group: str | None
    status: str
    reason: str | None
    error: str | None
    free: int
    total: int
    copy: str | None
    last_seen: datetime | None
    checked_at: datetime | None
    duration: str
    models: str
    driver: str
    load: str
    ram: str
    gpus: Sequence[GpuSheet]
    strays: Sequence[ProcessRow]


def sheets(lab: Lab) -> Iterator[HostSheet]:
    """Work out the page of each host."""
    return map(_sheet, lab.hosts)


def _sheet(one: LabHost) -> HostSheet:
    host, gpus = one.host, [on.gpu for on in one.gpus]
    reach = ssh_arguments(host.host)
    # Where models differ, CUDA puts the fastest first, unless it is told to count as nvidia-smi does.
    order = "CUDA_DEVICE_ORDER=PCI_BUS_ID " if len({gpu.name for gpu in gpus}) > 1 else ""
    return HostSheet(
        path=host_page(one.name),
        text=host_text(one.name),
        states=host_states(one.name),
        metrics=host_metrics(one.name),
        name=host.host,
        label=host.label,
        group=host.group,
        status=host.status,
        reason=host.reason,
        error=words.sentence(host.error),
        free=one.free,
        total=len(gpus),
        copy=shlex.join(reach) if reach else None,
        last_seen=host.last_seen,
        checked_at=host.checked_at,
        duration=words.UNKNOWN if host.duration_ms is None else f"{host.duration_ms}\u202fms",
        models=words.models(gpu.name for gpu in gpus) or words.UNKNOWN,
        driver=host.driver or words.UNKNOWN,
        load=words.load(host.load1, host.cpus),
        ram=words.memory(host.ram_used_mib, host.ram_total_mib),
        gpus=[_gpu(on, order, host.driver) for on in one.gpus],
        strays=_rows(one.strays),
    )


def _gpu(on: LabGpu, order: str, driver: str | None) -> GpuSheet:
    gpu = on.gpu
    return GpuSheet(
        place=on.place,
        index=gpu.index,
        name=gpu.name or "model not known",
        state=gpu.state,
        word=words.STATES[gpu.state],
        copy=f"{order}CUDA_VISIBLE_DEVICES={gpu.index}",
        utilization=words.percent(gpu.utilization_pct),
        utilization_level=words.level(gpu.utilization_pct),
        memory=words.memory(gpu.memory_used_mib, gpu.memory_total_mib),
        memory_level=words.level(on.memory_pct),
        line=chart.line(on.line),
        line_words=chart.line_words(on.line),
        line_mean=chart.line_mean(on.line),
        idle_since=gpu.idle_since,
        memory_utilization=words.percent(gpu.memory_utilization_pct),
        temperature=words.degrees(gpu.temperature_c),
        power=words.power(gpu.power_w, gpu.power_limit_w),
        fan=words.percent(gpu.fan_pct),
        clock=words.megahertz(gpu.sm_clock_mhz),
        power_state=gpu.pstate or words.UNKNOWN,
        mig={"Enabled": "on", "Disabled": "off"}.get(gpu.mig_mode or "", words.UNKNOWN),
        driver=driver or words.UNKNOWN,
        uuid=gpu.uuid or words.UNKNOWN,
        processes=_rows(on.processes),
        nobody="No processes." if on.processes_are_known else "Its processes are not known.",
    )


def _rows(processes: Sequence[Process]) -> list[ProcessRow]:
    return [
        ProcessRow(
            user=words.user(process),
            program=words.program(process, with_name=True),
            memory=words.memory_of(process.memory_mib),
            pid=process.pid,
            started_at=process.started_at,
            container=process.container or "",
        )
        for process in processes
    ]
