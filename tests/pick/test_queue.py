"""Waiting is fair: first come, first served. Nobody who is gone, or forges a ticket, keeps others back."""

from __future__ import annotations

import fcntl
import os
import signal
import time

import pytest
from desk import eventually
from people import become, environment, me, open_to_all, others
from servers.states import gpu, healthy, uuid

MINUTE_S = 60
EARLY = "00000000000000000001"


def test_everybody_gets_a_turn_in_order(machine):
    """GPUs become free one by one; each goes to the one who has waited longest."""
    desk = machine(2)
    holders = [desk.hold("-d", "0"), desk.hold("-d", "1")]
    waiters = [desk.waiter() for _ in range(4)]
    for waiter in waiters:
        holders.pop(0).end()
        holders.append(waiter.wait())
        assert [other.has_started() for other in waiters[waiters.index(waiter) + 1 :]].count(True) == 0
    assert desk.tickets() == []


def test_who_wants_more_is_not_overtaken_by_those_who_want_less(machine):
    """Else four GPUs would never be free at once."""
    desk = machine(2)
    first, second = desk.hold("-d", "0"), desk.hold("-d", "1")
    big = desk.waiter("--count", "2")
    small = desk.waiter()
    first.end()
    # Two more looks of both: the one that is free is kept for the first.
    desk.count_calls()
    eventually(lambda: desk.calls() >= 4)
    assert not big.has_started()
    assert not small.has_started()
    second.end()
    assert big.wait().gpus == [0, 1]
    assert not small.has_started()
    big.end()
    assert len(small.wait().gpus) == 1


def test_who_wants_something_else_is_not_kept_back(machine):
    """Only the GPUs that are wanted by somebody before are kept for them."""
    state = {"gpus": [gpu(0), gpu(1, name="NVIDIA H100")], "processes": []}
    desk = machine(state)
    holder = desk.hold("-d", "0")
    first = desk.waiter("-n", "A6000")
    second = desk.waiter("-n", "H100")
    assert second.wait().gpus == [1]
    third = desk.waiter()
    assert not third.has_started()
    second.end()
    assert third.wait().gpus == [1]
    assert not first.has_started()
    holder.end()
    assert first.wait().gpus == [0]


def test_select_does_not_jump_the_queue(machine):
    """What somebody waits for is not free for those who come now; the others are."""
    desk = machine(3)
    desk.state["gpus"][0] = gpu(0, utilization__gpu="90", memory__used="9000")
    desk.save()
    desk.waiter("-d", "0,1")
    done = desk.webmon("select", "-d", "1")
    assert done.returncode == 1
    assert done.stderr.startswith("webmon: Requested 1 GPUs, but 0 matched filters. The others are free, and")
    assert "`webmon wait` takes the next place" in done.stderr
    assert desk.webmon("select").stdout == "2\n"
    assert desk.webmon("select", "-d", "1", "--no-claim").stdout == "1\n"


def test_who_was_killed_keeps_nobody_back(machine):
    """There was no time to tidy up; whoever comes next does."""
    desk = machine(1)
    holder = desk.hold()
    first, second = desk.waiter(), desk.waiter()
    first.signal(signal.SIGKILL)
    assert first.result()[0] == -signal.SIGKILL
    assert len(desk.tickets()) == 2
    holder.end()
    assert second.wait().gpus == [0]
    assert desk.tickets() == []
    second.end()
    assert desk.webmon("select").stdout == "0\n"


def _is_stopped(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rpartition(")")[2].split()[0] == "T"


def test_who_was_stopped_loses_the_turn_after_a_minute(machine):
    """Ctrl-Z for a coffee, or for a week: until it goes on, it is passed over."""
    desk = machine(1)
    holder = desk.hold()
    stopped, second = desk.waiter(), desk.waiter()
    stopped.signal(signal.SIGSTOP)
    eventually(lambda: _is_stopped(stopped.pid))
    long_ago = time.time() - MINUTE_S - 1
    os.utime(desk.claims / desk.tickets()[0], (long_ago, long_ago))
    holder.end()
    assert second.wait().gpus == [0]
    stopped.signal(signal.SIGCONT)
    assert not stopped.has_ended()
    second.end()
    assert stopped.wait().gpus == [0]


def test_who_was_stopped_for_a_moment_keeps_the_turn(machine):
    """A minute is more than any look takes."""
    desk = machine(1)
    first = desk.hold()
    stopped = desk.waiter()
    stopped.signal(signal.SIGSTOP)
    eventually(lambda: _is_stopped(stopped.pid))
    first.end()
    assert desk.webmon("select").returncode == 1
    stopped.signal(signal.SIGCONT)
    assert stopped.wait().gpus == [0]


def _junk(path):
    path.write_bytes(bytes(range(256)) * 10)


def _huge(path):
    with open(path, "wb") as file:
        file.truncate(1 << 40)


def _list(path):
    path.write_text(f"{uuid(0)}\n")


def _link(path):
    path.symlink_to("/dev/zero")


def _closed(path):
    _list(path)
    path.chmod(0)


FORGERIES = {
    "junk": _junk,
    "huge": _huge,
    "a list that nobody keeps": _list,
    "a link": _link,
    "a link to itself": lambda path: path.symlink_to(path),
    "a pipe": os.mkfifo,
    "a folder": os.mkdir,
    "closed": _closed,
}


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_ticket_that_is_none_does_nothing(machine, forgery):
    """Whatever lies there, and however early it says it came: it keeps nobody back, and nobody hangs."""
    desk = machine(1)
    FORGERIES[forgery](desk.claims / f"webmon-wait-{EARLY}-1")
    assert desk.webmon("select", timeout=30).stdout == "0\n"
    assert desk.webmon("wait", "--timeout", "10", timeout=30).stdout == "0\n"


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b"GPU-other\n" * 9000, b""], ids=["junk", "long", "empty"])
def test_a_ticket_that_is_kept_but_names_no_gpu_of_this_machine_does_nothing(machine, text):
    """Its lock is real, and what it says is not."""
    desk = machine(1)
    path = desk.claims / f"webmon-wait-{EARLY}-1"
    path.write_bytes(text)
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert desk.webmon("select").stdout == "0\n"
        assert desk.webmon("wait", "--timeout", "10", timeout=30).stdout == "0\n"


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_ticket_of_another_time_does_nothing(machine, hours):
    """Kept by somebody who no longer looks; or whose clock, or intent, is wrong."""
    desk = machine(1)
    path = desk.claims / f"webmon-wait-{EARLY}-1"
    path.write_text(f"{uuid(0)}\n")
    then = time.time() + 3600 * hours
    os.utime(path, (then, then))
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert desk.webmon("select").stdout == "0\n"


@pytest.mark.parametrize(
    "name", ["webmon-wait-", "webmon-wait-1-1", f"webmon-wait-{EARLY}-1x", f".webmon-wait-{EARLY}-1"]
)
def test_files_that_are_not_called_like_tickets_are_none(machine, name):
    """However well they are kept."""
    desk = machine(1)
    path = desk.claims / name
    path.write_text(f"{uuid(0)}\n")
    with open(path, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert desk.webmon("select").stdout == "0\n"
    assert path.exists()


def test_a_queue_of_several_users_is_one(machine):
    """Another user's ticket counts, and a dead one does not, though it can't be removed by others."""
    nobody, daemon = others(2)
    desk = machine(healthy(1))
    command = open_to_all(desk)
    holder = desk.hold()

    def waiting(user):
        before = len(desk.tickets())
        process = desk.start_as(
            [*become(user), *command, "wait", "--every", "0.2", "--", "sh", "-c", "id -un; exec cat"],
            environment(desk),
        )
        eventually(lambda: len(desk.tickets()) > before)
        return process

    dead, first, second = waiting(nobody), waiting(daemon), waiting(me())
    dead.kill()
    dead.wait()
    holder.end()
    assert first.stdout.readline() == f"{daemon}\n"
    assert desk.webmon("select").returncode == 1
    first.stdin.close()
    assert second.stdout.readline() == f"{me()}\n"


def test_who_waits_keeps_as_many_as_he_wished_for(machine):
    """The others are for those behind him: all are served at once, not one at each look."""
    desk = machine(4)
    holders = [desk.hold("-d", str(index)) for index in range(4)]
    waiters = [desk.waiter() for _ in range(4)]
    for holder in holders:
        holder.end()
    assert sorted(waiter.wait().gpus[0] for waiter in waiters) == [0, 1, 2, 3]


def test_who_waits_keeps_nothing_that_does_not_suit_him(machine):
    """A card at 3 % is free, but not for somebody who wants one at 0 %."""
    desk = machine({"gpus": [gpu(0, utilization__gpu="3", memory__used="1000")], "processes": []})
    picky = desk.waiter("--util", "0")
    assert desk.webmon("select").stdout == "0\n"
    desk.state["gpus"][0]["utilization.gpu"] = "0"
    desk.save()
    assert picky.wait().gpus == [0]
