"""The examples of nvgpu's README, one by one, with the command's name and the import changed.

Its web application is webmon's site: tests/integration and tests/site are about that.
"""

from __future__ import annotations

import json
import os
import pwd
import shlex
import sys
from pathlib import Path

import pytest
from servers.states import gpu, healthy, process, uuid
from typed import python, rows, shell

import webmon as package

PS = Path(package.__file__).parent / "demo" / "ps.py"
ME = pwd.getpwuid(os.getuid()).pw_name

# Memory as the README's three cards have it, and the share of it that nvgpu works out.
README_MEMORY = [
    (7881, 8119, 97.06860450794433),
    (10795, 11178, 96.57362676686348),
    (10789, 11178, 96.51994990159241),
]

# index, status, type, util., temp., MHz, user, seconds since, since, pid, command, cmd
README_TABLE = [
    (0, "[ ]", "GeForce GTX 1070", 0, 44, 139, "", 0, "", "", "", ""),
    (1, "[~]", "GeForce GTX 1080 Ti", 0, 44, 139, "alice", 190_000, "2 days ago", "19028",
     "/opt/conda/bin/python -m ipykernel_launcher -f /home/alice/kernel-1.json", "jupyter"),
    (2, "[~]", "GeForce GTX 1080 Ti", 0, 44, 139, "bob", 52_000, "14 hours ago", "8479",
     "/usr/bin/python3 -m ipykernel_launcher -f /home/bob/kernel-2.json", "jupyter"),
    (3, "[~]", "GeForce GTX 1070", 46, 54, 1506, "bob", 7 * 86_400, "7 days ago", "20883",
     "python train.py --lr 0.1", "train.py"),
    (4, "[~]", "GeForce GTX 1070", 35, 64, 1480, "bob", 7 * 86_400, "7 days ago", "26228",
     "python3 -u /home/bob/evaluate.py", "evaluate.py"),
    (5, "[!]", "GeForce GTX 1080 Ti", 0, 44, 139, "?", 0, "", "9305", "", "python"),
    (6, "[ ]", "GeForce GTX 1080 Ti", 0, 44, 139, "", 0, "", "", "", ""),
]  # fmt: skip


@pytest.fixture
def three(machine):
    """Cards 0 and 2 are free; somebody holds memory of 1."""
    state = healthy(3)
    state["gpus"][1]["memory.used"] = "30000"
    return machine(state)


@pytest.fixture
def lab(machine):
    """The machine of the README's table."""
    state = {"gpus": [], "processes": [], "owners": []}
    for index, _, model, util, temp, mhz, user, age, _, pid, command, _ in README_TABLE:
        readings = {"utilization.gpu": util, "temperature.gpu": temp, "clocks.sm": mhz}
        state["gpus"].append(
            gpu(index, name=f"NVIDIA {model}") | {field: str(value) for field, value in readings.items()}
        )
        if pid:
            state["processes"].append(process(index, int(pid)))
        if command:
            state["owners"].append(
                {"pid": pid, "uid": "1001", "user": user, "etimes": str(age), "args": command}
            )
    here = machine(state)
    here.program("ps", f'exec {shlex.join([sys.executable, "-I", "-S", str(PS)])} "$@"')
    return here


def test_all_available_gpus_for_a_variable(three):
    """`CUDA_VISIBLE_DEVICES=$(nvgpu available)` grabs all of them."""
    line = 'CUDA_VISIBLE_DEVICES=$(webmon available); echo "$CUDA_VISIBLE_DEVICES"'
    assert shell(three, line) == "0,2\n"


def test_at_most_one_available_gpu(three):
    """`CUDA_VISIBLE_DEVICES=$(nvgpu available -l 1)` grabs one, if there is one."""
    line = 'CUDA_VISIBLE_DEVICES=$(webmon available -l 1); echo "$CUDA_VISIBLE_DEVICES"'
    assert shell(three, line) == "0\n"
    for card in three.state["gpus"]:
        card["memory.used"] = "30000"
    three.save()
    assert three.run(line).stdout == "\n"


def test_the_table_of_the_readme(lab):
    """Status, type, utilization, temperature, clock, users, since, pids, cmd: as there, and more."""
    listed = shell(lab, "webmon list")
    columns = ["status", "type", "util.", "temp.", "MHz", "users", "since", "pids", "cmd"]
    header = listed.splitlines()[0]
    assert [header.index(f" {name}") for name in columns] == sorted(header.index(f" {c}") for c in columns)
    for row, expected in zip(rows(listed), README_TABLE, strict=True):
        index, status, model, util, temp, mhz, user, _, since, pid, _, cmd = expected
        assert row["id"] == str(index)
        shown = [row[name] for name in columns]
        assert shown == [status, model, f"{util} %", f"{temp} C", str(mhz), user, since, pid, cmd]


def test_the_table_is_coloured_by_status(lab):
    """Green, blue and red, where somebody looks at it."""
    listed = shell(lab, "webmon list", env={"FORCE_COLOR": "1"}).splitlines()[1:]
    colours = {"[ ]": "\x1b[32m", "[~]": "\x1b[34m", "[!]": "\x1b[31m"}
    for line, (_, status, *_) in zip(listed, README_TABLE, strict=True):
        assert line.startswith(colours[status])
        assert line.endswith("\x1b[0m")
        assert status in line


def test_what_users_of_nvgpu_wished_for_is_in_the_table(lab):
    """Used and total memory, power, and the order by them."""
    lab.state["gpus"][6] |= {"memory.used": "2", "power.limit": "350.00"}
    lab.save()
    row = rows(shell(lab, "webmon list"))[6]
    assert (row["mem. used/total"], row["power"]) == ("2 /  49140 MiB", "22 / 350 W")
    for order in ("free-memory", "power"):
        assert rows(shell(lab, f"webmon list --sort {order}"))[0]["id"] == "6"


def test_the_shortcut(lab):
    """`nvl` is `webmon` alone."""
    assert shell(lab, "webmon") == shell(lab, "webmon list")


@pytest.mark.parametrize(
    ("script", "command", "cmd"),
    [
        ("train.py", ["{python}", "train.py", "--token", "hf_SECRET"], "train.py"),
        ("deep/train.py", ["{python}", "-u", "{folder}/deep/train.py"], "train.py"),
        ("ipykernel_launcher.py", ["{python}", "-m", "ipykernel_launcher", "-f", "k.json"], "jupyter"),
        ("torchrun", ["{python}", "{folder}/torchrun", "--nproc", "2", "train.py", "--lr", "1"], "train.py"),
        ("accelerate", ["{python}", "{folder}/accelerate", "launch", "train.py"], "train.py"),
        (None, ["sleep", "60"], "sleep"),
    ],
)
def test_processes_that_really_run(machine, running, tmp_path, script, command, cmd):
    """Their user, since when, their pid, and what they run: `jupyter`, the script, or the program."""
    if script:
        (tmp_path / script).parent.mkdir(exist_ok=True)
        (tmp_path / script).write_text("import time\ntime.sleep(60)\n")
    pid = running(*(word.format(python=sys.executable, folder=tmp_path) for word in command))
    here = machine(healthy(2) | {"processes": [process(1, pid, sys.executable)]})
    idle, busy = rows(shell(here, "webmon list"))
    assert [idle[name] for name in ("status", "users", "since", "pids", "cmd")] == ["[ ]", "", "", "", ""]
    assert [busy[name] for name in ("status", "users", "pids", "cmd")] == ["[~]", ME, str(pid), cmd]
    assert busy["since"].endswith(" s ago")


def test_a_user_of_two_processes_is_named_once(machine, running):
    """nvgpu repeats the name; the pids are all there, and what they run."""
    first, second = running("sleep", "60"), running(sys.executable, "-c", "import time; time.sleep(60)")
    here = machine(healthy(1) | {"processes": [process(0, first), process(0, second)]})
    (row,) = rows(shell(here, "webmon"))
    assert (row["users"], row["pids"]) == (ME, f"{first},{second}")
    assert row["cmd"].startswith("sleep, python")


def test_available_gpus_in_python(three):
    """`nvgpu.available_gpus()` gives texts."""
    script = "import webmon as nvgpu\nprint(nvgpu.available_gpus())"
    assert python(three, script).stdout == "['0', '2']\n"


@pytest.mark.parametrize(("percent", "ids"), [(None, ["0", "2"]), (5.0, ["0"]), (100, ["0", "1", "2"])])
def test_how_much_memory_may_be_used(machine, percent, ids):
    """At most 20 %, or what is asked for; a card with just that much is available."""
    cards = [
        gpu(index, memory__used=used, memory__total="1000") for index, used in enumerate(["50", "201", "200"])
    ]
    here = machine({"gpus": cards, "processes": []})
    script = f"import webmon as nvgpu\nprint(nvgpu.available_gpus({'' if percent is None else percent}))"
    assert python(here, script).stdout == f"{ids}\n"
    by_keyword = script.replace(f"({percent})", f"(max_used_percent={percent})")
    assert python(here, by_keyword).stdout == f"{ids}\n"


def test_gpu_info_in_python(machine):
    """The README's three cards, with its keys, its types, and its very numbers."""
    cards = [
        gpu(index, memory__used=str(used), memory__total=str(total), name=f"GeForce GTX {index}")
        for index, (used, total, _) in enumerate(README_MEMORY)
    ]
    here = machine({"gpus": cards, "processes": []})
    script = "import json, webmon as nvgpu\nprint(json.dumps(nvgpu.gpu_info()))"
    assert json.loads(python(here, script).stdout) == [
        {
            "index": str(index),
            "mem_total": total,
            "mem_used": used,
            "mem_used_percent": percent,
            "type": f"GeForce GTX {index}",
            "uuid": uuid(index),
        }
        for index, (used, total, percent) in enumerate(README_MEMORY)
    ]
