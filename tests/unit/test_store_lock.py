"""One poll at a time for a data folder."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from webmon.errors import DataError
from webmon.store import lock

HOLDER = """
import sys, time
from pathlib import Path
from webmon.store import lock
with lock.hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_whoever_comes_second_is_told_who_was_first(tmp_path):
    """And can go on as soon as that one has let go."""
    with (
        lock.hold(tmp_path),
        pytest.raises(lock.Locked, match=f"^process {os.getpid()}$"),
        lock.hold(tmp_path),
    ):
        pass
    with lock.hold(tmp_path):
        pass


def test_two_folders_have_two_locks(tmp_path):
    """The folder is made if need be."""
    with lock.hold(tmp_path / "a" / "data"), lock.hold(tmp_path / "b"):
        assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_an_error_lets_go_of_the_lock(tmp_path):
    """Whatever ends the block."""
    with pytest.raises(ZeroDivisionError), lock.hold(tmp_path):
        raise ZeroDivisionError
    with lock.hold(tmp_path):
        pass


def test_a_killed_process_holds_no_lock(tmp_path):
    """The file that it leaves locks nobody out."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(lock.Locked, match=f"process {holder.pid}"), lock.hold(tmp_path):
            pass
        holder.kill()
    with lock.hold(tmp_path):
        assert (tmp_path / ".lock").read_text(encoding="ascii") == f"{os.getpid()}\n"


def test_a_holder_that_does_not_say_who_it_is(tmp_path):
    """It may have been killed between the lock and its number; or be another program."""
    with lock.hold(tmp_path):
        (tmp_path / ".lock").write_bytes(b"\xff\x1b[2J")
        with pytest.raises(lock.Locked, match=r"^another process$"), lock.hold(tmp_path):
            pass


def test_a_link_in_place_of_the_lock_is_refused(tmp_path):
    """It could make a file of anybody's be emptied."""
    victim = tmp_path / "victim"
    victim.write_text("precious", encoding="ascii")
    (tmp_path / ".lock").symlink_to(victim)
    with pytest.raises(DataError, match="can't be written"), lock.hold(tmp_path):
        pass
    assert victim.read_text(encoding="ascii") == "precious"
