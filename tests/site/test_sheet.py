"""What a host's own page says, worked out from a snapshot."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta

import pytest

from webmon.model import Gpu, Host, Process, Snapshot, ssh_arguments
from webmon.publish.addresses import file_names, gpu_places
from webmon.publish.lab import lab
from webmon.publish.sheet import sheets

NOW = datetime(2026, 11, 18, 8, 20, tzinfo=UTC)


def sheet(*gpus, processes=(), **host):
    snapshot = Snapshot(NOW, (Host("a", **host),), gpus, tuple(processes))
    (only,) = sheets(lab(snapshot))
    return only


@pytest.mark.parametrize(
    ("host", "command"),
    [
        ("gpu07", "ssh gpu07"),
        ("gpu07.lab:2222", "ssh -p 2222 gpu07.lab"),
        ("[fe80::7]:2222", "ssh -p 2222 fe80::7"),
        ("[fe80::7]", "ssh fe80::7"),
        ("fe80::7", "ssh fe80::7"),
        ("a b;reboot", "ssh 'a b;reboot'"),
        ("self", None),
    ],
)
def test_what_to_type_to_get_there(host, command):
    """With the port where there is one, fit for a shell, and nothing for this machine itself."""
    assert ssh_arguments(host) == (command and shlex.split(command))


def test_cuda_counts_as_nvidia_smi_does_where_models_differ():
    """By itself CUDA puts the fastest card first, so 3 could be another card than the page's 3."""
    same = sheet(Gpu("a", 0, "u0", "NVIDIA A100"), Gpu("a", 3, "u3", "NVIDIA A100"))
    assert [gpu.copy for gpu in same.gpus] == ["CUDA_VISIBLE_DEVICES=0", "CUDA_VISIBLE_DEVICES=3"]
    mixed = sheet(Gpu("a", 0, "u0", "NVIDIA A100"), Gpu("a", 3, "u3", "NVIDIA H100"))
    assert mixed.gpus[1].copy == "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=3"


def test_a_host_of_which_nothing_is_known_has_dashes():
    """Never zeros."""
    bare = sheet(Gpu("a", 0))
    assert {bare.duration, bare.models, bare.driver, bare.load, bare.ram} == {"–"}  # noqa: RUF001
    gpu = bare.gpus[0]
    readings = {gpu.memory_utilization, gpu.temperature, gpu.power, gpu.fan, gpu.clock, gpu.power_state}
    assert {*readings, gpu.mig, gpu.driver, gpu.uuid, gpu.utilization, gpu.memory} == {"–"}  # noqa: RUF001
    assert (gpu.utilization_level, gpu.memory_level) == ("", "")
    assert gpu.name == "model not known"
    assert gpu.nobody == "Its processes are not known."


def test_everything_that_is_known_is_said():
    """In the units that a person reads."""
    full = sheet(
        Gpu("a", 0, "u0", "A100", "busy", 43, 12, 40960, 81920, 62, 310.4, 400.0, 101, 1980, "P0", "Enabled"),
        driver="550.54.15",
        load1=12.44,
        cpus=64,
        ram_used_mib=10240,
        ram_total_mib=524288,
        duration_ms=214,
    )
    assert (full.load, full.ram, full.duration) == ("12.4/64", "10/512 GB", "214\u202fms")
    gpu = full.gpus[0]
    assert (gpu.utilization, gpu.memory) == ("43\u202f%", "40/80 GB")
    assert (gpu.utilization_level, gpu.memory_level) == (" v40 v3", " v50")
    assert (gpu.power, gpu.fan, gpu.clock) == ("310 of 400\u202fW", "101\u202f%", "1980\u202fMHz")
    assert (gpu.temperature, gpu.power_state, gpu.mig) == ("62\u202f°C", "P0", "on")
    assert gpu.driver == "550.54.15"


def test_processes_come_with_the_largest_first():
    """What is not known is a dash; a container and nvidia-smi's own name are told."""
    processes = [
        Process("a", 0, "u0", 1, None, None, None, None),
        Process("a", 0, "u0", 2, "bob", "/usr/bin/python3", "train.py", 2048, NOW, "slurm-1"),
        Process("a", 0, "u0", 3, "eva", "/opt/train", "train", 4096, NOW - timedelta(hours=1)),
    ]
    rows = sheet(Gpu("a", 0, "u0"), processes=processes).gpus[0].processes
    assert [row.pid for row in rows] == [3, 2, 1]
    assert [row.user for row in rows] == ["eva", "bob", "owner hidden"]
    assert [row.program for row in rows] == ["train", "train.py (/usr/bin/python3)", ""]
    assert [row.memory for row in rows] == ["4\u202fGB", "2\u202fGB", "–"]  # noqa: RUF001
    assert [row.container for row in rows] == ["", "slurm-1", ""]


def test_a_process_on_no_gpu_that_is_known_is_not_lost():
    """It has a list of its own."""
    stray = Process("a", None, "GPU-gone", 7, "eva", "x", None, 10)
    page = sheet(Gpu("a", 0, "u0"), processes=[stray])
    assert [row.pid for row in page.strays] == [7]
    assert page.gpus[0].processes == []


def test_two_gpus_of_one_index_have_places_of_their_own():
    """A driver that has lost cards can number two alike."""
    gpus = [Gpu("a", index) for index in (0, 1, 0, 0)]
    assert gpu_places(gpus) == ["gpu0", "gpu1", "gpu0_2", "gpu0_3"]


def test_file_names_are_plain_short_and_never_shared():
    """Whatever the hosts are called; a file system that ignores case has them apart, too."""
    names = file_names(["a/../b", "..", "GPU1", "gpu1", "x" * 300, "x" * 301, "ä:1"])
    assert names["a/../b"] == "a_.._b"
    assert names[".."] == "__"
    assert names["ä:1"] == "__1"
    assert (names["GPU1"], names["gpu1"]) == ("GPU1", "gpu1_2")
    assert len(set(names.values())) == len(names)
    assert max(map(len, names.values())) < 210
