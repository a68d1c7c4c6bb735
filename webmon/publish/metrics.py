"""The snapshot for Prometheus: for the whole lab, and a file for each host.

Names, units and labels are those of nvidia_gpu_exporter and of dcgm-exporter, so that their dashboards work;
what they don't have starts with `webmon_`. What is not known has no sample.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, get_args

from webmon.columns import harmless
from webmon.model import State
from webmon.publish.addresses import host_metrics
from webmon.publish.words import HIDDEN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from webmon.publish.lab import Lab, LabGpu, LabHost
    from webmon.publish.look import Look

    Value = float | None
    # What a metric is called, what it means, and its value.
    Reading = tuple[str, str, Callable[[LabGpu], Value]]

_MIB = 1024 * 1024

_EXPORTER: tuple[Reading, ...] = (
    ("nvidia_smi_index", "index", lambda on: on.gpu.index),
    (
        "nvidia_smi_utilization_gpu_ratio",
        "utilization.gpu [%]",
        lambda on: _times(on.gpu.utilization_pct, 0.01),
    ),
    (
        "nvidia_smi_utilization_memory_ratio",
        "utilization.memory [%]",
        lambda on: _times(on.gpu.memory_utilization_pct, 0.01),
    ),
    ("nvidia_smi_memory_total_bytes", "memory.total [MiB]", lambda on: _times(on.gpu.memory_total_mib, _MIB)),
    ("nvidia_smi_memory_used_bytes", "memory.used [MiB]", lambda on: _times(on.gpu.memory_used_mib, _MIB)),
    (
        "nvidia_smi_memory_free_bytes",
        "memory.total less memory.used [MiB]",
        lambda on: _times(on.memory_free_mib, _MIB),
    ),
    ("nvidia_smi_temperature_gpu", "temperature.gpu", lambda on: on.gpu.temperature_c),
    ("nvidia_smi_power_draw_watts", "power.draw [W]", lambda on: on.gpu.power_w),
    ("nvidia_smi_power_limit_watts", "power.limit [W]", lambda on: on.gpu.power_limit_w),
    ("nvidia_smi_fan_speed_ratio", "fan.speed [%]", lambda on: _times(on.gpu.fan_pct, 0.01)),
    (
        "nvidia_smi_clocks_current_sm_clock_hz",
        "clocks.current.sm [MHz]",
        lambda on: _times(on.gpu.sm_clock_mhz, 1_000_000),
    ),
    ("nvidia_smi_pstate", "pstate", lambda on: _performance_state(on.gpu.pstate)),
    (
        "nvidia_smi_mig_mode_current",
        "mig.mode.current",
        lambda on: {"Enabled": 1, "Disabled": 0}.get(on.gpu.mig_mode or ""),
    ),
)

_DCGM: tuple[Reading, ...] = (
    ("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", lambda on: on.gpu.utilization_pct),
    ("DCGM_FI_DEV_MEM_COPY_UTIL", "Memory utilization (in %).", lambda on: on.gpu.memory_utilization_pct),
    ("DCGM_FI_DEV_FB_TOTAL", "Framebuffer memory in total (in MiB).", lambda on: on.gpu.memory_total_mib),
    ("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).", lambda on: on.gpu.memory_used_mib),
    ("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).", lambda on: on.memory_free_mib),
    ("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", lambda on: on.gpu.temperature_c),
    ("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", lambda on: on.gpu.power_w),
    ("DCGM_FI_DEV_POWER_MGMT_LIMIT", "Power limit (in W).", lambda on: on.gpu.power_limit_w),
    ("DCGM_FI_DEV_FAN_SPEED", "Fan speed (in %).", lambda on: on.gpu.fan_pct),
    ("DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz).", lambda on: on.gpu.sm_clock_mhz),
)


def metrics(lab: Lab, _look: Look) -> Iterator[tuple[str, str]]:
    """Return the path and the text of each file."""
    whole = Families()
    dcgm = Families()
    whole.add("webmon_snapshot_timestamp_seconds", "When the hosts were asked.", {}, _seconds(lab.taken_at))
    for one in lab.hosts:
        of_host = Families()
        _about_gpus(of_host, one)
        _about_host(of_host, one)
        yield host_metrics(one.name), of_host.text()
        whole.extend(of_host, {"host": one.host.host})
        _about_dcgm(dcgm, one)
    yield "metrics", whole.text()
    yield "metrics-dcgm", dcgm.text()
    yield "targets.json", _targets(lab)


class Families:
    """Samples by their metric: the format wants those of one metric side by side."""

    def __init__(self) -> None:
        """Start without any."""
        self.meanings: dict[str, str] = {}
        self.samples: dict[str, list[tuple[str, str]]] = defaultdict(list)

    def add(self, name: str, meaning: str, labels: Mapping[str, str], value: Value) -> None:
        """Add a sample, unless its value is not known."""
        if value is not None:
            self.add_written(name, meaning, _labels(labels), value)

    def add_written(self, name: str, meaning: str, labels: str, value: float) -> None:
        """Add a sample whose labels are written already."""
        self.meanings[name] = meaning
        self.samples[name].append((labels, repr(value)))

    def extend(self, other: Families, labels: Mapping[str, str]) -> None:
        """Add all samples of another one, with more labels."""
        more = _labels(labels)
        self.meanings |= other.meanings
        for name, samples in other.samples.items():
            self.samples[name] += [(f"{more},{own}" if own else more, value) for own, value in samples]

    def text(self) -> str:
        """Write them all."""
        lines: list[str] = []
        for name, meaning in self.meanings.items():
            lines += (f"# HELP {name} {meaning}", f"# TYPE {name} gauge")
            lines += [
                f"{name}{{{labels}}} {value}" if labels else f"{name} {value}"
                for labels, value in self.samples[name]
            ]
        return "\n".join([*lines, ""])


def _about_gpus(families: Families, one: LabHost) -> None:
    if one.host.status == "down":
        return
    known = {on.place: _labels({"uuid": uuid}) for on, uuid in zip(one.gpus, _uuids(one.gpus), strict=True)}
    for on in one.gpus:
        about = {
            "name": on.gpu.name or "",
            "driver_version": one.host.driver or "",
            "index": str(on.gpu.index),
        }
        families.add_written(
            "nvidia_smi_gpu_info",
            "A metric with a constant '1' value labeled by gpu uuid, name, driver_version, index.",
            f"{known[on.place]},{_labels(about)}",
            1,
        )
    for name, meaning, read in _EXPORTER:
        for on in one.gpus:
            if (value := read(on)) is not None:
                families.add_written(name, meaning, known[on.place], value)


def _about_host(families: Families, one: LabHost) -> None:
    host = one.host
    up = host.status != "down"
    families.add("webmon_host_up", "Whether the host answered the last poll.", {}, int(up))
    families.add(
        "webmon_host_degraded",
        "Whether something is wrong with a host that answered.",
        {},
        int(host.status == "degraded"),
    )
    families.add(
        "webmon_host_last_seen_timestamp_seconds",
        "When the host last answered.",
        {},
        _seconds(host.last_seen),
    )
    families.add("webmon_probe_seconds", "How long the last poll took.", {}, _times(host.duration_ms, 0.001))
    families.add("webmon_host_load1", "The host's load over one minute.", {}, host.load1)
    families.add("webmon_host_cpus", "The host's logical processors.", {}, host.cpus)
    families.add("webmon_host_memory_used_bytes", "Main memory in use.", {}, _times(host.ram_used_mib, _MIB))
    families.add("webmon_host_memory_total_bytes", "Main memory.", {}, _times(host.ram_total_mib, _MIB))
    in_state = Counter(on.gpu.state for on in one.gpus)
    for state in get_args(State):
        families.add("webmon_gpus", "GPUs by state.", {"state": state}, in_state[state])
    memory: Counter[str] = Counter()
    for process in [*(process for on in one.gpus for process in on.processes), *one.strays]:
        if process.memory_mib is not None:
            memory[process.user or HIDDEN] += process.memory_mib
    for user, mib in memory.items():
        families.add("webmon_user_memory_bytes", "GPU memory by user.", {"user": user}, mib * _MIB)
    for user, gpus in Counter(user for on in one.gpus for user in on.gpu.users).items():
        families.add("webmon_user_gpus", "GPUs that a user has processes on.", {"user": user}, gpus)


def _about_dcgm(families: Families, one: LabHost) -> None:
    if one.host.status == "down":
        return
    for on in one.gpus:
        gpu = on.gpu
        labels = _labels(
            {
                "gpu": on.place.removeprefix("gpu"),
                "UUID": gpu.uuid or "",
                "device": f"nvidia{gpu.index}",
                "modelName": gpu.name or "",
                "Hostname": one.host.host,
                "DCGM_FI_DRIVER_VERSION": one.host.driver or "",
            }
        )
        for name, meaning, read in _DCGM:
            if (value := read(on)) is not None:
                families.add_written(name, meaning, labels, value)


def _targets(lab: Lab) -> str:
    """Write what http_sd reads: each host's own metrics, so that `instance` is the host."""
    return (
        json.dumps(
            [
                {
                    "targets": [one.host.host],
                    "labels": {
                        "__metrics_path__": f"/{host_metrics(one.name)}",
                        "instance": one.host.host,
                        **({"group": one.host.group} if one.host.group else {}),
                    },
                }
                for one in lab.hosts
            ],
            ensure_ascii=False,
            indent=1,
        )
        + "\n"
    )


def _uuids(gpus: Sequence[LabGpu]) -> list[str]:
    """Return each GPU's uuid as the exporter writes it; one without, or with a taken one, its place."""
    uuids: list[str] = []
    for on in gpus:
        uuid = (on.gpu.uuid or "").lower().removeprefix("gpu-")
        uuids.append(uuid if uuid and uuid not in uuids else on.place)
    return uuids


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return harmless(value).replace("\\", r"\\").replace('"', r"\"")


def _times(value: Value, factor: float) -> Value:
    """Convert to another unit, in which a ratio keeps its two digits: 0.07, not 0.07000000000000001."""
    return None if value is None else round(value * factor, 4)


def _seconds(time: datetime | None) -> Value:
    return None if time is None else time.timestamp()


def _performance_state(pstate: str | None) -> Value:
    digits = (pstate or "").removeprefix("P")
    return int(digits) if digits.isascii() and digits.isdigit() else None
