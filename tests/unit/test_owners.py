"""Who owns a process: the lines of `ps`, of /proc, and of the control groups."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe_answers import answer, read

from webmon.collect.owners import Owner, parse_cgroups, parse_owners

ID = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("line", "owner"),
    [
        ("   7  1000 alice     60 python train.py --lr 1", Owner("alice", 60, "python train.py --lr 1")),
        ("7 1000 averylongnameindeed.of.somebody 0 x", Owner("averylongnameindeed.of.somebody", 0, "x")),
        ("7 1000 1000 5 x", Owner("1000", 5, "x")),
        ("7 1000 ? 5 x", Owner("1000", 5, "x")),
        ("7 0 root 5 [kworker/0:1]", Owner("root", 5, "[kworker/0:1]")),
        ("7 0 root 5 ", Owner("root", 5, "")),
        ("7 0 root 5", Owner("root", 5, "")),
        ("7 0 root -3 x", Owner("root", 0, "x")),
        ("7 0 root 3155759999 x", Owner("root", 3155759999, "x")),
        ("7 0 root 3155760000 x", Owner("root", None, "x")),
        ("7 0 root 5   x  y ", Owner("root", 5, "x  y")),
        ("7 1000 DOMAIN\\bob 5 x", Owner("DOMAIN\\bob", 5, "x")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_line_says_who_since_when_and_what(line, owner):
    """Names are not cut; an age that can't be is not known; a clock that went back is 0."""
    assert parse_owners([line]) == {7: owner}


@pytest.mark.parametrize(
    "line", ["", "PID UID USER ELAPSED CMD", "7", "7 x root 5 x", "-7 0 root 5 x", "\u0667 0 r 5 x"]
)
def test_other_lines_are_passed_over(line):
    """Such as the complaint of a ps that knows none of these options."""
    assert parse_owners([line]) == {}


def test_the_first_line_of_a_process_counts():
    """Arguments are written by other users, and may hold what looks like another line."""
    assert parse_owners(["7 1 alice 5 x", "7 2 bob 5 y"])[7].user == "alice"


def test_an_owner_may_not_look_like_two():
    """In a cell of several users `;` stands between them, and in the history `=` after each."""
    reading = read(answer(processes="GPU-1, 7, 1, x\n", owners="7 0 a;b=c 5 x\n"))
    assert reading.processes[0].user == "a_b_c"


def test_an_owner_that_is_invisible_is_not_known():
    """A name of blanks that only Unicode knows would be an empty cell in the middle of others."""
    assert read(answer(processes="GPU-1, 7, 1, x\n", owners="7 0 \u3000 5 x\n")).processes[0].user is None


def test_an_owner_has_a_name_of_some_length_at_the_most():
    """All users of a card stand in one cell, which readers of CSV take up to 128 KiB."""
    reading = read(answer(processes="GPU-1, 7, 1, x\n", owners=f"7 0 {'a' * 500} 5 x\n"))
    assert reading.processes[0].user == "a" * 64


@pytest.mark.parametrize(
    ("path", "container"),
    [
        ("0::/docker/" + ID, ID[:12]),
        ("0::/docker-" + ID + ".scope", ID[:12]),
        ("1:name=systemd:/kubepods/burstable/pod-1/" + ID, ID[:12]),
        ("0::/docker/" + ID + "x", None),
        ("0::/docker/" + ID.upper(), None),
        ("0::/slurm/job_1x", None),
        ("0::/job_5/slurm", None),
        ("0::/slurm/uid_0/job_5/" + ID, "slurm-5"),
        ("0::/lxc/a;b", None),
        ("", None),
    ],
)
def test_a_control_group_names_the_container(path, container):
    """A job comes before the container that it may run in; what is not quite an id is none."""
    assert parse_cgroups([f"7 {path}"]) == ({7: container} if container else {})


@pytest.mark.parametrize("line", ["", "x 0::/docker/" + ID, "0::/docker/" + ID])
def test_a_line_without_a_pid_is_passed_over(line):
    """The probe writes the pid before each line of /proc/PID/cgroup."""
    assert parse_cgroups([line]) == {}


@given(st.lists(st.text(max_size=40)))
def test_any_lines_are_read_without_an_error(lines):
    """They come from hosts, whatever these may be."""
    parse_owners(lines)
    parse_cgroups(lines)
