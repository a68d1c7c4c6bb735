"""The probe's lines about claims → who has claimed which GPU."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from webmon.collect import claim_rows, process_rows
from webmon.collect.privacy import Privacy
from webmon.collect.sections import split
from webmon.model import CLAIM, Gpu

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
A, B = "GPU-aaaa-1111", "GPU-bbbb-2222"
GPUS = [Gpu("gpu01", 0, A), Gpu("gpu01", 1, B)]


def file(uuid=A, inode=12, device="fe01", folder="/run/lock"):
    return f"file {device} {inode} {folder}/webmon-claim-{uuid}"


def lock(pid=815, inode=12, device="fe:01"):
    return f"lock {pid} {device}:{inode}"


def test_a_claim_is_a_file_with_a_lock_on_it():
    """The file says which GPU it is, the lock who has it."""
    lines = [file(A, 12), file(B, 13), lock(815, 13), lock(816, 12)]
    assert claim_rows.read(lines) == [(B, 815), (A, 816)]


def test_a_file_without_a_lock_is_no_claim():
    """The files stay when the claims have ended."""
    assert claim_rows.read([file()]) == []


def test_other_locks_are_no_claims():
    """A machine is full of locks; the same inode on another device is another file."""
    assert claim_rows.read([file(), lock(inode=13), lock(device="fe:02"), lock(device="00:fe01")]) == []


def test_a_claim_is_told_once():
    """$WEBMON_CLAIMS may be one of the usual folders, and a file be listed twice."""
    assert claim_rows.read([file(), file(folder="/tmp/../run/lock"), lock(), lock()]) == [(A, 815)]


def test_two_folders_may_have_a_claim_each():
    """Whoever holds either of them has claimed the GPU."""
    lines = [file(inode=1), file(inode=2, folder="/tmp"), lock(5, 1), lock(6, 2)]
    assert claim_rows.read(lines) == [(A, 5), (A, 6)]


@pytest.mark.parametrize(
    ("number", "device"),
    [("1", "00:01"), ("fe01", "fe:01"), ("19", "00:19"), ("10301", "103:01"), ("803fffff", "803:fffff")],
)
def test_devices_are_compared_as_linux_numbers_them(number, device):
    """`stat` has major and minor in one number, /proc/locks has them apart."""
    if number == "803fffff":
        number = f"{os.makedev(0x803, 0xFFFFF):x}"
    assert claim_rows.read([file(device=number), lock(device=device)]) == [(A, 815)]


@given(st.integers(0, 0xFFF), st.integers(0, 0xFFFFF))
@settings(deadline=None, database=None)
def test_any_device_is_found_again(major, minor):
    """As os.makedev puts it together."""
    lines = [file(device=f"{os.makedev(major, minor):x}"), lock(device=f"{major:02x}:{minor:02x}")]
    assert claim_rows.read(lines) == [(A, 815)]


@pytest.mark.parametrize(
    "line",
    [
        "file fe01 12 webmon-claim-GPU-aaaa-1111",
        "file fe01 12 /tmp/webmon-claim-aaaa",
        "file fe01 12 /tmp/webmon-claim-GPU-",
        "file fe01 12 /tmp/webmon-claim-GPU-a b",
        "file fe01 12 /tmp/webmon-claim-GPU-a\x1b[31m",
        "file fe01 12 /tmp/webmon-claim-GPU-" + "a" * 65,
        "file fe01 -12 /tmp/webmon-claim-GPU-aaaa-1111",
        "file xyz 12 /tmp/webmon-claim-GPU-aaaa-1111",
        "FILE fe01 12 /tmp/webmon-claim-GPU-aaaa-1111",
        " file fe01 12 /tmp/webmon-claim-GPU-aaaa-1111",
        "file fe01 ١٢ /tmp/webmon-claim-GPU-aaaa-1111",
    ],
)
def test_a_line_that_is_no_file_of_a_claim_is_passed_over(line):
    """Names of files are written by other users."""
    assert claim_rows.read([line, lock()]) == []


@pytest.mark.parametrize(
    "line",
    [
        "lock",
        "lock 815",
        "lock -1 fe:01:12",
        "lock 815 fe:01:12 0 EOF",
        "lock 81x fe:01:12",
        "lock 815 fe:01",
        "lock 12345678901 fe:01:12",
        "lock 815 FE:01:12",
        "lock ٨ fe:01:12",
    ],
)
def test_a_line_that_is_no_lock_is_passed_over(line):
    """What can't be read is no claim; the others are read all the same."""
    assert claim_rows.read([file(), line, lock(7)]) == [(A, 7)]


WORDS = st.sampled_from(
    ["file", "lock", "fe01", "fe:01:12", "12", "815", "/tmp/webmon-claim-GPU-a", A, " ", "\n", "\t", "²", "0"]
)
LINES = st.lists(WORDS | st.text(max_size=8), max_size=12).map("".join) | st.binary(max_size=60).map(
    lambda raw: raw.decode("utf-8", "replace")
)


@given(st.lists(LINES, max_size=8))
@example([file(device="f" * 16, inode="9" * 20), lock(9999999999, "9" * 20, "ffffffff:ffffffff")])
@settings(deadline=None, database=None)
def test_whatever_a_host_sends_is_read_without_an_error(lines):
    """Any text at all; what comes out are uuids and pids."""
    for uuid, pid in claim_rows.read(lines):
        assert uuid.startswith("GPU-")
        assert pid >= 0


def test_many_lines_take_no_time():
    """Ten thousand locks and files, and long lines that nearly match."""
    lines = [file(f"GPU-{n}", n) for n in range(5000)] + [lock(n, n) for n in range(5000)]
    lines += ["file fe01 12 " + "/webmon-claim-GPU-" * 5000] * 5
    started = time.process_time()
    assert len(claim_rows.read(lines)) == 5000
    assert time.process_time() - started < 5


def processes(claims=(), rows=(), owners=(), code=0):
    """Return what process_rows makes of an answer: the owners of claims stand in a section of their own."""
    of_claims = [line for line in owners if line.split()[0] == "815"]
    others = [line for line in owners if line not in of_claims]
    lines = ["@t processes", *rows, f"@t exit {code}", "@t owners", *others]
    lines += ["@t claims", *claims, "@t owners", *of_claims, "@t end"]
    return process_rows.read(split("\n".join(lines), "t"), "gpu01", GPUS, NOW, [])


BOB = "  815  1002 bob   90 python train.py --key secret"


def test_a_claim_is_a_process_of_its_own():
    """With what is known of who holds it, but no memory."""
    (claim,) = processes([file(), lock()], owners=[BOB])
    assert claim.is_claim
    assert (claim.gpu_index, claim.gpu_uuid, claim.pid, claim.user) == (0, A, 815, "bob")
    assert (claim.command, claim.memory_mib) == ("python train.py --key secret", None)
    assert (NOW - claim.started_at).total_seconds() == 90


def test_a_claim_whose_owner_is_hidden_is_still_one():
    """Nobody knows who it is, but the GPU is not free."""
    (claim,) = processes([file(), lock()])
    assert (claim.name, claim.user, claim.command) == (CLAIM, None, None)


def test_a_claim_on_a_card_that_is_not_there_is_none():
    """The files of a card that was taken out stay."""
    assert processes([file("GPU-gone"), lock()]) == []


@pytest.mark.parametrize(
    ("row", "owners", "names"),
    [
        (f"{A}, 815, 1024, python", [BOB], ["python"]),
        (f"{A}, 900, 1024, python", [BOB, "900 1002 bob 5 python"], ["python", CLAIM]),
        (f"{A}, 900, 1024, python", [BOB, "900 1003 eve 5 python"], ["python", CLAIM]),
        (f"{A}, 900, 1024, python", [BOB], ["python", CLAIM]),
        (f"{A}, 900, 1024, python", [], ["python", CLAIM]),
        (f"{B}, 815, 1024, python", [BOB], ["python", CLAIM]),
    ],
    ids=["itself", "its child", "somebody else", "a hidden one", "both hidden", "on another card"],
)
def test_a_claim_is_told_until_the_process_itself_is_there(row, owners, names):
    """Then nvidia-smi tells of it; others do not count, whoever they are."""
    assert [process.name for process in processes([file(), lock()], [row], owners)] == names


def test_without_a_list_of_processes_claims_do_not_make_one():
    """A list that could not be had is not known, with or without claims."""
    assert processes([file(), lock()], ["Failed to query"], code=1) is None


@pytest.mark.parametrize(
    ("keep", "command"), [("name", "train.py"), ("full", "python train.py --key secret"), ("none", None)]
)
def test_what_is_kept_of_a_claim_is_what_the_configuration_says(keep, command):
    """That it is a claim is no secret; arguments are."""
    (claim,) = processes([file(), lock()], owners=[BOB])
    kept = Privacy(keep, "show").process(claim)
    assert (kept.name, kept.command, kept.user) == (CLAIM, command, "bob")
    masked = Privacy(keep, "mask", b"salt").process(claim)
    assert masked.is_claim
    assert masked.user.startswith("user-")


@pytest.mark.parametrize("keep", ["name", "full", "none"])
def test_a_claim_whose_command_is_hidden_has_none(keep):
    """Its being a claim is not what it runs."""
    (claim,) = processes([file(), lock()])
    assert Privacy(keep).process(claim).command is None
