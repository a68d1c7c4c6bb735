"""The history: what is in it, a file for each UTC day, closed and removed when its time has come."""

from __future__ import annotations

import os
import stat
import subprocess
from datetime import date, timedelta, timezone

import pytest
from past_polls import COLUMNS, FULL, START, append, files, later, numbers, on_first, poll

from webmon.availability import Rules
from webmon.model import Snapshot
from webmon.store import history

DAY = "2026-11-18.csv"


def test_every_card_has_a_row_with_what_is_known_of_it(tmp_path):
    """Users come with the memory of all their processes; of a host that is down nothing is known."""
    append(tmp_path)
    assert (tmp_path / "history" / DAY).read_text() == f"{COLUMNS}\n{FULL}"


def test_a_reader_gets_what_was_written(tmp_path):
    """As values again, of the hosts that were asked for."""
    append(tmp_path)
    first, second = history.read(tmp_path, ["gpu01"], START.date())
    assert first == history.Sample(
        START.replace(microsecond=0), "gpu01", 0, "GPU-a", "NVIDIA A100", "busy", 97, 78000, 81920, 389.5, 71,
        ("alice=6400", "bob=1618"),
    )  # fmt: skip
    assert (second.index, second.state, second.users) == (1, "free", ())
    (down,) = history.read(tmp_path, ["gpu02"], START.date())
    assert (down.state, down.utilization_pct, down.memory_total_mib) == ("unknown", None, None)
    assert len(history.read(tmp_path, ["gpu01", "gpu02"], START.date())) == 3
    assert history.read(tmp_path, ["gpu0", "gpu"], START.date()) == []


@pytest.mark.parametrize(
    ("processes", "users"),
    [
        ([on_first("alice", 100), on_first("alice", None)], "alice="),
        ([on_first("alice", 0)], "alice=0"),
        ([on_first("alice", 100), on_first("alice", 900, name="/usr/lib/xorg/Xorg")], "alice=100"),
        ([on_first("alice", None, name="(claim)")], "alice="),
        ([on_first(None, 500), on_first("bob", 1)], "bob=1"),
        ([on_first("alice", 7)._replace(gpu_uuid=None)], "alice="),
        ([on_first("a,b", 7), on_first('c"d', 8)], '"a,b=7;c""d=8"'),
        ([], ""),
    ],
)
def test_memory_that_is_not_known_is_not_counted_as_none(tmp_path, processes, users):
    """Of processes on no card that is known, and of those that don't say; ignored ones don't count."""
    append(tmp_path, processes=processes)
    line = (tmp_path / "history" / DAY).read_text().splitlines()[1]
    assert line.split(",71,", 1)[1] == users
    (sample, _) = history.read(tmp_path, ["gpu01"], START.date())
    assert [user.rpartition("=")[0] for user in sample.users] == sorted(
        {one.user for one in processes if one.user}
    )


def test_a_day_has_one_header(tmp_path):
    """The polls of a day stand below each other."""
    for number in range(5):
        append(tmp_path, later(minutes=number), number)
    lines = (tmp_path / "history" / DAY).read_text().splitlines()
    assert (lines.count(COLUMNS), lines[0], len(lines)) == (1, COLUMNS, 16)
    assert numbers(tmp_path) == [0, 1, 2, 3, 4]


def test_the_day_is_that_of_utc(tmp_path):
    """Whatever the zone of the clock that is looked at."""
    append(tmp_path, START.replace(hour=23).astimezone(timezone(timedelta(hours=5))))
    assert files(tmp_path) == [DAY]
    assert (tmp_path / "history" / DAY).read_text().splitlines()[1].startswith("2026-11-18T23:05:00Z,")


def test_a_day_that_is_over_is_compressed(tmp_path):
    """With the first poll after midnight; zcat shows it, and readers see no difference."""
    append(tmp_path, START.replace(hour=23, minute=55), 1)
    append(tmp_path, START.replace(day=19, hour=0, minute=0), 2)
    assert files(tmp_path) == ["2026-11-18.csv.gz", "2026-11-19.csv"]
    closed = tmp_path / "history" / "2026-11-18.csv.gz"
    shown = subprocess.run(["gzip", "-dc", closed], capture_output=True, text=True, check=True, timeout=10)
    assert shown.stdout.startswith(f"{COLUMNS}\n2026-11-18T23:55:00Z,gpu01,0,")
    assert len(shown.stdout.splitlines()) == 4
    assert numbers(tmp_path) == [1, 2]


def test_everybody_may_read_it(tmp_path):
    """Whatever the umask, both kinds of file, and the folder."""
    before = os.umask(0o077)
    try:
        append(tmp_path)
        append(tmp_path, later(days=1))
    finally:
        os.umask(before)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "history").iterdir()}
    assert modes == {0o644}
    assert stat.S_IMODE((tmp_path / "history").stat().st_mode) == 0o755


def test_old_days_are_removed(tmp_path):
    """So many closed days stay, and today."""
    for number in range(6):
        append(tmp_path, later(days=number), number, keep_days=3)
    assert history.days(tmp_path) == [date(2026, 11, day) for day in (20, 21, 22, 23)]
    assert numbers(tmp_path) == [2, 3, 4, 5]


def test_a_clock_that_jumps_ahead_once_costs_no_day(tmp_path):
    """A poll of the year 2126 is a poll of its own; the days before stay as they are."""
    for number in range(3):
        append(tmp_path, later(days=number), number, keep_days=3)
    append(tmp_path, START.replace(year=2126), 99, keep_days=3)
    append(tmp_path, later(days=3), 3, keep_days=3)
    assert numbers(tmp_path) == [0, 1, 2, 3, 99]


def test_nor_does_one_that_is_wrong_for_some_days(tmp_path):
    """It would make everything old that there is. It is believed when it has been so for three days."""
    for number in range(3):
        append(tmp_path, later(days=number), number, keep_days=3)
    for number in range(3):
        append(tmp_path, later(days=number).replace(year=2126), 90 + number, keep_days=3)
        assert numbers(tmp_path)[:3] == [0, 1, 2]
    append(tmp_path, later(days=3).replace(year=2126), 93, keep_days=3)
    assert numbers(tmp_path) == [90, 91, 92, 93]


@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_single_day_that_is_too_old_is_removed(tmp_path, ending):
    """With the first poll, if somebody has put it there just now."""
    (tmp_path / "history").mkdir()
    (tmp_path / "history" / f"2026-01-01{ending}").write_bytes(b"")
    os.utime(tmp_path / "history" / f"2026-01-01{ending}", (START.timestamp(), START.timestamp()))
    append(tmp_path, keep_days=30)
    assert files(tmp_path) == ["2026-11-18.csv"]


def test_columns_of_a_later_webmon_are_passed_over(tmp_path):
    """They come after ours."""
    append(tmp_path, number=7)
    file = tmp_path / "history" / "2026-11-18.csv"
    header, *rows = file.read_text().splitlines()
    file.write_text("\n".join([f"{header},encoder_pct", *(f"{row},5" for row in rows), ""]))
    assert numbers(tmp_path) == [7]


def test_a_clock_that_goes_back_loses_nothing_and_doubles_nothing(tmp_path):
    """To the day before, which is closed already, and gets its new polls when it is closed again."""
    append(tmp_path, later(days=0), 0)
    append(tmp_path, later(days=1), 10)
    append(tmp_path, later(minutes=1), 1)
    assert numbers(tmp_path) == [0, 1, 10]
    append(tmp_path, later(days=1, minutes=1), 11)
    assert files(tmp_path) == ["2026-11-18.csv.gz", "2026-11-19.csv"]
    assert numbers(tmp_path) == [0, 1, 10, 11]


def test_a_clock_that_goes_back_within_the_day_is_put_in_order(tmp_path):
    """By the times, as a reader wants them."""
    for minutes in (10, 0, 5):
        append(tmp_path, later(minutes=minutes), minutes)
    assert numbers(tmp_path) == [0, 5, 10]


def test_a_lab_without_cards_has_a_history_without_rows(tmp_path):
    """A header, and nothing to read."""
    history.append(tmp_path, Snapshot(START, poll().hosts), Rules())
    assert (tmp_path / "history" / DAY).read_text() == f"{COLUMNS}\n"
    assert numbers(tmp_path) == []
    append(tmp_path, later(days=1), 5)
    assert numbers(tmp_path) == [5]


def test_there_may_be_no_history_yet(tmp_path):
    """Nor a data folder."""
    assert history.days(tmp_path / "nothing") == []
    assert history.read(tmp_path / "nothing", ["gpu01"], START.date()) == []


def test_the_longest_list_of_users_can_be_read_again(tmp_path):
    """Two thousand of them, with long names."""
    crowd = [on_first(f"{'x' * 40}{number:04}", 80000) for number in range(2000)]
    append(tmp_path, processes=crowd)
    (sample, _) = history.read(tmp_path, ["gpu01"], START.date())
    assert len(sample.users) == 2000
