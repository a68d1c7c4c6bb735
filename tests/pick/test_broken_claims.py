"""What lies in the folder of the claims may be anything: it takes one GPU out at most, and never hangs."""

from __future__ import annotations

import fcntl
import os
import subprocess

import pytest
from desk import eventually
from servers import processes
from servers.states import uuid


def _link(path):
    target = path.parent / "target"
    target.write_text("untouched")
    target.chmod(0o644)
    path.symlink_to(target)


def _dangling(path):
    path.symlink_to(path.parent / "nowhere")


SPOILED = {
    "a link": (_link, "Too many levels of symbolic links"),
    "a link to nothing": (_dangling, "Too many levels of symbolic links"),
    "a pipe": (os.mkfifo, "it is no file"),
    "a folder": (os.mkdir, "it is no file"),
}


@pytest.mark.parametrize(
    ("command", "spoil"), [*(("select", spoil) for spoil in SPOILED), ("wait", "a pipe")]
)
def test_a_claim_file_that_is_none_takes_one_gpu_out(machine, command, spoil):
    """The others can be picked; for this one, one line says what to do. Nothing is followed or written."""
    desk = machine(2)
    make, why = SPOILED[spoil]
    path = desk.claims / f"webmon-claim-{uuid(0)}"
    make(path)
    for _ in range(2):
        assert desk.webmon(command, "--count", "1").stdout == "1\n"
    done = desk.webmon(command, "-d", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"webmon: {path} can't be used to claim a GPU: {why}. "
        "Remove it (root can), or say --no-claim to do without\n"
    )
    assert desk.webmon(command, "-d", "0", "--no-claim").stdout == "0\n"
    assert desk.available() == [0, 1]
    assert not (desk.claims / "nowhere").exists()
    if spoil == "a link":
        assert (desk.claims / "target").read_text() == "untouched"


@pytest.mark.parametrize("spoil", SPOILED)
def test_the_file_that_keeps_pickers_apart_is_not_needed(machine, spoil):
    """Whoever spoils it keeps nobody from picking; each claim still goes to one only."""
    desk = machine(2)
    SPOILED[spoil][0](desk.claims / "webmon-picking")
    holder = desk.hold("--count", "2")
    assert holder.gpus == [0, 1]
    assert desk.webmon("select").returncode == 1


def test_who_holds_up_all_pickers_does_not_do_so_for_long(machine):
    """A picker that was stopped in the middle, or somebody who wants to annoy."""
    desk = machine(1)
    assert desk.webmon("select").returncode == 0
    with subprocess.Popen(
        ["flock", desk.claims / "webmon-picking", "sh", "-c", "echo locked; exec sleep 600"],
        stdout=subprocess.PIPE,
        env=desk.environment,
    ) as nuisance:
        assert nuisance.stdout.readline() == b"locked\n"
        assert desk.webmon("select").stdout == "0\n"
        assert nuisance.poll() is None
        processes.kill(nuisance.pid, *processes.descendants(nuisance.pid))


@pytest.mark.parametrize("path", ["", "/nonexistent/claims", "/etc/passwd"])
@pytest.mark.parametrize("command", ["select", "wait"])
def test_a_folder_that_is_none_is_said(machine, command, path):
    """A mistyped $WEBMON_CLAIMS must not mean that claims are kept elsewhere; an empty one is not set."""
    desk = machine(1)
    if not path:
        done = desk.webmon(command, "--no-claim", "--", "echo", "started", env={"WEBMON_CLAIMS": path})
        assert (done.returncode, done.stdout, done.stderr) == (0, "started\n", "")
        return
    done = desk.webmon(command, "--", "echo", "never", env={"WEBMON_CLAIMS": path})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"webmon: claims can't be kept: {path} can't be shared. "
        "Name a folder that all users may write to in $WEBMON_CLAIMS, or say --no-claim\n"
    )


def test_a_file_that_is_removed_while_it_is_held_loses_the_claim_only(machine):
    """Root has tidied up: the next one may claim the GPU anew, and nobody is harmed."""
    desk = machine(1)
    first = desk.hold()
    (desk.claims / f"webmon-claim-{uuid(0)}").unlink()
    second = desk.hold()
    assert second.gpus == [0]
    assert desk.webmon("select").returncode == 1
    assert first.end() == 0
    assert desk.webmon("select").returncode == 1, "the claim of the second is another file"
    assert second.end() == 0
    assert eventually(lambda: desk.available() == [0])


def test_what_is_written_into_a_claim_file_means_nothing(machine):
    """The lock is the claim."""
    desk = machine(1)
    (desk.claims / f"webmon-claim-{uuid(0)}").write_bytes(b"\x00\xff" * 1000 + b"lock 1 00:00:1\n")
    assert desk.available() == [0]
    assert desk.webmon("select").stdout == "0\n"


def test_files_with_strange_names_claim_nothing(machine):
    """Anybody may put them there, locked or not."""
    desk = machine(1)
    names = [
        "webmon-claim-GPU-*",
        "webmon-claim-GPU-",
        f"webmon-claim-{uuid(0)}~",
        "webmon-claim-GPU-\n@ end",
    ]
    for name in names:
        (desk.claims / name).touch()
    locks = [os.open(desk.claims / name, os.O_RDONLY) for name in names]
    for descriptor in locks:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    assert desk.available() == [0]
    assert desk.webmon("select").stdout == "0\n"
    for descriptor in locks:
        os.close(descriptor)


def test_hundreds_of_files_change_nothing_for_a_claim(machine):
    """The probe looks at no more than 256; the claim itself needs no list."""
    desk = machine(1)
    for number in range(400):
        (desk.claims / f"webmon-claim-GPU-0000-{number:04}").touch()
    holder = desk.hold()
    assert holder.gpus == [0]
    done = desk.webmon("select")
    assert (done.returncode, done.stderr) == (1, "webmon: Requested 1 GPUs, but 0 matched filters\n")


def test_a_read_lock_of_somebody_is_a_claim_too(machine):
    """Whatever lock it is, webmon could not get its own."""
    desk = machine(2)
    assert desk.webmon("select", "--count", "2").returncode == 0
    with open(desk.claims / f"webmon-claim-{uuid(0)}", "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert desk.available() == [1]
        assert desk.webmon("select").stdout == "1\n"


def test_a_folder_that_is_not_named_in_full_is_a_mistake(machine):
    """It would be another one in another place."""
    done = machine(1).webmon("select", env={"WEBMON_CLAIMS": "claims"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "webmon: $WEBMON_CLAIMS is 'claims'. Write it in full: it has to start with /\n"
