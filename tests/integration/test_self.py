"""`self`: this machine, asked without SSH."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time

import pytest
from servers import processes
from servers.command import host_rows, start, table, webmon
from servers.settings import write_config
from servers.sshd import STANDIN
from servers.states import HANGS, gpu, healthy, process

MARK = "WEBMON_TEST_SELF"


@pytest.fixture
def machine(tmp_path):
    """Give this machine a nvidia-smi: `machine(state)` or `machine(script=…)` → environment, config."""

    def make(state=None, *, script="", **common):
        folder = tmp_path / "bin"
        folder.mkdir()
        (tmp_path / "state.json").write_text(json.dumps(state))
        script = script or f'exec {shlex.quote(sys.executable)} -I -S {shlex.quote(str(STANDIN))} "$@"'
        (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{script}\n")
        (folder / "nvidia-smi").chmod(0o755)
        environment = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "WEBMON_STANDIN": str(tmp_path / "state.json"),
            MARK: str(tmp_path),
        }
        return environment, write_config(tmp_path, {"hosts": ["self"], "timeout": 10} | common)

    yield make
    processes.kill(*_left(tmp_path))


def _left(tmp_path):
    return processes.marked(f"{MARK}={tmp_path}\0")


def test_this_machine_is_asked_without_ssh(machine, tmp_path):
    """`hosts = self` needs neither a key nor a network; owners come from this machine's ps."""
    state = healthy(2) | {"gpus": [gpu(0), gpu(1, utilization__gpu="88", memory__used="9000")]}
    state["processes"] = [process(1, os.getpid(), "python")]
    environment, config = machine(state)
    done = webmon("fetch", "-c", config, env=environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [(row["host"], row["state"]) for row in table(tmp_path / "data", "gpus")] == [
        ("self", "free"),
        ("self", "busy"),
    ]
    (row,) = table(tmp_path / "data", "processes")
    assert row["user"] == table(tmp_path / "data", "gpus")[1]["users"] != ""
    assert _left(tmp_path) == []


def test_a_machine_without_nvidia_smi_says_so(tmp_path):
    """The monitoring machine often has no GPU: that is a reason, not a failure."""
    config = write_config(tmp_path, {"hosts": ["self"], "nvidia_smi": "/does/not/exist", "timeout": 5})
    done = webmon("fetch", "-c", config)
    assert (done.returncode, done.stderr) == (0, "")
    assert host_rows(tmp_path / "data")["self"]["reason"] == "not-installed"


def test_a_nvidia_smi_that_hangs_is_killed_by_the_probe(machine, tmp_path):
    """A driver that hangs is a reason of its own, and takes no longer than the timeout."""
    environment, config = machine(HANGS, timeout=4)
    started = time.monotonic()
    assert webmon("fetch", "-c", config, env=environment).returncode == 0
    assert time.monotonic() - started < 7
    assert host_rows(tmp_path / "data")["self"]["reason"] in ("smi-timeout", "timeout")
    assert _left(tmp_path) == []


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("trap '' TERM HUP INT; while :; do sleep 0.5; done", "timeout"),
        ("sleep 60 & exec sleep 60", "timeout"),
        ("exec yes", "too-much-output"),
        ("yes & exec yes", "too-much-output"),
        ("exec >&- 2>&-; exec sleep 60", "timeout"),
    ],
)
def test_no_child_outlives_the_deadline(machine, tmp_path, script, reason):
    """What the probe has started here is killed with it, whatever it does with signals and pipes."""
    environment, config = machine(script=script, timeout=1)
    started = time.monotonic()
    done = webmon("fetch", "-c", config, env=environment)
    assert time.monotonic() - started < 4
    assert processes.wait_until_gone(_left(tmp_path), 0.2) == []
    assert (done.returncode, done.stderr) == (0, "")
    assert host_rows(tmp_path / "data")["self"]["reason"] == reason


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_no_child_outlives_an_interrupted_fetch(machine, tmp_path, number):
    """Ctrl-C takes the nvidia-smi that hangs along."""
    environment, config = machine(HANGS, timeout=60)
    with start("fetch", "-c", config, env=environment) as running:
        deadline = time.monotonic() + 10
        while not _hanging(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.02)
        running.send_signal(number)
        assert running.wait(5) == -number
    assert processes.wait_until_gone(_left(tmp_path), 0.5) == []


def _hanging(tmp_path):
    """Tell whether the stand-in has been started: that is the last of a chain of programs."""
    for pid in _left(tmp_path):
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            if b"nvidia_smi.py" in file.read():
                return True
    return False
