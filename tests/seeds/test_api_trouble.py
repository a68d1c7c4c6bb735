"""Sick GPUs crash nothing and are never given; without nvidia-smi there is one clear exception."""

from __future__ import annotations

import ast

import pytest
from servers.states import HANGS, NO_DRIVER, gpu, healthy, process
from typed import python

import webmon
from webmon.errors import HostError

# Calls each function, and says what it raises in place of a result.
TOLD = """
from webmon import *
from webmon.errors import HostError
for call in (gpu_info, available_gpus, gpuselect, lambda: gpuselect(silent=True), gpustatus, select):
    try:
        call()
    except HostError as error:
        print(error)
"""

# A card that answers with nothing but its name, and one that has fallen off the bus.
SILENT = {"index": "1", "uuid": gpu(1)["uuid"], "name": "Tesla K20"}
LOST = dict.fromkeys(gpu(0), "[GPU is lost]") | {"index": "2"}


@pytest.fixture
def sick(machine):
    """One healthy card, one that says [N/A] to everything, one that is lost."""
    return machine({"gpus": [gpu(0), SILENT, LOST], "processes": []})


def test_the_healthy_gpu_is_given(sick):
    """By each of the functions that pick, whatever the others say."""
    script = "import webmon\nprint(webmon.available_gpus(), webmon.available_gpus(100), webmon.gpuselect())"
    assert python(sick, script).stdout == "['0'] ['0'] 0\n"


@pytest.mark.parametrize(
    "wish", ["count=2", "devices=1", "devices=2", "util=100, mem_util=100, processes=99, count=2"]
)
def test_a_sick_gpu_is_never_given(sick, wish):
    """What is not known is no zero."""
    script = f"from webmon import gpuselect\nprint(repr(gpuselect({wish}, silent=True)))"
    assert python(sick, script).stdout == "''\n"


def test_a_selector_is_not_asked_about_a_faulty_gpu(sick):
    """It can't be given anyway. About one that says little, it is told that it is busy."""
    script = """
from webmon import gpuselect
gpuselect(selector=lambda gpu: print(gpu.device, gpu.util, gpu.mem_util, gpu.mem_total) or gpu.device == 0)
"""
    seen = python(sick, script).stdout.splitlines()
    assert "0 0 0 51527024640" in seen
    assert not [line for line in seen if line.startswith("2")]
    assert all(line == "1 100 100 0" for line in seen if line.startswith("1"))


def test_what_a_gpu_does_not_say_is_none(sick):
    """In gpu_info and in gpustatus: the keys are there."""
    script = "import webmon\nprint([webmon.gpu_info(), webmon.gpustatus()])"
    info, status = ast.literal_eval(python(sick, script).stdout)
    assert info[1] == {
        "index": "1", "type": "Tesla K20", "uuid": SILENT["uuid"],
        "mem_used": None, "mem_total": None, "mem_used_percent": None,
    }  # fmt: skip
    assert [key for key, value in status[1].items() if value is None] == [
        "utilization", "mem_utilization", *(["processes"] if status[1]["processes"] is None else []),
        "performance_state", "power_usage", "temperature",
    ]  # fmt: skip
    assert (len(info), len(status)) == (3, 3)
    assert status[2]["processes"] is None


def test_without_memory_utilization_the_rest_decides(machine):
    """Many a card doesn't report it; it does nothing, and is given."""
    here = machine({"gpus": [gpu(0, utilization__memory="[N/A]")], "processes": []})
    assert python(here, "from webmon import gpuselect\nprint(gpuselect())").stdout == "0\n"


def test_if_processes_are_not_known_nothing_is_given(machine):
    """Unknown is not idle; nor do gpustatus and gpu_info fail."""
    failure = {"text": "Insufficient Permissions", "exit": 4}
    here = machine(healthy(1) | {"process_failure": failure})
    script = """
import webmon
print(webmon.available_gpus(), repr(webmon.gpuselect(silent=True)), webmon.gpustatus()[0]["processes"])
print(webmon.gpu_info()[0]["index"])
"""
    assert python(here, script).stdout == "[] '' None\n0\n"


def test_a_process_without_an_owner_counts(machine):
    """It is in a container, or another user's."""
    here = machine(healthy(1) | {"processes": [process(0, 3_900_000)]})
    script = "import webmon\nprint(webmon.available_gpus(), webmon.gpustatus()[0]['processes'])"
    assert python(here, script).stdout == "[] 1\n"


def test_no_nvidia_smi_is_one_clear_exception(machine):
    """A HostError from each of the functions, in one line: what is missing, and what to do."""
    here = machine(healthy(1))
    (here.bin / "nvidia-smi").unlink()
    said = python(here, TOLD).stdout.splitlines()
    assert len(said) == 6
    assert all("nvidia-smi" in line for line in said)


def test_no_driver_is_one_clear_exception(machine):
    """What nvidia-smi says of it is in the message."""
    said = python(machine(NO_DRIVER), TOLD).stdout.splitlines()
    assert len(said) == 6
    assert all("driver" in line for line in said)


def test_a_driver_that_hangs_ends_in_time(inside, tmp_path):
    """With the configured deadline, as everywhere."""
    (tmp_path / "config.ini").write_text("[common]\nhosts = self\nuser = me\ntimeout = 3\n")
    inside(HANGS)
    with pytest.raises(HostError, match="nvidia-smi"):
        webmon.gpu_info()


def test_a_machine_without_gpus_has_none(machine):
    """nvidia-smi is there, and says so."""
    here = machine({"failure": {"text": "No devices were found", "exit": 6}})
    script = """
import webmon
for call in (webmon.gpu_info, webmon.available_gpus, webmon.gpustatus, webmon.gpuselect):
    try:
        print(call())
    except Exception as error:
        print(type(error).__name__)
"""
    said = python(here, script).stdout.split()
    assert len(said) == 4
    assert set(said) <= {"[]", "HostError", "NeverEnough"}


def test_a_configuration_says_what_is_free(machine, tmp_path):
    """`[free]` counts in Python as it does on the page."""
    (tmp_path / "config.ini").write_text("[common]\nhosts = self\nuser = me\n[free]\nmax_memory_pct = 50\n")
    here = machine({"gpus": [gpu(0, memory__used="20000")], "processes": []})
    script = "from webmon import gpuselect\nprint(repr(gpuselect(silent=True)))"
    assert python(here, script, cwd=tmp_path / "bin").stdout == "''\n"
    assert python(here, script, env={"WEBMON_CONFIG": str(tmp_path / "config.ini")}).stdout == "'0'\n"
