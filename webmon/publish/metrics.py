"""The snapshot for Prometheus: for the whole lab, and a file for each host.

Names, units and labels are those of nvidia_gpu_exporter and of dcgm-exporter, so that their dashboards work;
what they don't have starts with `webmon_`. What is not known has no sample. docs/prometheus.md has the list.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, get_args

from webmon.availability import memory_by_user
from webmon.columns import harmless
from webmon.model import State
from webmon.publish.addresses import host_metrics, told_apart
from webmon.publish.exposition import Families, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from webmon.availability import Rules
    from webmon.model import Host
    from webmon.publish.exposition import Value
    from webmon.publish.lab import Lab, LabGpu, LabHost
    from webmon.publish.look import Look

    # What a metric is called, what it means, the factor to its unit, and its value.
    Reading = tuple[str, str, float, Callable[[LabGpu], Value]]

_MIB = 1024 * 1024

# fmt: off
_EXPORTER: tuple[Reading, ...] = (
    ("nvidia_smi_index", "The GPU's number on its host.", 1, lambda on: on.gpu.index),
    ("nvidia_smi_utilization_gpu_ratio", "Share of the time in which it computed.", 0.01,
     lambda on: on.gpu.utilization_pct),
    ("nvidia_smi_utilization_memory_ratio", "Share of the time in which it used its memory.", 0.01,
     lambda on: on.gpu.memory_utilization_pct),
    ("nvidia_smi_memory_total_bytes", "Memory of the GPU.", _MIB, lambda on: on.gpu.memory_total_mib),
    ("nvidia_smi_memory_used_bytes", "Its memory in use.", _MIB, lambda on: on.gpu.memory_used_mib),
    ("nvidia_smi_memory_free_bytes", "Its memory not in use, what the driver keeps included.", _MIB,
     lambda on: on.memory_free_mib),
    ("nvidia_smi_temperature_gpu", "Temperature in degrees Celsius.", 1, lambda on: on.gpu.temperature_c),
    ("nvidia_smi_power_draw_watts", "Power that it draws.", 1, lambda on: on.gpu.power_w),
    ("nvidia_smi_power_limit_watts", "Power that it may draw.", 1, lambda on: on.gpu.power_limit_w),
    ("nvidia_smi_fan_speed_ratio", "Speed that its fan is set to; may exceed 1.", 0.01,
     lambda on: on.gpu.fan_pct),
    ("nvidia_smi_clocks_current_sm_clock_hz", "Clock of its multiprocessors.", 1_000_000,
     lambda on: on.gpu.sm_clock_mhz),
    ("nvidia_smi_pstate", "Performance state, 0 is the fastest.", 1,
     lambda on: _performance_state(on.gpu.pstate)),
    ("nvidia_smi_mig_mode_current", "Whether it is split by MIG.", 1,
     lambda on: {"Enabled": 1, "Disabled": 0}.get(on.gpu.mig_mode or "")),
)

_DCGM: tuple[Reading, ...] = (
    ("DCGM_FI_DEV_GPU_UTIL", "Time in which it computed, %.", 1, lambda on: on.gpu.utilization_pct),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", "Time in which it used its memory, %.", 1,
     lambda on: on.gpu.memory_utilization_pct),
    ("DCGM_FI_DEV_FB_TOTAL", "Memory of the GPU, MiB.", 1, lambda on: on.gpu.memory_total_mib),
    ("DCGM_FI_DEV_FB_USED", "Its memory in use, MiB.", 1, lambda on: on.gpu.memory_used_mib),
    ("DCGM_FI_DEV_FB_FREE", "Its memory not in use, what the driver keeps included, MiB.", 1,
     lambda on: on.memory_free_mib),
    ("DCGM_FI_DEV_GPU_TEMP", "Temperature, degrees Celsius.", 1, lambda on: on.gpu.temperature_c),
    ("DCGM_FI_DEV_POWER_USAGE", "Power that it draws, W.", 1, lambda on: on.gpu.power_w),
    ("DCGM_FI_DEV_POWER_MGMT_LIMIT", "Power that it may draw, W.", 1, lambda on: on.gpu.power_limit_w),
    ("DCGM_FI_DEV_FAN_SPEED", "Speed that its fan is set to, %.", 1, lambda on: on.gpu.fan_pct),
    ("DCGM_FI_DEV_SM_CLOCK", "Clock of its multiprocessors, MHz.", 1, lambda on: on.gpu.sm_clock_mhz),
)
# fmt: on


def metrics(lab: Lab, _look: Look) -> Iterator[tuple[str, str]]:
    """Return the path and the text of each file."""
    # Of two series with the same labels, Prometheus would take one.
    names = told_apart(harmless(one.host.host) or one.name for one in lab.hosts)
    whole, dcgm = Families(), Families()
    _about_snapshot(whole, lab)
    _about_snapshot(dcgm, lab)
    for one, name in zip(lab.hosts, names, strict=True):
        of_host = Families()
        _about_host(of_host, one)
        # Of a host that did not answer nothing else is known.
        if one.host.status != "down":
            _about_its_load(of_host, one.host)
            _about_users(of_host, one, lab.rules)
            _about_gpus(of_host, one)
            _about_gpus_as_dcgm(dcgm, one, name)
        whole.extend(of_host, written(host=name))
        # Not with the others: of the whole lab it is told once.
        _about_snapshot(of_host, lab)
        yield host_metrics(one.name), of_host.text()
    yield "metrics", whole.text()
    yield "metrics-dcgm", dcgm.text()
    yield "targets.json", _targets(lab, names)


def _about_snapshot(families: Families, lab: Lab) -> None:
    families.add(
        "webmon_snapshot_timestamp_seconds", "When the hosts were asked.", "", lab.taken_at.timestamp()
    )


def _about_host(families: Families, one: LabHost) -> None:
    host = one.host
    about = written(label=host.label or "", group=host.group or "")
    families.add("webmon_host_info", "Which host it is; always 1.", about, 1)
    families.add("webmon_host_up", "Whether the host answered the last poll.", "", int(host.status != "down"))
    degraded = int(host.status == "degraded")
    families.add("webmon_host_degraded", "Whether it answered, and something is wrong.", "", degraded)
    last_seen = "webmon_host_last_seen_timestamp_seconds"
    families.add(last_seen, "When the host last answered.", "", _seconds(host.last_seen))
    families.add("webmon_probe_seconds", "How long the last poll took.", "", host.duration_ms, 0.001)
    # How many GPUs a host has that has never answered is not known, and not 0.
    if one.gpus or host.gpus is not None:
        in_state = Counter(on.gpu.state for on in one.gpus)
        for state in get_args(State):
            families.add("webmon_gpus", "GPUs by their state.", written(state=state), in_state[state])


def _about_its_load(families: Families, host: Host) -> None:
    families.add("webmon_host_load1", "Load over one minute.", "", host.load1)
    families.add("webmon_host_cpus", "Logical processors.", "", host.cpus)
    families.add("webmon_host_memory_used_bytes", "Main memory in use.", "", host.ram_used_mib, _MIB)
    families.add("webmon_host_memory_total_bytes", "Main memory.", "", host.ram_total_mib, _MIB)


def _about_users(families: Families, one: LabHost, rules: Rules) -> None:
    memory: dict[str, int | None] = {}
    gpus: Counter[str] = Counter()
    # A card that is there twice has its processes once.
    for on in {(on.gpu.index, on.gpu.uuid): on for on in one.gpus}.values():
        by_user = memory_by_user(on.gpu, on.processes, rules)
        # Cleaned here, where those that are the same then are counted together.
        gpus.update(dict.fromkeys(map(harmless, by_user), 1))
        for user, mib in by_user.items():
            before = memory.get(harmless(user), 0)
            memory[harmless(user)] = None if before is None or mib is None else before + mib
    for user, total in memory.items():
        families.add("webmon_user_memory_bytes", "GPU memory by user.", written(user=user), total, _MIB)
    for user, number in gpus.items():
        families.add("webmon_user_gpus", "GPUs that a user has processes on.", written(user=user), number)


def _about_gpus(families: Families, one: LabHost) -> None:
    known = [written(uuid=uuid) for uuid in told_apart(map(_uuid, one.gpus))]
    for on, which in zip(one.gpus, known, strict=True):
        about = written(name=on.gpu.name or "", driver_version=one.host.driver or "", index=str(on.gpu.index))
        families.add("nvidia_smi_gpu_info", "Which GPU it is; always 1.", f"{which},{about}", 1)
    for name, meaning, factor, read in _EXPORTER:
        families.add_all(name, meaning, zip(known, map(read, one.gpus), strict=True), factor)


def _about_gpus_as_dcgm(families: Families, one: LabHost, host: str) -> None:
    known = [
        written(
            gpu=on.number,
            UUID=on.gpu.uuid or "",
            device=f"nvidia{on.gpu.index}",
            modelName=on.gpu.name or "",
            Hostname=host,
            DCGM_FI_DRIVER_VERSION=one.host.driver or "",
        )
        for on in one.gpus
    ]
    for name, meaning, factor, read in _DCGM:
        families.add_all(name, meaning, zip(known, map(read, one.gpus), strict=True), factor)


def _targets(lab: Lab, names: Sequence[str]) -> str:
    """Write what http_sd reads: each host's own metrics, so that `instance` is the host."""
    targets = []
    for one, name in zip(lab.hosts, names, strict=True):
        labels = {"__metrics_path__": f"/{host_metrics(one.name)}", "instance": name}
        # A label that all series had besides would double the rows of tables that fill gaps with `or`.
        if group := harmless(one.host.group or ""):
            labels["__meta_webmon_group"] = group
        targets.append({"targets": [name], "labels": labels})
    return json.dumps(targets, ensure_ascii=False, indent=1) + "\n"


def _uuid(on: LabGpu) -> str:
    """Return a GPU's uuid as the exporter writes it, or its place on the host where it has none."""
    return harmless(on.gpu.uuid or "").lower().removeprefix("gpu-") or on.place


def _seconds(time: datetime | None) -> Value:
    return None if time is None else time.timestamp()


def _performance_state(pstate: str | None) -> Value:
    found = re.fullmatch(r"P([0-9]{1,2})", pstate or "")
    return int(found[1]) if found else None
