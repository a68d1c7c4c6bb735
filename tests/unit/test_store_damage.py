"""Tables that are not as webmon writes them: an error that says which file and which line."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probe_answers import NOW, answer, read
from snapshots import FULL, at

from webmon.availability import Rules
from webmon.collect.assemble import Answer, assemble
from webmon.collect.privacy import Privacy
from webmon.errors import DataError
from webmon.model import Snapshot
from webmon.store import snapshot


@pytest.fixture
def gpus(tmp_path):
    """Return the gpus.csv of a data folder with one snapshot in it."""
    snapshot.save(tmp_path, Snapshot(FULL.taken_at, FULL.hosts, FULL.gpus * 3, FULL.processes), keep=3)
    return tmp_path / "latest" / "gpus.csv"


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        (b"host,index", b"host,number", 1, "the columns are not those of webmon"),
        (b"held", b"idle", 2, "'idle' is none of free, busy, held, faulty, unknown"),
        (b"GPU-0", b"GPU-0,", 2, "19 cells instead of 18"),
        (b"gpu01,0,", b"gpu01,", 2, "17 cells instead of 18"),
        (b"gpu01,0,", b"gpu01,zero,", 2, "zero"),
        (b"gpu01,0,", b"gpu01,,", 2, "''"),
        (b"21.53", b"21,53", 2, "19 cells instead of 18"),
        (b"21.53", b"nan", 2, "'nan' is no number"),
        (b"21.53", b"-Infinity", 2, "'-Infinity' is no number"),
        (b"2026-01-02T03:04:05Z", b"yesterday", 2, "yesterday"),
        (b"2026-01-02T03:04:05Z", b"2026-13-02T03:04:05Z", 2, "2026-13-02"),
        (b"NVIDIA RTX", b"NVIDIA \xff", 2, "not UTF-8 text"),
        (b"NVIDIA RTX A6000", b'"NVIDIA" RTX', 2, "expected after"),
        (b"NVIDIA RTX A6000", b'"NVIDIA RTX', 4, "unexpected end of data"),
    ],
)
def test_a_damaged_table_names_the_line(gpus, old, new, line, problem):
    """With what is wrong with it; nothing is guessed."""
    content = gpus.read_bytes()
    gpus.write_bytes(content.replace(old, new, 1))
    with pytest.raises(DataError) as raised:
        snapshot.load(gpus.parents[1])
    assert str(raised.value).startswith(f"{gpus.resolve()}:{line}: ")
    assert problem in str(raised.value)
    assert raised.value.remedy == "Run `webmon fetch` to write a new snapshot"


@pytest.mark.parametrize("lost", range(1, 60, 7))
def test_a_table_that_is_cut_off_is_refused(gpus, lost):
    """Else the cards after the cut would seem not to be there; so it is if only some hosts are read."""
    content = gpus.read_bytes()
    gpus.write_bytes(content[:-lost])
    for load in (snapshot.load, lambda folder: snapshot.read(folder / "latest", ["gpu01"])):
        with pytest.raises(DataError, match=r"gpus\.csv:4: cut off"):
            load(gpus.parents[1])


def test_the_line_is_counted_from_the_top(gpus):
    """The header is line 1."""
    lines = gpus.read_bytes().splitlines(keepends=True)
    gpus.write_bytes(b"".join([*lines[:3], lines[3].replace(b"held", b"")]))
    with pytest.raises(DataError, match=re.escape("gpus.csv:4: '' is none of free,")):
        snapshot.load(gpus.parents[1])


@pytest.mark.parametrize("content", [b"", b"\n", b"\x00", b"\xef\xbb\xbf", b"404 not found"])
def test_a_table_that_is_none_is_refused(gpus, content):
    """An empty file is what a full disk may leave of one that another program copied."""
    gpus.write_bytes(content)
    with pytest.raises(DataError, match=r"gpus\.csv:1: "):
        snapshot.load(gpus.parents[1])


def test_a_table_that_is_missing_is_named(gpus):
    """A snapshot has three."""
    gpus.unlink()
    with pytest.raises(
        DataError, match=r"gpus\.csv is missing. Run `webmon fetch` to write a whole snapshot"
    ):
        snapshot.load(gpus.parents[1])


def test_a_table_that_can_not_be_read_is_named(gpus):
    """Here it is a folder; a file of another user says the same."""
    gpus.unlink()
    gpus.mkdir()
    with pytest.raises(DataError, match=r"gpus\.csv can't be read: .*Check its owner and mode"):
        snapshot.load(gpus.parents[1])


@given(place=st.floats(0, 1), lost=st.integers(0, 30), added=st.binary(max_size=8))
def test_any_damage_is_a_snapshot_or_one_clear_error(tmp_path_factory, place, lost, added):
    """Bytes lost, changed and added anywhere."""
    folder = tmp_path_factory.mktemp("data")
    file = snapshot.save(folder, FULL, keep=1) / "processes.csv"
    content = file.read_bytes()
    cut = int(place * len(content))
    file.write_bytes(content[:cut] + added + content[cut + lost :])
    try:
        snapshot.load(folder)
    except DataError as error:
        said = str(error)
    else:
        return
    assert re.search(r"processes\.csv:\d+: ", said)


def test_a_damaged_snapshot_does_not_stop_the_next(gpus):
    """It is put aside with all the others when its time has come."""
    gpus.write_bytes(b"?")
    snapshot.save(gpus.parents[1], at(1), keep=3)
    assert snapshot.load(gpus.parents[1]) == at(1)


def test_no_host_can_write_a_table_that_can_not_be_read(tmp_path):
    """Thousands of users with long names on one card: a cell that readers of CSV would refuse."""
    owners = "".join(f"{pid} {pid} {pid}{'x' * 4000} 5 {'y' * 100}\n" for pid in range(1, 2001))
    rows = "".join(f"GPU-7b1d9bbe-ab86-4df7-8a26-ae75b50e9ddf, {pid}, 1, x\n" for pid in range(1, 2001))
    reading = read(answer(processes=rows, owners=owners))
    taken = assemble([Answer("gpu01", reading, NOW, 1)], None, Rules(), Privacy(), NOW)
    assert len(taken.gpus[0].users) == 2000
    snapshot.save(tmp_path, taken, keep=1)
    assert snapshot.load(tmp_path) == taken
