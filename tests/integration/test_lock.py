"""One poll at a time for a data folder."""

from __future__ import annotations

import signal
import time

import pytest
from servers.command import host_rows, start, webmon
from servers.hostile import Hostile
from servers.settings import write_config
from servers.sshd import Pretended


@pytest.fixture
def slow(start_sshd, tmp_path):
    """A host whose answer takes two seconds, and the configuration of it."""
    sshd = start_sshd([Pretended(command='sleep 2; eval "$SSH_ORIGINAL_COMMAND"')])
    return sshd, write_config(tmp_path, sshd.common())


def _wait_for_connection(sshd):
    deadline = time.monotonic() + 10
    while not sshd.connections() and time.monotonic() < deadline:
        time.sleep(0.01)


@pytest.mark.parametrize("second", ["fetch", "update"])
def test_a_second_poll_says_so_and_does_nothing(slow, tmp_path, second):
    """cron starts the next one while the last one is still at work: that is no failure."""
    sshd, config = slow
    with start("update", "-c", config) as first:
        _wait_for_connection(sshd)
        started = time.monotonic()
        done = webmon(second, "-c", config)
        assert time.monotonic() - started < 2
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == f"webmon: another fetch is at work (process {first.pid}); nothing done\n"
        assert first.wait(20) == 0
        assert first.stderr.read() == ""
    assert sshd.connections() == 1
    assert [row["status"] for row in host_rows(tmp_path / "data").values()] == ["up"]


def test_another_data_folder_is_another_matter(slow, tmp_path):
    """Two configurations of one machine don't wait for each other."""
    sshd, config = slow
    with start("fetch", "-c", config) as first:
        _wait_for_connection(sshd)
        done = webmon("fetch", "-c", config, "--data", tmp_path / "other")
        assert (done.returncode, done.stderr) == (0, "")
        assert first.wait(20) == 0
    assert sshd.connections() == 2


def test_the_lock_ends_with_the_process(sshd, tmp_path):
    """After kill -9 the next poll works at once: there is no stale lock to remove."""
    with Hostile(mute="silent") as servers:
        common = sshd.common(hosts=[servers.name("mute")], timeout=60)
        with start("fetch", "-c", write_config(tmp_path, common)) as first:
            deadline = time.monotonic() + 10
            while not (tmp_path / "data" / ".lock").exists() and time.monotonic() < deadline:
                time.sleep(0.01)
            first.send_signal(signal.SIGKILL)
            first.wait(5)
    done = webmon("fetch", "-c", write_config(tmp_path, sshd.common()))
    assert (done.returncode, done.stderr) == (0, "")
