"""Ctrl-C and SIGTERM end a poll at once and in good order."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import pytest
from servers.command import host_rows, start, webmon
from servers.hostile import Hostile
from servers.settings import write_config
from servers.sshd import Pretended

from webmon.store import snapshot


@pytest.fixture
def stuck(start_sshd, tmp_path):
    """A configuration with a healthy host, a silent one, and others that wait for a gateway."""
    sshd = start_sshd([Pretended(), Pretended(command="sleep 60"), Pretended(), Pretended()])
    with Hostile(mute="silent", gateway="drip") as servers:
        hosts = [*sshd.names, servers.name("mute")]
        own = {sshd.names[2]: {"proxy_jump": servers.name("gateway")}}
        own[sshd.names[1]] = {"proxy_jump": sshd.names[3]}
        common = sshd.common(hosts=hosts, timeout=60, host_keys="off")
        folder = tmp_path / "stuck"
        folder.mkdir()
        yield write_config(folder, common, own)


def _interrupt(config, number, data, *, after):
    """Interrupt a fetch once it is at work; return its exit code, its errors, and how long it took."""
    with start("fetch", "-c", config, "--data", data) as running:
        deadline = time.monotonic() + 10
        while not (data / ".lock").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(after)
        started = time.monotonic()
        running.send_signal(number)
        code = running.wait(10)
        return code, running.stderr.read(), time.monotonic() - started


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("after", [0.0, 0.1, 0.8])
def test_an_interrupted_fetch_ends_at_once_by_the_signal(stuck, tmp_path, number, after):
    """No waiting for hosts, no traceback, and the shell sees which signal it was."""
    code, errors, seconds = _interrupt(stuck, number, tmp_path / "data", after=after)
    assert (code, errors) == (-number, "")
    assert seconds < 1


# The signal comes while an object is taken apart: what is raised there, Python drops.
DEAF = """
import os, signal, sys, time
from argparse import Namespace
from webmon import cli

class Deaf:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)

def work(options):
    Deaf()
    time.sleep(20)

sys.unraisablehook = lambda _: None
cli.parse = lambda arguments: Namespace(run=work)
cli.run()
"""


def test_a_signal_that_python_drops_comes_again():
    """A fetch that was still importing when it was told to end would go on as if nothing had been."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", DEAF], check=False, capture_output=True, text=True, timeout=15
    )
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, "")
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_last_snapshot_stays_as_it_was(stuck, sshd, tmp_path, number):
    """What was known before the interrupted poll is still known, whole, and nothing else is there."""
    data = tmp_path / "data"
    assert webmon("fetch", "-c", write_config(tmp_path, sshd.common())).returncode == 0
    latest = (data / "latest").resolve()
    (data / ".lock").unlink()
    code, _, _ = _interrupt(stuck, number, data, after=0.3)
    assert code == -number
    assert (data / "latest").resolve() == latest
    assert [gpu.state for gpu in snapshot.load(data).gpus] == ["free"]
    assert [entry.name for entry in (data / "snapshots").iterdir()] == [latest.name]
    assert set(host_rows(data)) == set(sshd.names)
