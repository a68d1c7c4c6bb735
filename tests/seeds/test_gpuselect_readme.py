"""The examples of gpuselect's README, one by one, with the command's name and the import changed."""

from __future__ import annotations

import ast
import os

import pytest
from servers.states import gpu, healthy, process
from typed import python, shell

from webmon import gpuselect
from webmon.errors import WishError

TELL = """
import os
print(os.environ.get("CUDA_VISIBLE_DEVICES"), os.environ.get("CUDA_DEVICE_ORDER"))
"""

FOO = """#!/bin/sh
echo "$CUDA_VISIBLE_DEVICES" "$CUDA_DEVICE_ORDER" "$@"
"""


def cards(*changes, processes=()):
    """Return the state of a machine with one card for each of these changes to an idle one."""
    return {"gpus": [gpu(index, **change) for index, change in enumerate(changes)], "processes": processes}


def on(index, count):
    """Return so many processes on a card; nothing else is known of them."""
    return [process(index, 3_900_000 + 10 * index + number) for number in range(count)]


MIXED = [{"name": "NVIDIA RTX A6000"}, {"name": "NVIDIA GeForce RTX 3090"}] * 2


def test_two_lines_in_a_script(machine):
    """`from gpuselect import gpuselect; gpuselect()` sets the variable, and the order it counts in."""
    here = machine(healthy(1))
    assert python(here, "from webmon import gpuselect\ngpuselect()\n" + TELL).stdout == "0 PCI_BUS_ID\n"


def test_the_new_value_is_returned(machine):
    """The method also returns it: a text."""
    here = machine(healthy(1))
    script = "from webmon import gpuselect\nimport os\nvalue = gpuselect()\n"
    assert python(here, script + "print([value, os.environ['CUDA_VISIBLE_DEVICES']])").stdout == (
        "['0', '0']\n"
    )


@pytest.mark.parametrize(
    ("reading", "value"), [("utilization__gpu", "1"), ("utilization__memory", "1"), ("memory__used", "20000")]
)
def test_by_default_a_gpu_that_does_anything_is_left_out(machine, reading, value):
    """No utilization, no memory utilization; nor one whose memory is held, which gpuselect would give."""
    here = machine(cards({reading: value}, {}))
    script = "from webmon import gpuselect\nprint(gpuselect())\n"
    assert python(here, script).stdout == "1\n"


def test_by_default_a_gpu_with_a_process_is_left_out(machine):
    """Whatever the process does."""
    here = machine(cards({}, {}, processes=on(0, 1)))
    assert python(here, "from webmon import gpuselect\nprint(gpuselect())").stdout == "1\n"


def test_the_choice_is_random_among_the_idle(machine):
    """Each of them comes up, and none that is busy; to miss one in 25 times is 1 in 16,000,000."""
    here = machine(cards({}, {"utilization__gpu": "50"}, {}))
    script = "from webmon import gpuselect\nprint({gpuselect(claim=False) for _ in range(25)})"
    assert ast.literal_eval(python(here, script).stdout) == {"0", "2"}


def test_a_part_of_the_name(machine):
    """`gpuselect(name="A6000")`, and two of them."""
    here = machine(cards(*MIXED))
    script = "from webmon import gpuselect\nprint(gpuselect({}))"
    assert python(here, script.format('name="A6000"')).stdout in ("0\n", "2\n")
    assert python(here, script.format('count=2, name="A6000"')).stdout == "0,2\n"
    assert python(here, script.format('name="NVIDIA GeForce RTX 3090"')).stdout in ("1\n", "3\n")


def test_relaxed_thresholds(machine):
    """`gpuselect(util=10, processes=1)`: up to 10 %, and up to one other process."""
    here = machine(cards({"utilization__gpu": "10"}, processes=on(0, 1)))
    script = "from webmon import gpuselect\nprint(gpuselect(util=10, processes=1))"
    assert python(here, script).stdout == "0\n"


@pytest.mark.parametrize(
    ("threshold", "reading"), [("util", "utilization__gpu"), ("mem_util", "utilization__memory")]
)
@pytest.mark.parametrize(("value", "given"), [("9", "0"), ("10", "0"), ("11", "")])
def test_thresholds_are_inclusive(machine, threshold, reading, value, given):
    """A card with just so much is taken."""
    here = machine(cards({reading: value}))
    script = f"from webmon import gpuselect\nprint(gpuselect({threshold}=10, silent=True))"
    assert python(here, script).stdout == f"{given}\n"


@pytest.mark.parametrize(("count", "given"), [(1, "0"), (2, "0"), (3, "")])
def test_the_number_of_processes_is_inclusive(machine, count, given):
    """So many, and no more."""
    here = machine(cards({}, processes=on(0, count)))
    script = "from webmon import gpuselect\nprint(gpuselect(processes=2, silent=True))"
    assert python(here, script).stdout == f"{given}\n"


def test_devices(machine):
    """`devices=0`, `devices=[0, 1]`: the usual filters still apply."""
    here = machine(cards({}, {}, {"utilization__gpu": "50"}))
    script = "from webmon import gpuselect\nprint(gpuselect({}))"
    assert python(here, script.format("devices=0")).stdout == "0\n"
    assert python(here, script.format("devices=[0, 1]")).stdout == "0,1\n"
    assert python(here, script.format("devices=(1,)")).stdout == "1\n"
    for busy in ("2", "[1, 2]"):
        assert python(here, script.format(f"devices={busy}, silent=True")).stdout == "\n"


CUSTOM = """
from webmon import gpuselect, GpuInfo

def custom_select(gpu: GpuInfo) -> bool:
    # match any device with "3090" in the name and <= 5% utilization
    return "3090" in gpu.name and gpu.util <= 5

"""


def test_a_custom_selection(machine):
    """The README's function: a 3090 with at most 5 %."""
    here = machine(
        cards(
            {}, {"name": "RTX 3090", "utilization__gpu": "6"}, {"name": "RTX 3090", "utilization__gpu": "5"}
        )
    )
    assert python(here, CUSTOM + "print(gpuselect(selector=custom_select))").stdout == "2\n"


@pytest.mark.parametrize("others", ["name='H100'", "devices=0", "util=0, mem_util=0, processes=0"])
def test_a_custom_selection_overrides_all_other_filters(machine, others):
    """A busy card is given to who says that it will do."""
    busy = {"name": "RTX 3090", "utilization__gpu": "99", "utilization__memory": "99", "memory__used": "9999"}
    here = machine(cards({}, busy, processes=on(1, 3)))
    script = f"from webmon import gpuselect\nprint(gpuselect({others}, selector=lambda gpu: gpu.device == 1))"
    assert python(here, script).stdout == "1\n"


def test_a_custom_selection_does_not_override_the_count(machine):
    """Two of those that it takes; too few are too few."""
    here = machine(cards(*MIXED))
    script = CUSTOM + "print(gpuselect(count=2, selector=custom_select))"
    assert python(here, script).stdout == "1,3\n"
    assert (
        "Requested 3 GPUs, but 2 matched filters"
        in python(here, script.replace("count=2", "count=3"), fails=True).stderr
    )


def test_what_a_selector_is_told(machine):
    """device, name, util, mem_util, processes: numbers, and a text."""
    changes = {"name": "Quadro P400", "utilization__gpu": "12", "utilization__memory": "3"}
    here = machine(cards({}, changes, processes=on(1, 2)))
    script = """
from webmon import gpuselect, GpuInfo
seen = []
gpuselect(selector=lambda gpu: not seen.append(gpu))
for gpu in seen:
    assert isinstance(gpu, GpuInfo)
    print(gpu.device, repr(gpu.name), gpu.util, gpu.mem_util, gpu.processes)
"""
    assert python(here, script).stdout.splitlines() == [
        "0 'NVIDIA RTX A6000' 0 0 0",
        "1 'Quadro P400' 12 3 2",
    ]


def test_too_few_are_an_exception(machine):
    """The README's `try`: the message says how many were wanted, and how many there were."""
    here = machine(healthy(3))
    script = """
from webmon import gpuselect
try:
    gpuselect(count=4)
except Exception as e:
    print(f"Failed to select GPUs: {e}")

if gpuselect(count=4, silent=True) == "":
    print(f"Failed to select GPUs")
"""
    first, second = python(here, script + TELL).stdout.splitlines()[:2]
    assert first.startswith("Failed to select GPUs: Requested 4 GPUs, but 3 matched filters")
    assert second == "Failed to select GPUs"


def test_too_few_idle_ones_are_an_exception_too(machine):
    """Just as the README has it: there are enough of them, and one is busy."""
    here = machine(cards({}, {"utilization__gpu": "50"}))
    script = "from webmon import gpuselect\ntry: gpuselect(count=2)\nexcept Exception as e: print(e)"
    assert python(here, script + TELL).stdout == "Requested 2 GPUs, but 1 matched filters\nNone None\n"


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"count": 0}, "can't be picked"),
        ({"count": -1}, "can't be picked"),
        ({"devices": 0, "name": "A6000"}, "Use only one of 'devices' and 'name'"),
        ({"util": -1}, "0 or more"),
        ({"mem_util": -1}, "0 or more"),
        ({"processes": -1}, "0 or more"),
        ({"devices": 7}, "Invalid device ID 7"),
        ({"devices": [0, -1]}, "0 or more"),
    ],
)
def test_wrong_arguments_are_errors(inside, wrong, text):
    """Also with `silent`, which is about too few GPUs, and no more; nothing is set."""
    inside(healthy(2))
    for silent in (False, True):
        with pytest.raises(WishError, match=text):
            gpuselect(**wrong, silent=silent)
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


def test_debug_logging(machine):
    """The README's three lines: what was looked for, what was found, and what came of it."""
    here = machine(cards({}, {"utilization__gpu": "50"}))
    script = """
import logging
from webmon import gpuselect
logging.getLogger("gpuselect").setLevel(logging.DEBUG)
gpuselect()
"""
    done = python(here, script)
    assert done.stdout == ""
    assert "count=1" in done.stderr
    assert "device=0" in done.stderr
    assert "util=50" in done.stderr
    assert done.stderr.endswith("CUDA_VISIBLE_DEVICES=0\n")


def test_without_debug_logging_nothing_is_said(machine):
    """Nor is a message said twice where the program logs in its own way."""
    here = machine(healthy(1))
    script = "from webmon import gpuselect\ngpuselect()"
    assert python(here, script).stderr == ""
    own = "import logging\nlogging.basicConfig(level=logging.DEBUG, format='own %(message)s')\n"
    lines = python(here, own + script).stderr.splitlines()
    assert len(lines) == len(set(lines)) > 1
    assert all(line.startswith("own ") for line in lines)


STATUS_KEYS = [
    "device", "name", "utilization", "mem_utilization", "processes", "performance_state", "power_usage",
    "temperature",
]  # fmt: skip


def test_the_state_of_gpus(machine):
    """A dict each, with the README's keys; power in milliwatts."""
    changes = {"utilization__gpu": "12", "utilization__memory": "3", "pstate": "P2", "power__draw": "123.45"}
    here = machine(cards({}, changes | {"temperature__gpu": "61"}, processes=on(1, 2)))
    script = "from webmon import gpustatus\nprint(gpustatus())"
    idle, busy = ast.literal_eval(python(here, script).stdout)
    assert list(idle) == list(busy) == STATUS_KEYS
    assert list(idle.values()) == [0, "NVIDIA RTX A6000", 0, 0, 0, 8, 21530, 31]
    assert list(busy.values()) == [1, "NVIDIA RTX A6000", 12, 3, 2, 2, 123450, 61]
    assert all(type(value) is (str if key == "name" else int) for key, value in busy.items())


@pytest.mark.parametrize("number", [0, 8, 15])
def test_performance_states(machine, number):
    """From 0, the fastest, to 15."""
    here = machine(cards({"pstate": f"P{number}"}))
    script = "from webmon import gpustatus\nprint(gpustatus()[0]['performance_state'])"
    assert python(here, script).stdout == f"{number}\n"


def test_the_state_of_the_visible_gpus_or_of_all(machine):
    """`gpustatus()` respects CUDA_VISIBLE_DEVICES, `gpustatus(only_cvd=False)` does not."""
    here = machine(healthy(4))
    script = """
from webmon import gpustatus
# respect CUDA_VISIBLE_DEVICES
gpu_info = gpustatus()

# use all GPUs accessible
all_gpu_info = gpustatus(only_cvd=False)
print([gpu["device"] for gpu in gpu_info], [gpu["device"] for gpu in all_gpu_info])
"""
    assert python(here, script, env={"CUDA_VISIBLE_DEVICES": "2,0"}).stdout == "[0, 2] [0, 1, 2, 3]\n"


def test_the_state_of_the_gpus_just_selected(machine):
    """Both functions go together."""
    here = machine(healthy(3))
    script = """
from webmon import gpuselect, gpustatus
chosen = gpuselect(2)
print(chosen == ",".join(str(gpu["device"]) for gpu in gpustatus()))
"""
    assert python(here, script).stdout == "True\n"


def test_the_command_prints_the_ids(machine):
    """`gpuselect --count 1 --name 3090`; no command can change its shell's variable, but the shell can."""
    here = machine(cards(*MIXED[:2]))
    assert shell(here, "webmon select --count 1 --name 3090") == "1\n"
    line = "export CUDA_VISIBLE_DEVICES=$(webmon select --count 1 --name 3090)"
    assert shell(here, f"{line}; sh -c 'echo $CUDA_VISIBLE_DEVICES'") == "1\n"
    assert shell(here, "webmon select --quiet") == ""


@pytest.mark.parametrize(
    ("line", "printed"),
    [
        ("webmon select -- ./foo my_script.py arg1 arg2", "2 PCI_BUS_ID my_script.py arg1 arg2\n"),
        ("webmon select -- ./foo foo.py", "2 PCI_BUS_ID foo.py\n"),
        ("webmon select --count 2 -- ./foo foo.py", "2,3 PCI_BUS_ID foo.py\n"),
        ("webmon select --name A6000 -- ./foo foo.py", "2 PCI_BUS_ID foo.py\n"),
        ("webmon select --util 5 --mem_util 10 --devices 0 -- ./foo foo.py", "0 PCI_BUS_ID foo.py\n"),
        ("webmon select -u 5 -m 10 -p 1 -d 0 -- ./foo foo.py", "0 PCI_BUS_ID foo.py\n"),
        (
            "webmon select -- ./foo 'two words' -- --count '*' \\$HOME",
            "2 PCI_BUS_ID two words -- --count * $HOME\n",
        ),
    ],
)
def test_the_command_wraps_another(machine, tmp_path, line, printed):
    """It runs with the variable set, in the same environment, and with just these arguments."""
    a6000, other = MIXED[:2]
    busy = {"utilization__gpu": "5", "utilization__memory": "10"}
    here = machine(cards(other | busy, a6000 | {"utilization__gpu": "90"}, a6000, other))
    if "--count" not in line.split(" -- ")[0]:
        here.state["gpus"][3]["utilization.gpu"] = "90"
        here.save()
    (tmp_path / "foo").write_text(FOO)
    (tmp_path / "foo").chmod(0o755)
    assert shell(here, line) == printed


def test_a_wrapped_python_script(machine, tmp_path):
    """`gpuselect -- python3 my_script.py arg1 arg2`, and its exit code is not lost."""
    here = machine(healthy(1))
    (tmp_path / "my_script.py").write_text(
        "import os, sys\nprint(os.environ['CUDA_VISIBLE_DEVICES'], sys.argv[1:])\nsys.exit(7)\n"
    )
    done = here.run("webmon select -- python3 my_script.py arg1 arg2")
    assert (done.returncode, done.stdout, done.stderr) == (7, "0 ['arg1', 'arg2']\n", "")


def test_a_docker_container(machine, tmp_path):
    """The README's line, quotes and all: docker wants them around `device=0,2`."""
    rtx, a6000 = {"name": "NVIDIA GeForce RTX 3090"}, {"name": "NVIDIA RTX A6000"}
    here = machine(cards(rtx, a6000, rtx))
    here.program("docker", f'printf "%s\\n" "$@" >{tmp_path}/asked')
    line = (
        r"docker run --gpus \"device=$(webmon select --count 2 --name 3090)\" "
        "--rm -it gpu_container nvidia-smi"
    )
    assert shell(here, line) == ""
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked == ["run", "--gpus", '"device=0,2"', "--rm", "-it", "gpu_container", "nvidia-smi"]


def test_too_few_gpus_start_no_command(machine, tmp_path):
    """One line, and exit code 1; gpuselect shows a traceback."""
    here = machine(healthy(1))
    done = here.run(["webmon", "select", "--count", "2", "--", "touch", str(tmp_path / "started")])
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("webmon: Requested 2 GPUs, but 1 matched filters")
    assert not os.path.exists(tmp_path / "started")
