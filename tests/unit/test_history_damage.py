"""A history that is damaged, that others have put things into, or that can't be written."""

from __future__ import annotations

import gzip
import os
import resource
import shutil
import signal
import sys
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from past_polls import COLUMNS, START, append, files, later, numbers

from webmon.errors import DataError, StorageError
from webmon.store import history

DAY = "2026-11-18.csv"


@pytest.fixture
def two_polls(tmp_path):
    """A data folder with two polls, its file, and where the second one starts in it."""
    append(tmp_path, number=1)
    file = tmp_path / "history" / DAY
    start = file.stat().st_size
    append(tmp_path, later(minutes=5), 2)
    return tmp_path, file, start


def test_a_poll_that_was_cut_anywhere_is_read_up_to_its_last_whole_line(two_polls):
    """At every one of its bytes; and the next poll stands on a line of its own."""
    folder, file, start = two_polls
    content = file.read_bytes()
    for end in range(start, len(content)):
        file.write_bytes(content[:end])
        whole = content[start:end].count(b"\n")
        assert numbers(folder) == ([1, 2] if whole else [1])
        append(folder, later(minutes=10), 3)
        assert numbers(folder) == ([1, 2, 3] if whole else [1, 3])
        kept = content[: content.rfind(b"\n", 0, end) + 1]
        after = file.read_bytes()
        assert after.startswith(kept)
        assert after[len(kept) :].startswith(b"2026-11-18T08:15:00Z,gpu01,0,")


@pytest.mark.parametrize("left", [b"", b"time,host", b"\x00" * 100_000, b"x" * 200_000])
def test_a_file_without_a_whole_line_starts_anew(tmp_path, left):
    """Empty, a torn header, or what a loss of power leaves; it gets its header."""
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / DAY).write_bytes(left)
    assert numbers(tmp_path) == []
    append(tmp_path, number=5)
    assert (tmp_path / "history" / DAY).read_text().startswith(f"{COLUMNS}\n2026")
    assert numbers(tmp_path) == [5]


@pytest.mark.parametrize("left", [b"", b"time,host"])
def test_a_day_without_a_whole_line_is_not_closed_but_removed(tmp_path, left):
    """There is nothing to keep."""
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / DAY).write_bytes(left)
    append(tmp_path, later(days=1), 5)
    assert files(tmp_path) == ["2026-11-19.csv"]


@pytest.mark.parametrize("closed_is", ["whole", "cut", "garbage"])
def test_a_run_that_was_killed_while_it_closed_a_day_leaves_nothing_twice(two_polls, closed_is):
    """The .gz is there, the .csv still is, too; if the .gz is damaged since, the .csv makes it whole."""
    folder, file, _ = two_polls
    shutil.copy(file, folder / "kept")
    append(folder, later(days=1), 3)
    shutil.copy(folder / "kept", file)
    closed = file.with_name(f"{DAY}.gz")
    content = {"whole": closed.read_bytes(), "cut": closed.read_bytes()[:-30], "garbage": b"\x1f\x8b?"}
    closed.write_bytes(content[closed_is])
    assert numbers(folder) == [1, 2, 3]
    append(folder, later(days=1, minutes=5), 4)
    assert files(folder) == [closed.name, "2026-11-19.csv"]
    assert sorted(gzip.decompress(closed.read_bytes()).splitlines()[1:]) == sorted(
        (folder / "kept").read_bytes().splitlines()[1:]
    )
    assert numbers(folder) == [1, 2, 3, 4]


def test_what_can_be_read_of_a_damaged_archive_is(tmp_path):
    """A day of many polls, cut in the middle, or with a byte that has changed."""
    for number in range(200):
        append(tmp_path, later(seconds=number), number)
    append(tmp_path, later(days=1), 999)
    closed = tmp_path / "history" / f"{DAY}.gz"
    content = closed.read_bytes()
    for damaged in (content[: len(content) // 2], content[:-12] + b"\xff" + content[-11:], content + b"junk"):
        closed.write_bytes(damaged)
        found = numbers(tmp_path)
        assert found[-1] == 999
        assert found[:20] == list(range(20))
        assert found[:-1] == list(range(len(found) - 1))
    closed.write_bytes(b"no archive")
    assert numbers(tmp_path) == [999]


@pytest.mark.parametrize(
    "line",
    [
        b'2026-11-18T08:06:00Z,gpu01,0,"GPU-a,NVIDIA A100,busy,5,1,2,3,4,\n',
        b'2026-11-18T08:06:00Z,gpu01,0,GPU-a,NVI"DIA A100,busy,5,1,2,3,4\n',
        b"2026-11-18T08:06:00Z,gpu01,0,GPU-a,NVIDIA\rA100,busy,5,1,2,3,4,\n",
        b"2026-11-18T08:06:00Z,gpu01,0,GPU-a\n",
        b"2026-11-18T08:06:00Z,gpu01,zero,GPU-a,x,busy,5,1,2,3,4,\n",
        b"2026-11-18T08:06:00Z,gpu01,0,GPU-a,x,asleep,5,1,2,3,4,\n",
        b"2026-13-18T08:06:00Z,gpu01,0,GPU-a,x,busy,5,1,2,3,4,\n",
        b"2026-11-18T08:06:00Z,gpu01,0," + b"y" * 200_000 + b",x,busy,5,1,2,3,4,\n",
        b"\n\n,,,\n\x00\x00\n\xff\xfe\n",
    ],
)
def test_a_line_that_makes_no_sense_is_passed_over(two_polls, line):
    """The ones before and after it are read."""
    folder, file, start = two_polls
    content = file.read_bytes()
    file.write_bytes(content[:start] + line + content[start:])
    assert numbers(folder) == [1, 2]


def test_a_name_that_is_no_text_is_shown_as_far_as_it_is(two_polls):
    """The line's numbers are good."""
    folder, file, _ = two_polls
    file.write_bytes(file.read_bytes().replace(b"NVIDIA", b"NV\xffIDIA"))
    assert numbers(folder) == [1, 2]
    assert history.read(folder, ["gpu01"], START.date())[0].name == "NV\ufffdIDIA A100"


@given(place=st.floats(0, 1), lost=st.integers(0, 60), added=st.binary(max_size=12))
def test_any_damage_costs_no_more_than_lines(tmp_path_factory, place, lost, added):
    """Bytes lost and added anywhere: no exception, and the next poll is found."""
    folder = tmp_path_factory.mktemp("data")
    append(folder, number=1)
    file = folder / "history" / DAY
    content = file.read_bytes()
    cut = int(place * len(content))
    file.write_bytes(content[:cut] + added + content[cut + lost :])
    numbers(folder)
    append(folder, later(minutes=5), 2)
    assert numbers(folder)[-1] == 2


def test_what_others_have_put_there_stays_and_is_not_read(tmp_path):
    """Notes, links, folders and pipes, even if they are named as a day is."""
    append(tmp_path, number=1)
    folder = tmp_path / "history"
    outside = tmp_path / "outside.csv"
    outside.write_text((folder / DAY).read_text())
    (folder / "notes.csv").write_text("mine")
    (folder / "2026-02-31.csv").write_text("no day")
    (folder / "2020-01-01.csv").symlink_to(outside)
    (folder / "2020-01-02.csv").mkdir()
    (folder / "2020-01-03.csv.gz").symlink_to("/dev/zero")
    os.mkfifo(folder / "2020-01-04.csv")
    append(tmp_path, later(days=1), 2, keep_days=1)
    append(tmp_path, later(days=5), 3, keep_days=1)
    assert files(tmp_path) == [
        "2020-01-01.csv", "2020-01-02.csv", "2020-01-03.csv.gz", "2020-01-04.csv",
        "2026-02-31.csv", "2026-11-23.csv", "notes.csv",
    ]  # fmt: skip
    assert numbers(tmp_path) == [3]
    for day in range(1, 5):
        assert history.read(tmp_path, ["gpu01"], date(2020, 1, day)) == []


@pytest.mark.parametrize("make", ["link", "folder", "pipe"])
def test_nothing_is_written_to_what_is_no_file_of_ours(tmp_path, make):
    """One clear line; what a link points to is as it was."""
    (tmp_path / "history").mkdir()
    today, other = tmp_path / "history" / DAY, tmp_path / "other"
    other.write_text("theirs")
    {"link": lambda: today.symlink_to(other), "folder": today.mkdir, "pipe": lambda: os.mkfifo(today)}[make]()
    with pytest.raises(DataError, match=r"history can't be written: "):
        append(tmp_path)
    assert other.read_text() == "theirs"


def test_a_history_that_is_a_file_is_told(tmp_path):
    """It has to be a folder."""
    (tmp_path / "history").write_text("?")
    with pytest.raises(DataError, match=r"history can't be written: "):
        append(tmp_path)


def test_a_full_disk_leaves_no_half_of_a_poll(tmp_path):
    """The file is as it was, whatever of the poll had room; later it goes on. In a process of its own."""
    append(tmp_path, number=1)
    file = tmp_path / "history" / DAY
    before = file.read_bytes()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 100, -1))
        try:
            append(tmp_path, later(minutes=5), 2)
        except StorageError as error:
            os._exit(0 if "Free some space" in str(error) else 3)
        os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert file.read_bytes() == before
    append(tmp_path, later(minutes=10), 3)
    assert numbers(tmp_path) == [1, 3]


def test_a_day_that_can_not_be_closed_is_kept_as_it_is(tmp_path):
    """Here the disk is full; it is closed when there is room again."""
    for number in range(30):
        append(tmp_path, later(seconds=number), number)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (450, -1))
        try:
            append(tmp_path, later(days=1), 30)
        except StorageError:
            os._exit(0)
        os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert files(tmp_path) == [DAY, "2026-11-19.csv"]
    assert numbers(tmp_path) == list(range(31))
    append(tmp_path, later(days=1, minutes=1), 31)
    assert files(tmp_path) == [f"{DAY}.gz", "2026-11-19.csv"]
    assert numbers(tmp_path) == list(range(32))


def test_a_day_that_can_not_be_closed_stops_no_other(tmp_path):
    """It is named, and those that are too old are removed as ever."""
    for number in range(5):
        append(tmp_path, later(days=number), number, tidy=False)
    # What it would be closed into is taken by a folder with something in it.
    (tmp_path / "history" / "2026-11-21.csv.gz").mkdir()
    (tmp_path / "history" / "2026-11-21.csv.gz" / "x").touch()
    with pytest.raises(DataError, match=r"2026-11-21\.csv can't be written"):
        history.tidy(tmp_path, later(days=4), 2)
    assert [name for name in files(tmp_path) if name != "2026-11-21.csv.gz"] == [
        "2026-11-20.csv.gz", "2026-11-21.csv", "2026-11-22.csv",
    ]  # fmt: skip
    assert numbers(tmp_path) == [2, 3, 4]


def test_kill_9_at_any_moment_leaves_whole_lines_only(tmp_path):
    """A process that appends poll after poll, over midnights, is killed thirty times."""
    done = Path(tmp_path / "done")
    next_number = 0
    for attempt in range(30):
        child = os.fork()
        if child == 0:
            for number in range(next_number, next_number + 100_000):
                append(tmp_path, later(hours=number), number)
                done.write_text(str(number))
        # What a run does takes about a millisecond: a different part of one each time.
        signal.sigtimedwait([], 0.02 + attempt * 0.0007)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        found = numbers(tmp_path)
        said = int(done.read_text() or -1) if done.exists() else -1
        assert found == sorted(set(found))
        assert set(range(min(found, default=0), said + 1)) <= set(found)
        next_number = max(found, default=-1) + 1
    assert next_number > 30


def test_kill_9_before_any_step_of_a_midnight_costs_nothing(tmp_path):
    """A run that appends, closes a day and removes another is killed before its first step, its second …"""
    steps, code = 0, None
    while code != 0:
        folder = tmp_path / str(steps)
        for number in range(3):
            append(folder, later(days=number), number, keep_days=2)
        child = os.fork()
        if child == 0:
            _die_before(steps)
            append(folder, later(days=3), 3, keep_days=2)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found = numbers(folder)
        assert found in ([0, 1, 2], [0, 1, 2, 3], [1, 2, 3])
        append(folder, later(days=3, minutes=1), 4, keep_days=2)
        assert numbers(folder) == ([1, 2, 3, 4] if 3 in found else [1, 2, 4])
        assert not [name for name in files(folder) if name.endswith(".csv")][1:]
        steps += 1
    assert steps > 10


def _die_before(step):
    """Kill this process before its so-many-th operation on files."""
    left = step

    def hook(event, _):
        nonlocal left
        if event == "open" or event.startswith("os."):
            left -= 1
            if left < 0:
                os._exit(9)

    sys.addaudithook(hook)
