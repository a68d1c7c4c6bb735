"""A claim lasts as long as the command that it was made for, and its children, however they end."""

from __future__ import annotations

import os
import signal
import sys

import pytest
from desk import eventually
from servers import processes
from servers.command import WEBMON
from servers.states import gpu, healthy, process, uuid


@pytest.mark.parametrize("end", [None, signal.SIGTERM, signal.SIGKILL])
def test_a_claim_ends_with_its_command(machine, end):
    """By itself or by a signal; nothing has to be tidied up."""
    desk = machine(2)
    holder = desk.hold("-d", "1")
    assert holder.gpus == [1]
    assert desk.available() == [0]
    if end is None:
        assert holder.end() == 0
    else:
        holder.signal(end)
        assert holder.result()[0] == -end
    assert desk.available() == [0, 1]


def test_a_claimed_gpu_is_not_free_for_anybody(machine):
    """Not for `available`, `select` or `wait`; not even for a wish that takes anything."""
    desk = machine(2)
    holder = desk.hold("--count", "2")
    assert holder.gpus == [0, 1]
    assert desk.available() == []
    anything = ("-u", "100", "-m", "100", "-p", "99")
    for command in (("select",), ("select", *anything), ("select", "-d", "0"), ("select", "--no-claim")):
        done = desk.webmon(*command)
        assert (done.returncode, done.stdout) == (1, ""), command
        assert done.stderr == "webmon: Requested 1 GPUs, but 0 matched filters\n"
    done = desk.webmon("wait", "--timeout", "0.1", *anything)
    assert (done.returncode, done.stdout) == (124, "")
    assert desk.webmon("available", "--max-used-percent", "100").stdout.strip() == ""


def test_a_claimed_gpu_is_listed_as_in_use(machine):
    """With who has claimed it, since when, the pid, and what runs."""
    desk = machine(2)
    holder = desk.hold("-d", "0")
    eventually(lambda: desk.run(["cat", f"/proc/{holder.pid}/comm"]).stdout == "cat\n")
    header, first, second = desk.webmon("list").stdout.splitlines()
    user = desk.run(["id", "-un"]).stdout.strip()
    assert first.endswith("claimed, cat")
    assert first.split()[2] == "[~]"
    assert {user, str(holder.pid), "ago"} <= set(first.split())
    assert "[ ]" in second
    assert len(header) < len(first)


def test_select_without_a_command_claims_nothing_for_long(machine):
    """It only prints ids, and the claim ends with it."""
    desk = machine(1)
    for _ in range(3):
        done = desk.webmon("select")
        assert (done.returncode, done.stdout, done.stderr) == (0, "0\n", "")


def test_no_claim_leaves_the_gpu_to_others(machine):
    """Nothing is written, and the next one may get the same GPU."""
    desk = machine(1)
    first, second = desk.hold("--no-claim"), desk.hold("--no-claim")
    assert first.gpus == second.gpus == [0]
    assert os.listdir(desk.claims) == []
    assert desk.hold().gpus == [0]


def test_the_children_of_the_command_hold_the_claim_too(machine):
    """A training that outlives the script which started it still has its GPU."""
    desk = machine(1)
    script = "sleep 600 >/dev/null 2>&1 & echo $!"
    child = int(desk.webmon("select", "--", "sh", "-c", script).stdout)
    assert processes.alive(child)
    assert desk.webmon("select").returncode == 1
    processes.kill(child)
    assert eventually(lambda: desk.webmon("select").stdout == "0\n")


def test_a_command_that_is_stopped_keeps_its_claim(machine):
    """Ctrl-Z is no end."""
    desk = machine(1)
    holder = desk.hold()
    holder.signal(signal.SIGSTOP)
    assert desk.available() == []
    assert desk.webmon("select").returncode == 1
    holder.signal(signal.SIGCONT)
    assert holder.end() == 0
    assert desk.available() == [0]


def test_a_claim_is_a_process_on_the_gpu_as_soon_as_there_is_a_real_one(machine):
    """Then nvidia-smi tells of it, and it is listed once."""
    desk = machine(1)
    holder = desk.hold()
    desk.state["processes"] = [process(0, holder.pid, "python", "900")]
    desk.state["gpus"] = [gpu(0, utilization__gpu="80", memory__used="904")]
    desk.save()
    (_, row) = desk.webmon("list").stdout.splitlines()
    assert "claimed" not in row
    assert row.split().count(str(holder.pid)) == 1
    # It is not shared either: the claim is not in the list, but is still held.
    assert desk.webmon("select", "-u", "100", "-p", "5").returncode == 1
    assert desk.webmon("select", "-u", "100", "-p", "5", "--no-claim").stdout == "0\n"


def test_a_command_within_the_command_gets_another_gpu(machine):
    """It is another process, with needs of its own."""
    desk = machine(2)
    script = 'echo "$CUDA_VISIBLE_DEVICES"; webmon select; webmon select --count 2'
    done = desk.webmon("select", "-d", "0", "--", "sh", "-c", script)
    assert done.stdout == "0\n1\n"
    assert done.stderr == "webmon: Requested 2 GPUs, but 1 matched filters\n"


def test_the_same_process_may_pick_its_own_gpu_again(machine):
    """`webmon select -- python train.py`, where train.py calls gpuselect(): it keeps what it has."""
    desk = machine(3)
    desk.state["gpus"][2]["utilization.gpu"] = "90"
    desk.state["gpus"][2]["memory.used"] = "9000"
    desk.save()
    pick = "from webmon import gpuselect; print(gpuselect(count=2), gpuselect(devices=0), gpuselect())"
    done = desk.webmon("select", "-d", "0", "--", sys.executable, "-W", "error", "-c", pick)
    assert done.returncode == 0, done.stderr
    both, own, any_ = done.stdout.split()
    assert (both, own) == ("0,1", "0")
    assert any_ in ("0", "1")


def test_a_command_that_execs_webmon_again_keeps_its_claim(machine):
    """The process is the same, so its GPU is its own."""
    desk = machine(1)
    done = desk.run(
        "exec webmon select -- sh -c 'exec webmon select -- sh -c \"webmon select || echo kept\"'"
    )
    assert (done.returncode, done.stdout) == (0, "kept\n")


def test_a_claim_by_the_python_api_lasts_until_it_is_released(machine):
    """In a `with` block, by `release`, or by the end of the process."""
    desk = machine(2)
    program = """
import subprocess, webmon
def free(): return subprocess.run(["webmon", "available"], capture_output=True, text=True).stdout.strip()
with webmon.select(devices=(1,)) as selection:
    print(selection.ids, selection.uuids, free())
print(free())
kept = webmon.select(2)
print(free() or "none")
kept.release()
kept.release()
print(free())
print(webmon.gpuselect(devices=0), free())
print(webmon.gpuselect(devices=1), free())
"""
    done = desk.run([sys.executable, "-W", "error", "-c", program])
    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"1 {uuid(1)} 0", "0,1", "none", "0,1", "0 1", "1 0"]
    assert desk.available() == [0, 1]


def test_a_failed_pick_gives_back_what_it_had_got(machine):
    """Of three that are wanted, two are free: they are free afterwards, for the process itself too."""
    desk = machine(3)
    desk.hold("-d", "2")
    program = """
import webmon
try:
    webmon.select(3)
except webmon.errors.NotEnough as error:
    print(error)
print(webmon.select(2).ids)
"""
    done = desk.run([sys.executable, "-W", "error", "-c", "import webmon.errors" + program])
    assert done.stdout == "Requested 3 GPUs, but 2 matched filters\n0,1\n", done.stderr


def test_a_gpu_that_somebody_uses_without_a_claim_is_not_picked(machine):
    """Claims are for what is between picking and using; nobody has to use webmon."""
    state = healthy(2) | {"gpus": [gpu(0, utilization__gpu="70", memory__used="9000"), gpu(1)]}
    desk = machine(state | {"processes": [process(0, os.getpid())]})
    assert [desk.hold().gpus, desk.available()] == [[1], []]
    assert desk.run([*WEBMON, "select"]).returncode == 1


def test_what_a_child_still_has_open_is_free_once_it_is_released(machine):
    """Workers that were forked while it was claimed keep nobody from it; nor is it given without a lock."""
    desk = machine(1)
    script = """
import os, subprocess, time, webmon
def left():
    return subprocess.run(["webmon", "available"], capture_output=True, text=True).stdout.strip()
first = webmon.select()
read, write = os.pipe()
if os.fork() == 0:
    os.close(write)
    os.read(read, 1)
    os._exit(0)
first.release()
print(left())
again = webmon.select()
print(repr(left()))
os.write(write, b"x")
os.wait()
print(repr(left()))
"""
    done = desk.run([sys.executable, "-c", script])
    assert (done.stdout, done.stderr) == ("0\n''\n''\n", "")


def test_a_wish_that_is_no_wish_claims_nothing(machine):
    """`count=n / 2` is a float."""
    desk = machine(2)
    script = """
import subprocess, webmon
for wish in ({"count": 2.0}, {"count": "2"}, {"count": True}, {"name": 3}, {"util": "x"}, {"devices": ["0"]}):
    for pick in (webmon.select, webmon.gpuselect):
        try:
            pick(**wish)
        except webmon.errors.WishError as error:
            pass
try:
    webmon.select(sort="best")
except webmon.errors.WishError as error:
    print(error)
print(webmon.select(devices=1).ids)
print(subprocess.run(["webmon", "available"], capture_output=True, text=True).stdout.strip())
"""
    done = desk.run([sys.executable, "-c", "import webmon.errors\n" + script])
    assert done.stderr == ""
    assert done.stdout == "'best' is no order. It can be: index, free-memory, power, name, random\n1\n0\n"
