"""`webmon wait`: until enough GPUs are free, or too long."""

from __future__ import annotations

import os
import re
import signal
import sys

import pytest
from desk import eventually, on_a_terminal
from servers.command import WEBMON
from servers.states import gpu, healthy, process


def in_use(index):
    return gpu(index, utilization__gpu="90", memory__used="40000")


def test_a_gpu_that_is_free_is_given_at_once(machine):
    """As `select` would: the same output, nothing else, and no ticket is left."""
    desk = machine(2)
    done = desk.webmon("wait", "--count", "2", "--timeout", "0")
    assert (done.returncode, done.stdout, done.stderr) == (0, "0,1\n", "")
    assert desk.tickets() == []


def test_it_becomes_the_command_as_select_does(machine):
    """With the claim, the environment and the exit code."""
    script = 'echo "$CUDA_VISIBLE_DEVICES"; webmon select || exit 7'
    done = machine(1).webmon("wait", "--", "sh", "-c", script)
    assert (done.returncode, done.stdout) == (7, "0\n")
    assert done.stderr == "webmon: Requested 1 GPUs, but 0 matched filters\n"


def test_it_waits_until_a_claim_ends(machine):
    """Whoever holds the GPU does not know of it."""
    desk = machine(1)
    holder = desk.hold()
    waiter = desk.waiter()
    assert len(desk.tickets()) == 1
    assert not waiter.has_started()
    holder.end()
    assert waiter.wait().gpus == [0]
    assert desk.tickets() == []


def test_it_waits_until_a_gpu_is_idle(machine):
    """Nobody has claimed it, it is only in use."""
    desk = machine({"gpus": [in_use(0)], "processes": [process(0, os.getpid())]})
    waiter = desk.waiter()
    desk.state = healthy(1)
    desk.save()
    assert waiter.wait().gpus == [0]


def test_it_waits_until_all_that_are_wanted_are_free_at_once(machine):
    """None is taken before: it could not be used, and others could."""
    desk = machine(2)
    first, second = desk.hold("-d", "0"), desk.hold("-d", "1")
    waiter = desk.waiter("--count", "2")
    first.end()
    assert eventually(lambda: desk.available() == [0])
    assert not waiter.has_started()
    second.end()
    assert waiter.wait().gpus == [0, 1]


@pytest.mark.parametrize(("given", "said"), [("0", "0"), ("0.3s", "0.3")])
def test_it_gives_up_in_time(machine, given, said):
    """With the exit code of `timeout`, and one line that says what was missing."""
    desk = machine({"gpus": [in_use(0), gpu(1)], "processes": []})
    done = desk.webmon("wait", "--count", "2", "--timeout", given, "--every", "0.2", "--", "echo", "never")
    assert (done.returncode, done.stdout) == (124, "")
    assert done.stderr == f"webmon: waited {said} s in vain. Requested 2 GPUs, but 1 matched filters\n"
    assert desk.tickets() == []


@pytest.mark.parametrize(
    ("wish", "code"),
    [
        (("--count", "3"), 1),
        (("--name", "H100"), 1),
        (("--free-memory", "100G"), 1),
        (("-d", "5"), 2),
        (("-d", "0,1", "--count", "3"), 2),
        (("-d", "0", "-n", "A6000"), 2),
        (("--count", "0"), 2),
    ],
)
def test_what_can_never_be_is_not_waited_for(machine, wish, code):
    """Were every GPU idle, it would not do: it is said at once, and nobody is kept waiting behind it."""
    desk = machine({"gpus": [in_use(0), gpu(1)], "processes": []})
    done = desk.webmon("wait", *wish, timeout=30)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(("webmon: ", "webmon wait: "))
    assert desk.tickets() == []


def test_trouble_at_first_is_an_error(machine):
    """A machine without a driver will not get one while somebody waits."""
    desk = machine()
    desk.program("nvidia-smi", "echo 'NVIDIA-SMI has failed'; exit 9")
    done = desk.webmon("wait", timeout=30)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1


def test_trouble_later_on_is_waited_for(machine):
    """A driver that fails once in a while does not end a night of waiting."""
    desk = machine({"gpus": [in_use(0)], "processes": []})
    desk.count_calls()
    waiter = desk.waiter()
    eventually(lambda: desk.calls() > 4)  # it has looked, and tried, and tries again
    desk.state = {"failure": {"text": "NVIDIA-SMI has failed\n", "exit": 9}}
    desk.save()
    before = desk.calls()
    eventually(lambda: desk.calls() > before + 2)
    assert not waiter.has_ended()
    desk.state = healthy(1)
    desk.save()
    assert waiter.wait().gpus == [0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_leaves_no_ticket(machine, number):
    """It ends by that signal, without a word."""
    desk = machine({"gpus": [in_use(0)], "processes": []})
    waiter = desk.waiter()
    assert len(desk.tickets()) == 1
    waiter.signal(number)
    assert waiter.result() == (-number, "", "")
    assert desk.tickets() == []
    assert not [name for name in os.listdir(desk.claims) if "wait" in name]


def test_without_a_terminal_nothing_is_said_while_it_waits(machine):
    """Its output may be read by a script."""
    desk = machine(1)
    holder = desk.hold()
    process = desk.start("wait", "--every", "0.2")
    eventually(desk.tickets)
    holder.end()
    assert process.communicate() == ("0\n", "")


def test_on_a_terminal_it_says_what_it_waits_for(machine):
    """On one line, that is taken away in the end."""
    desk = machine({"gpus": [in_use(0), gpu(1)], "processes": []})
    arguments = ("wait", "--count", "2", "--every", "0.2", "--timeout", "0.5")
    code, seen = on_a_terminal(desk, *WEBMON, *arguments)
    assert code == 124
    shown = re.findall(r"\r\x1b\[K([^\r\x1b\n]*)", seen)
    assert re.fullmatch(r"waiting for 2 GPUs, 0:0\d  Requested 2 GPUs, but 1 matched filters", shown[0])
    assert shown[-1].startswith("webmon: waited 0.5 s in vain"), "the line is gone before the error is said"
    code, seen = on_a_terminal(desk, *WEBMON, *arguments, "-q")
    assert seen == "webmon: waited 0.5 s in vain. Requested 2 GPUs, but 1 matched filters\n"


def test_ctrl_c_ends_it(machine):
    """On a terminal; the line is taken away."""
    desk = machine({"gpus": [in_use(0)], "processes": []})
    code, seen = on_a_terminal(desk, *WEBMON, "wait", typed=b"\x03", after=b"waiting for 1 GPU,")
    assert code == -signal.SIGINT
    assert seen.endswith("\r\x1b[K")
    assert desk.tickets() == []


def test_no_claim_takes_no_ticket(machine):
    """Nothing is written; it is given whatever is idle, claimed or not wanted by somebody before."""
    desk = machine({"gpus": [in_use(0)], "processes": []})
    process = desk.start("wait", "--no-claim", "--every", "0.2", "--timeout", "60")
    patient = desk.waiter()
    assert len(desk.tickets()) == 1
    desk.state = healthy(1)
    desk.save()
    patient.wait()
    patient.end()
    assert process.communicate(timeout=60) == ("0\n", "")


def test_waiting_costs_next_to_nothing(machine):
    """Who is not first does not ask nvidia-smi again and again."""
    desk = machine({"gpus": [in_use(0)], "processes": []})
    desk.count_calls()
    desk.waiter("--every", "3600")
    second = desk.start("wait", "--every", "0.2", "--timeout", "1", "--", sys.executable, "-c", "")
    second.wait()
    assert second.returncode == 124
    # Two looks of the first, one of the second to see what there is, and one in six of those that are due;
    # each asks for GPUs and for processes.
    assert desk.calls() <= 8
