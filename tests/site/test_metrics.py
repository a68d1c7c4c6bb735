"""The files for Prometheus: what the format wants, what the snapshot knows, and nothing that it does not."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest
from any_lab import labs, quick
from clusters import NOW
from exposed import files, series, value
from hypothesis import given
from hypothesis import strategies as st

from webmon.availability import Rules, is_ignored
from webmon.collect.assemble import Answer, assemble
from webmon.collect.privacy import Privacy
from webmon.columns import harmless
from webmon.model import Gpu, Host, Process, Reading, Snapshot

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "prometheus.md").read_text()
MIB = 1024 * 1024

# What a metric says, by the column that it is taken from.
EXPORTER = {
    "nvidia_smi_index": ("index", 1),
    "nvidia_smi_utilization_gpu_ratio": ("utilization_pct", 0.01),
    "nvidia_smi_utilization_memory_ratio": ("memory_utilization_pct", 0.01),
    "nvidia_smi_memory_total_bytes": ("memory_total_mib", MIB),
    "nvidia_smi_memory_used_bytes": ("memory_used_mib", MIB),
    "nvidia_smi_temperature_gpu": ("temperature_c", 1),
    "nvidia_smi_power_draw_watts": ("power_w", 1),
    "nvidia_smi_power_limit_watts": ("power_limit_w", 1),
    "nvidia_smi_fan_speed_ratio": ("fan_pct", 0.01),
    "nvidia_smi_clocks_current_sm_clock_hz": ("sm_clock_mhz", 1_000_000),
}
DCGM = {
    "DCGM_FI_DEV_GPU_UTIL": "utilization_pct",
    "DCGM_FI_DEV_MEM_COPY_UTIL": "memory_utilization_pct",
    "DCGM_FI_DEV_FB_TOTAL": "memory_total_mib",
    "DCGM_FI_DEV_FB_USED": "memory_used_mib",
    "DCGM_FI_DEV_GPU_TEMP": "temperature_c",
    "DCGM_FI_DEV_POWER_USAGE": "power_w",
    "DCGM_FI_DEV_POWER_MGMT_LIMIT": "power_limit_w",
    "DCGM_FI_DEV_FAN_SPEED": "fan_pct",
    "DCGM_FI_DEV_SM_CLOCK": "sm_clock_mhz",
}
HOST = {
    "webmon_host_load1": ("load1", 1),
    "webmon_host_cpus": ("cpus", 1),
    "webmon_host_memory_used_bytes": ("ram_used_mib", MIB),
    "webmon_host_memory_total_bytes": ("ram_total_mib", MIB),
    "webmon_probe_seconds": ("duration_ms", 0.001),
}
OF_THOSE_DOWN = {
    "webmon_snapshot_timestamp_seconds",
    "webmon_host_info",
    "webmon_host_up",
    "webmon_host_degraded",
    "webmon_host_last_seen_timestamp_seconds",
    "webmon_probe_seconds",
    "webmon_gpus",
}

FULL_GPU = Gpu(
    "gpu01", 0, "GPU-0", "NVIDIA RTX A6000", "busy", 7, 3, 3000, 48000, 31, 21.53, 300.0, 101, 210, "P8",
    "Enabled", NOW, ("alice",),
)  # fmt: skip
FULL_HOST = Host(
    "gpu01", "big", "vision", "up", None, None, NOW, NOW, 321, "550.54.14", 1, 0.5, 128, 1000, 2000
)
# Texts that are the same, or nothing, once they are cleaned; a number that another would get.
ALIKE = st.sampled_from(
    ["a", "A", "a\x01", "a\x02", "a_2", "gpu0", "gpu-gpu0", "GPU-a", "GPU-", "\xa0", "\\", '"']
)


def one(*gpus, processes=(), **changes):
    """Return a snapshot of one host that is well, with these GPUs."""
    return Snapshot(NOW, (FULL_HOST._replace(**changes),), gpus, tuple(processes))


def of_host(snapshot, name="gpu01"):
    """Return the text of a host's file."""
    return files(snapshot)[f"hosts/{name}.metrics"]


def compare(snapshot):
    """Check that the files say what the snapshot knows, and no more."""
    made = files(snapshot)
    whole = series(made["metrics"])
    targets = json.loads(made["targets.json"])
    names = [target["labels"]["instance"] for target in targets]
    assert len(set(names)) == len(snapshot.hosts)
    assert [labels["host"] for labels, _ in whole.get("webmon_host_up", ())] == names
    by_path = {target["labels"]["__metrics_path__"].removeprefix("/"): target for target in targets}
    assert set(by_path) == {path for path in made if path.startswith("hosts/")}
    dcgm = series(made["metrics-dcgm"])
    rest = {metric: list(samples) for metric, samples in whole.items()}
    for path, target in by_path.items():
        name = target["labels"]["instance"]
        found = series(made[path])
        assert found.pop("webmon_snapshot_timestamp_seconds") == [({}, snapshot.taken_at.timestamp())]
        for metric, samples in found.items():
            with_host = [({"host": name, **labels}, number) for labels, number in samples]
            assert rest[metric][: len(with_host)] == with_host
            del rest[metric][: len(with_host)]
        _compare_host(snapshot, _host_at(snapshot, names, name), found, dcgm, name)
    assert {metric for metric, samples in rest.items() if samples} == {"webmon_snapshot_timestamp_seconds"}


def _host_at(snapshot, names, name):
    from webmon.publish.lab import lab

    return lab(snapshot).hosts[names.index(name)]


def _compare_host(snapshot, known, found, dcgm, name):
    host, gpus = known.host, [on.gpu for on in known.gpus]
    is_down = host.status == "down"
    ((about, _),) = found["webmon_host_info"]
    assert set(about) == {"label", "group"}
    assert found["webmon_host_up"] == [({}, int(not is_down))]
    assert found["webmon_host_degraded"] == [({}, int(host.status == "degraded"))]
    assert sum(number for _, number in found.get("webmon_gpus", ())) == len(gpus)
    mine = {
        metric: [(labels["gpu"], number) for labels, number in samples if labels["Hostname"] == name]
        for metric, samples in dcgm.items()
        if metric.startswith("DCGM")
    }
    if is_down:
        assert set(found) <= OF_THOSE_DOWN
        assert not any(mine.values())
        return
    for metric, (column, factor) in HOST.items():
        wanted = [({}, approximately(getattr(host, column), factor))]
        assert found.get(metric, []) == (wanted if getattr(host, column) is not None else [])
    uuids = [labels["uuid"] for labels, _ in found.get("nvidia_smi_gpu_info", ())]
    indexes = [labels["index"] for labels, _ in found.get("nvidia_smi_gpu_info", ())]
    assert indexes == [str(gpu.index) for gpu in gpus]
    assert len(set(uuids)) == len(gpus)
    for metric, (column, factor) in EXPORTER.items():
        told = [(labels["uuid"], number) for labels, number in found.get(metric, ())]
        assert told == [
            (uuid, approximately(getattr(gpu, column), factor))
            for uuid, gpu in zip(uuids, gpus, strict=True)
            if getattr(gpu, column) is not None
        ]
    places = [on.place.removeprefix("gpu") for on in known.gpus]
    for metric, column in DCGM.items():
        assert mine.get(metric, []) == [
            (place, approximately(getattr(gpu, column)))
            for place, gpu in zip(places, gpus, strict=True)
            if getattr(gpu, column) is not None
        ]
    memory = defaultdict(list)
    for card, gpu in {(gpu.index, gpu.uuid): gpu for gpu in gpus}.items():
        for user in dict.fromkeys(gpu.users):
            memory[harmless(user)] += [
                process.memory_mib
                for process in snapshot.processes
                if (process.host, process.user) == (host.host, user)
                and (process.gpu_index, process.gpu_uuid) == card
                and not is_ignored(process, Rules())
            ] or [None]
    by_user = {labels["user"]: number for labels, number in found.get("webmon_user_memory_bytes", ())}
    assert by_user == {
        user: approximately(sum(known), MIB) for user, known in memory.items() if None not in known
    }


def approximately(number, factor=1):
    """Return what a value is in another unit; a ratio is told with four digits."""
    return None if number is None else pytest.approx(number * factor, rel=1e-12, abs=6e-5)


@quick
@given(labs())
def test_any_lab_is_told_as_it_is(snapshot):
    """Valid to the letter, no series twice, every known value there, and no other."""
    compare(snapshot)


@quick
@given(st.data())
def test_names_that_become_the_same_stay_apart(data):
    """Hosts, uuids and indexes that are there twice once they are cleaned; users are then one."""
    hosts = data.draw(st.lists(ALIKE, min_size=1, max_size=4, unique=True))
    gpus = [
        FULL_GPU._replace(
            host=host,
            index=data.draw(st.sampled_from([0, 0, 1])),
            uuid=data.draw(st.none() | ALIKE),
            users=tuple(data.draw(st.lists(ALIKE, max_size=3))),
        )
        for host in hosts
        for _ in range(data.draw(st.integers(0, 4)))
    ]
    processes = [
        Process(gpu.host, gpu.index, gpu.uuid, 1, data.draw(st.none() | ALIKE), memory_mib=5) for gpu in gpus
    ]
    statuses = st.sampled_from(["up", "degraded", "down"])
    known = tuple(FULL_HOST._replace(host=host, status=data.draw(statuses)) for host in hosts)
    compare(Snapshot(NOW, known, tuple(gpus), tuple(processes)))


def test_a_gpu_as_nvidia_gpu_exporter_tells_of_it():
    """All of its readings, in its units; the uuid in lower case and without GPU-."""
    gpu = FULL_GPU._replace(uuid="GPU-0A4F06D5-2B9C")
    found = {name: samples for name, samples in series(of_host(one(gpu))).items() if "nvidia" in name}
    label = {"uuid": "0a4f06d5-2b9c"}
    info = {**label, "name": "NVIDIA RTX A6000", "driver_version": "550.54.14", "index": "0"}
    assert found == {
        "nvidia_smi_gpu_info": [(info, 1)],
        "nvidia_smi_index": [(label, 0)],
        "nvidia_smi_utilization_gpu_ratio": [(label, 0.07)],
        "nvidia_smi_utilization_memory_ratio": [(label, 0.03)],
        "nvidia_smi_memory_total_bytes": [(label, 48000 * MIB)],
        "nvidia_smi_memory_used_bytes": [(label, 3000 * MIB)],
        "nvidia_smi_memory_free_bytes": [(label, 45000 * MIB)],
        "nvidia_smi_temperature_gpu": [(label, 31)],
        "nvidia_smi_power_draw_watts": [(label, 21.53)],
        "nvidia_smi_power_limit_watts": [(label, 300)],
        "nvidia_smi_fan_speed_ratio": [(label, 1.01)],
        "nvidia_smi_clocks_current_sm_clock_hz": [(label, 210_000_000)],
        "nvidia_smi_pstate": [(label, 8)],
        "nvidia_smi_mig_mode_current": [(label, 1)],
    }


def test_a_gpu_as_dcgm_exporter_tells_of_it():
    """Percents and MiB, its labels, the uuid as nvidia-smi has it; of which poll that is, too."""
    found = series(files(one(FULL_GPU))["metrics-dcgm"])
    label = {
        "gpu": "0", "UUID": "GPU-0", "device": "nvidia0", "modelName": "NVIDIA RTX A6000",
        "Hostname": "gpu01", "DCGM_FI_DRIVER_VERSION": "550.54.14",
    }  # fmt: skip
    assert found == {
        "webmon_snapshot_timestamp_seconds": [({}, NOW.timestamp())],
        "DCGM_FI_DEV_GPU_UTIL": [(label, 7)],
        "DCGM_FI_DEV_MEM_COPY_UTIL": [(label, 3)],
        "DCGM_FI_DEV_FB_TOTAL": [(label, 48000)],
        "DCGM_FI_DEV_FB_USED": [(label, 3000)],
        "DCGM_FI_DEV_FB_FREE": [(label, 45000)],
        "DCGM_FI_DEV_GPU_TEMP": [(label, 31)],
        "DCGM_FI_DEV_POWER_USAGE": [(label, 21.53)],
        "DCGM_FI_DEV_POWER_MGMT_LIMIT": [(label, 300)],
        "DCGM_FI_DEV_FAN_SPEED": [(label, 101)],
        "DCGM_FI_DEV_SM_CLOCK": [(label, 210)],
    }


def test_a_ratio_has_two_digits():
    """0.07, not 0.07000000000000001."""
    gpus = [FULL_GPU._replace(index=n, uuid=f"GPU-{n}", utilization_pct=n) for n in range(101)]
    lines = [line for line in of_host(one(*gpus)).splitlines() if "utilization_gpu_ratio{" in line]
    assert len(lines) == 101
    for line in lines:
        assert re.fullmatch(r"[01]\.[0-9]{1,2}", line.rpartition(" ")[2]), line


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf"), 10**400, -(10**400), 1e300])
def test_what_cannot_be_is_not_known(number):
    """A damaged table may have any number in it; no file has NaN, infinity, or fails."""
    gpu = FULL_GPU._replace(power_w=number, utilization_pct=number, memory_used_mib=number)
    found = series(of_host(one(gpu, load1=number, ram_used_mib=number)))
    assert not set(found) & {
        "nvidia_smi_power_draw_watts", "nvidia_smi_utilization_gpu_ratio", "nvidia_smi_memory_used_bytes",
        "webmon_host_load1", "webmon_host_memory_used_bytes",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("pstate", "number"),
    [
        ("P0", 0),
        ("P15", 15),
        (None, None),
        ("", None),
        ("P", None),
        ("8", None),
        ("P\u0663", None),
        ("P8 ", None),
        ("P" + "9" * 5000, None),
    ],
)
def test_the_performance_state_is_a_number_or_not_known(pstate, number):
    """P8 is 8."""
    assert value(of_host(one(FULL_GPU._replace(pstate=pstate))), "nvidia_smi_pstate") == number


@pytest.mark.parametrize(("mode", "number"), [("Enabled", 1), ("Disabled", 0), (None, None), ("else", None)])
def test_mig_is_on_off_or_not_known(mode, number):
    """A card that has no such thing says nothing of it."""
    assert value(of_host(one(FULL_GPU._replace(mig_mode=mode))), "nvidia_smi_mig_mode_current") == number


def test_a_gpu_of_which_nothing_is_known_has_a_name_and_no_readings():
    """A lost card that was never seen: only its index."""
    text = of_host(one(Gpu("gpu01", 3, state="faulty")))
    found = {name: samples for name, samples in series(text).items() if "nvidia" in name}
    info = {"uuid": "gpu3", "name": "", "driver_version": "550.54.14", "index": "3"}
    assert found == {"nvidia_smi_gpu_info": [(info, 1)], "nvidia_smi_index": [({"uuid": "gpu3"}, 3)]}
    assert value(text, "webmon_gpus", state="faulty") == 1


def test_how_many_gpus_a_host_has_is_not_known_before_it_has_answered():
    """Unknown is not 0; a host without a GPU has 0 of each state."""
    never = one(status="down", gpus=None, last_seen=None)
    assert set(series(of_host(never))) == OF_THOSE_DOWN - {
        "webmon_gpus", "webmon_host_last_seen_timestamp_seconds",
    }  # fmt: skip
    assert {number for _, number in series(of_host(one(gpus=0)))["webmon_gpus"]} == {0}


def test_a_host_that_is_down_keeps_its_gpus_as_unknown():
    """Nothing that was once known of them is told again, whatever is in the table."""
    found = series(of_host(one(FULL_GPU._replace(state="unknown"), status="down")))
    assert set(found) == OF_THOSE_DOWN
    assert (
        value(of_host(one(FULL_GPU._replace(state="unknown"), status="down")), "webmon_gpus", state="unknown")
        == 1
    )


def test_who_has_how_much():
    """By user, over all GPUs; what a process has in use may be not known, and so may be whose it is."""
    other = FULL_GPU._replace(index=1, uuid="GPU-1", users=("alice", "bob"))

    def process(gpu, user, memory):
        return Process("gpu01", gpu.index, gpu.uuid, 1, user, "python", "train.py", memory)

    text = of_host(
        one(
            FULL_GPU,
            other,
            processes=[
                process(FULL_GPU, "alice", 100),
                process(FULL_GPU, "alice", 3)._replace(name="/usr/lib/xorg/Xorg"),
                process(other, "alice", 20),
                process(other, "bob", None),
                process(other, "bob", 4),
                process(other, None, 3),
                Process("gpu01", None, "GPU-gone", 2, "chen", memory_mib=7),
            ],
        )
    )
    found = series(text)
    assert found["webmon_user_memory_bytes"] == [({"user": "alice"}, 120 * MIB)]
    assert {labels["user"]: number for labels, number in found["webmon_user_gpus"]} == {"alice": 2, "bob": 1}


@pytest.mark.parametrize("command", ["name", "full", "none"])
def test_no_process_is_in_any_label(command):
    """No pid, program, command or container, and a masked user only by the pseudonym."""
    process = Process(
        "gpu01", 0, "GPU-0", 31415926, "alice", "/opt/secret-program", "secret-command --password x", 5, NOW,
        "slurm-2718",
    )  # fmt: skip
    answer = Answer("gpu01", Reading((FULL_GPU,), (process,)), NOW, 20)
    privacy = Privacy(command, "mask", b"salt")
    made = files(assemble([answer], None, Rules(), privacy, NOW))
    text = "".join(made.values())
    assert not re.search("31415926|secret|password|2718|alice", text)
    assert value(made["metrics"], "webmon_user_memory_bytes", user=privacy.user("alice")) == 5 * MIB
    assert value(made["metrics"], "webmon_user_gpus", user=privacy.user("alice")) == 1


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ('a "b" \\ c\\n', 'a "b" \\ c\\n'),
        (
            "a\nb\r\x1b[31m",
            "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}[31m",
        ),
        ("half \ud800", "half \N{REPLACEMENT CHARACTER}"),
        ("träin 数", "träin 数"),
        ("x" * 10_000, "x" * 10_000),
        ("ä" * 10_000, "ä" * 4096),
        ("}", "}"),
        ("\\", "\\"),
    ],
    ids=["quotes", "control", "surrogate", "letters", "long", "long letters", "brace", "backslash"],
)
def test_any_name_is_a_label(name, told):
    """Quotes and backslashes are escaped, control characters are gone; users, models and hosts alike."""
    gpu = FULL_GPU._replace(host=name, name=name, users=(name,))
    made = files(Snapshot(NOW, (FULL_HOST._replace(host=name, group=name),), (gpu,)))
    whole = made["metrics"]
    assert value(whole, "nvidia_smi_gpu_info", name=told, host=told) == 1
    assert value(whole, "webmon_user_gpus", user=told) == 1
    (target,) = json.loads(made["targets.json"])
    assert target["targets"] == [told]
    assert (target["labels"]["instance"], target["labels"]["__meta_webmon_group"]) == (told, told)
    assert value(whole, "webmon_host_info", host=told, label="big", group=told) == 1
    assert re.fullmatch(r"/hosts/[\w.-]+\.metrics", target["labels"]["__metrics_path__"], re.ASCII)


def test_a_lab_without_hosts_has_files_too():
    """The targets are none; the time is there."""
    made = files(Snapshot(NOW))
    assert made["targets.json"] == "[]\n"
    for name in ("metrics", "metrics-dcgm"):
        assert series(made[name]) == {"webmon_snapshot_timestamp_seconds": [({}, NOW.timestamp())]}


def test_a_host_without_a_group_has_no_such_label():
    """An empty one would be none to Prometheus anyway."""
    for group in (None, "", "\xa0"):
        (target,) = json.loads(files(one(group=group))["targets.json"])
        assert set(target["labels"]) == {"__metrics_path__", "instance"}


def test_the_document_lists_every_metric():
    """All that there are, and no other; what stays of a host that is down is marked."""
    told = dict(
        re.findall(r"^\| `(webmon_\w+|nvidia_smi_\w+|DCGM_\w+)` \|.*\| (✓?) ?\|$", DOCUMENT, re.MULTILINE)
    )
    process = Process("gpu01", 0, "GPU-0", 1, "alice", memory_mib=5)
    made = files(one(FULL_GPU, processes=[process]))
    there = {name for path in ("metrics", "metrics-dcgm") for name in series(made[path])}
    assert set(told) == there
    assert {name for name, mark in told.items() if mark} == OF_THOSE_DOWN
