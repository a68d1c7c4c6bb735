"""What is kept of people and commands."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webmon.collect.privacy import Privacy, program
from webmon.model import Process

SECRET = "hf_SECRET"
PROCESS = Process(
    "gpu01",
    0,
    "GPU-1",
    4711,
    user="alice",
    name="/usr/bin/python3",
    command=f"python3 /home/alice/train.py --token {SECRET}",
    memory_mib=100,
    started_at=datetime(2026, 1, 2, tzinfo=UTC),
    container="4c01db0b339c",
)


def test_by_default_a_command_is_kept_without_its_arguments():
    """Arguments may hold secrets."""
    kept = Privacy().process(PROCESS)
    assert (kept.name, kept.command, kept.user) == ("/usr/bin/python3", "train.py", "alice")


def test_by_default_a_name_is_kept_without_arguments_either():
    """A process can set its title, and browsers do: arguments and all."""
    kept = Privacy().process(Process("gpu01", 0, "GPU-1", 1, name=f"/opt/chrome --key={SECRET}"))
    assert (kept.name, kept.command) == ("/opt/chrome", "chrome")


@pytest.mark.parametrize("name", [None, "", " "])
def test_a_process_without_a_name_has_none(name):
    """Nothing is made up."""
    kept = Privacy().process(Process("gpu01", 0, "GPU-1", 1, name=name))
    assert (kept.name, kept.command) == (None, None)


def test_full_keeps_all():
    """`command = "full"` is for those who trust one another."""
    assert Privacy("full").process(PROCESS) == PROCESS


def test_none_keeps_neither_name_nor_command():
    """`command = "none"` tells that there is a process, whose, and how much memory it has."""
    kept = Privacy("none").process(PROCESS)
    assert (kept.name, kept.command) == (None, None)
    assert (kept.user, kept.memory_mib, kept.started_at) == ("alice", 100, PROCESS.started_at)


@pytest.mark.parametrize("command", ["name", "full", "none"])
def test_masked_users_have_a_pseudonym_that_stays(command):
    """The same user is the same pseudonym on every host and at every poll of this data folder."""
    privacy = Privacy(command, "mask", b"salt")
    mask = privacy.process(PROCESS).user
    assert re.fullmatch("user-[0-9a-f]{8}", mask)
    assert mask == privacy.user("alice") == Privacy("name", "mask", b"salt").user("alice")
    assert mask != privacy.user("bob")
    assert mask != Privacy("name", "mask", b"another salt").user("alice")


@pytest.mark.parametrize("users", ["show", "mask"])
def test_an_unknown_user_stays_unknown(users):
    """A pseudonym for nobody would look like somebody."""
    assert Privacy("name", users).process(Process("gpu01", 0, "GPU-1", 1)).user is None


@pytest.mark.parametrize(
    ("command", "name", "shown"),
    [
        ("python train.py --lr 1", None, "train.py"),
        ("/usr/bin/python3.11 -u -W ignore /home/a/train.py", None, "python3.11"),
        ("python3 -u /home/a/train.py", None, "train.py"),
        ("pypy3 bench.py", None, "bench.py"),
        ("python -m torch.distributed.run --nproc 8 train.py", None, "train.py"),
        ("python -m torch.distributed.run --nproc 8 --module lab.train", None, "torch.distributed.run"),
        ("python -m lab.train config.py", None, "lab.train"),
        ("python -m", None, "python"),
        ("python -c import-os;print(secret.py)", None, "python"),
        ("python -c import/secret.py", None, "python"),
        ("python /opt/conda/bin/accelerate launch /home/a/train.py --lr 1", None, "train.py"),
        ("python /opt/conda/bin/accelerate launch", None, "accelerate"),
        ("python /usr/bin/torchrun --log-dir=/a/b.py K=/a/c.py -x.py train.py", None, "train.py"),
        ("torchrun --nproc 2 train.py", None, "train.py"),
        ("accelerate launch train.py", None, "train.py"),
        ("/usr/bin/mpirun -np 2 python deep/train.py", None, "train.py"),
        ("torchrun --nproc 2 --token hf_SECRET", None, "torchrun"),
        ("./gpu_burn secret.py", None, "gpu_burn"),
        ("python accelerate launch", None, "python"),
        ("python KEY=/a/b x.py", None, "python"),
        ("python -u", None, "python"),
        ("python", None, "python"),
        ("/home/a/env/bin/python -m ipykernel_launcher -f /x/kernel.json", None, "jupyter"),
        ("python /opt/lib/ipykernel_launcher.py -f x", None, "jupyter"),
        ("./gpu_burn 3600", None, "gpu_burn"),
        ("/opt/my tool/run", None, "my"),
        ("sshd: alice [priv]", None, "sshd"),
        ("sglang::scheduler", None, "sglang::scheduler"),
        ("/", None, "/"),
        ("", "/usr/bin/foo", "foo"),
        (None, "bar", "bar"),
        ("   ", "bar", None),
        (None, None, None),
        ("x" * 500, None, "x" * 80),
    ],
)
def test_what_a_command_is_called(command, name, shown):
    """The script rather than python, a notebook rather than its launcher, never an argument."""
    assert program(command, name) == shown


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_command_can_be_called_something(command, name):
    """It is short, and stands on one line."""
    shown = program(command, name)
    assert shown is None or (0 < len(shown) <= 80 and not re.search(r"\s", shown))
