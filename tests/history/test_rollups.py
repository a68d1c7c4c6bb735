"""Rollups: with them, without them, with some of them, the figures are the same."""

from __future__ import annotations

import csv
import gzip
import os
import shutil
from datetime import UTC, date, datetime, timedelta

import month
import pytest
from figures import agree, compare, rollups

from webmon.errors import DataError
from webmon.store import days as day_files
from webmon.store import history, stats
from webmon.store.rollup import Rollups

DAY = date(2026, 11, 3)
KINDS = (".csv", "-hours.csv", "-gpus.csv.gz")
TODAY = month.END.date()


def files(folder):
    return {path.name: path.stat().st_mtime_ns for path in (folder / "rollups").iterdir()}


def test_three_files_for_each_day_that_is_over_and_one_for_today(summed):
    """The sums, the hours, the cards; as old as the history that they are made of."""
    days = [date(2026, 10, 19) + timedelta(days=n) for n in range(month.DAYS)]
    wanted = {f"{day}{kind}" for day in days for kind in KINDS} | {f"{TODAY}-gpus.csv.gz"}
    assert set(files(summed)) == wanted
    for day in days:
        (raw,) = (summed / "history").glob(f"{day}.csv*")
        assert {files(summed)[f"{day}{kind}"] for kind in KINDS} == {raw.stat().st_mtime_ns}


def test_rollups_that_are_deleted_are_made_again(data):
    """The same figures while they are made, and after; the same files."""
    before = files(data)
    shutil.rmtree(data / "rollups")
    agree(data, save=True)
    assert files(data) == before
    agree(data)


def test_a_data_folder_that_is_only_read(raw):
    """Nothing is written, each day is summed up once, and the figures are the same."""
    sums = agree(raw)
    assert not (raw / "rollups").exists()
    assert sums.unsaved is None
    before = dict(sums._made)
    stats.past(sums)
    assert all(sums._made[day] is tables for day, tables in before.items())


def test_a_folder_that_can_not_be_written_is_told_and_the_figures_are_there(week):
    """`unsaved` says why."""
    (week / "rollups").write_text("in the way")
    sums = agree(week, (7,), save=True)
    assert "rollups" in sums.unsaved.problem
    assert (week / "rollups").read_text() == "in the way"


def _cut(path, part):
    about = path.stat()
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * part)])
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


DAMAGES = {
    "deleted": lambda path: path.unlink(),
    "empty": lambda path: _cut(path, 0),
    "cut": lambda path: _cut(path, 0.618),
    "garbage": lambda path: path.write_bytes(b"\x00\xff\n" * 500),
    "other version": lambda path: path.write_bytes(b"day,hours\n2026-11-03,1e9\n"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link to nothing": lambda path: (path.unlink(), path.symlink_to("nowhere")),
}


@pytest.mark.parametrize("kinds", [KINDS[:1], KINDS[1:], KINDS], ids=str)
def test_damaged_rollups_are_made_again(data, kinds):
    """Whatever is wrong: deleted, cut off, garbage, of another version; each on a day of its own."""
    before = stats.past(rollups(data))
    for number, damage in enumerate(DAMAGES.values()):
        for kind in kinds:
            damage(data / "rollups" / f"{TODAY - timedelta(days=number + 1)}{kind}")
    sums = rollups(data, save=True)
    after = stats.past(sums)
    compare(after.windows[1], 1)
    compare(after.windows[30], 30)
    assert [hour.start for hour in after.hours] == [hour.start for hour in before.hours]
    for one, other in zip(after.hours, before.hours, strict=True):
        assert one.total == pytest.approx(other.total, rel=1e-5)
    assert (
        (data / "rollups" / f"{TODAY - timedelta(days=3)}.csv").read_bytes().startswith(b"day,polled_hours")
    )
    agree(data, (30,))


@pytest.mark.parametrize("cell", ["nan", "-inf", "x", "1e999"])
def test_numbers_in_a_rollup_that_are_none(data, cell):
    """That day is made again."""
    path = data / "rollups" / f"{DAY}.csv"
    about = path.stat()
    lines = path.read_text().splitlines()
    lines[3] = f"{lines[3].rpartition(',')[0]},{cell}"
    path.write_text("\n".join(lines) + "\n")
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    agree(data, (30,))


def test_today_that_is_damaged(data):
    """The hours of today that are over are made of the history again."""
    _cut(data / "rollups" / f"{TODAY}-gpus.csv.gz", 0.5)
    agree(data, (1,), save=True)
    agree(data, (1,), save=True)


def test_a_day_that_is_closed_stays_summed_up(data):
    """Compressing it leaves its time, so nothing is made anew."""
    path = data / "history" / f"{DAY}.csv"
    closed = path.with_name(f"{path.name}.gz")
    about = closed.stat()
    path.write_bytes(gzip.decompress(closed.read_bytes()))
    closed.unlink()
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    before = files(data)
    agree(data, (30,), save=True)
    day_files.close(path)
    agree(data, (30,), save=True)
    assert not path.exists()
    assert files(data) == before


def test_a_year_of_rollups_outlives_the_days(data):
    """With `keep_days` over, only the sums are left; the last days are there in full."""
    history.tidy(data, month.END, 3)
    rollups(data, save=True).remove_old(3, 400)
    assert len(history.days(data)) == 4
    assert len([name for name in files(data) if name.endswith("-gpus.csv.gz")]) == 4
    agree(data, (1, 365))
    agree(data, (365,), save=True)
    assert len([name for name in files(data) if name.endswith("-hours.csv")]) == month.DAYS


def test_a_window_that_starts_in_a_day_of_which_only_sums_are_left(data):
    """So much of the day as is in it, as if the day had been all alike: all users' hours are a quarter."""
    history.tidy(data, month.END, 3)
    rollups(data, save=True).remove_old(3, 400)
    start = int(datetime(2026, 10, 20, 18, tzinfo=UTC).timestamp())
    frame = rollups(data).totals_after(start)
    assert frame["hours"].sum() == pytest.approx(5 * 6, rel=0.001)
    assert frame.drop_duplicates("day")["polled_hours"].sum() == pytest.approx(6, rel=0.001)


def test_samples_that_are_added_to_a_closed_day(data):
    """By `history import`: the day is summed up again, and the one after, as its first poll depends on it."""
    before = stats.window(rollups(data), 30)
    moment = datetime(2026, 11, 3, 23, 57, 50, tzinfo=UTC)
    sample = history.Sample(moment, "new.lab", 0, "GPU-n", "RTX", "busy", 100, users=("zoe=",))
    assert history.add(data, [sample, sample]) == 1
    assert history.add(data, [sample]) == 0
    for _ in range(2):
        window = stats.window(rollups(data, save=True), 30)
        assert window.users["zoe"].hours == pytest.approx(300 / 3600, abs=0.003)
        assert window.hosts["new.lab"].hours == window.users["zoe"].hours
        # Another host's poll takes nothing of theirs.
        for host, use in before.hosts.items():
            assert window.hosts[host] == pytest.approx(use, rel=1e-6), host
        assert 0 <= window.polled_hours - before.polled_hours < 300 / 3600
        history.tidy(data, month.END, 90)
        assert not (data / "history" / "2026-11-03.csv").exists()


def test_polls_of_other_hosts_between_the_polls_take_nothing_away(tmp_path):
    """Two tools that looked at hosts of their own, two minutes apart: each host has its whole day."""
    start = datetime(2026, 11, 3, tzinfo=UTC)
    for host, late in (("a", 0), ("c", 2)):
        times = [start + timedelta(minutes=5 * number + late) for number in range(1, 288)]
        history.add(tmp_path, [history.Sample(time, host, 0, state="busy") for time in times])
    end = start + timedelta(days=1)
    window = stats.window(Rollups(tmp_path, end), 1)
    assert {host: round(use.busy, 1) for host, use in window.hosts.items()} == {"a": 23.9, "c": 23.9}
    assert window.polled_hours == pytest.approx(24, abs=0.1)


def test_a_fetch_between_hourly_polls_takes_nothing_away(tmp_path):
    """What somebody fetched by hand, once in an hour, is more knowledge, not less."""
    start = datetime(2026, 11, 3, tzinfo=UTC)
    by_hand = [timedelta(hours=9, minutes=5), timedelta(hours=15, minutes=50)]
    times = sorted([*(timedelta(hours=hour) for hour in range(49)), *by_hand])
    history.add(tmp_path, [history.Sample(start + time, "a", 0, state="busy") for time in times])
    window = stats.window(Rollups(tmp_path, start + timedelta(days=1, hours=23)), 1)
    assert window.total.busy == pytest.approx(24, rel=0.001)
    whole = stats.window(Rollups(tmp_path, start + timedelta(days=2)), 2).total.busy
    assert whole == pytest.approx(48, rel=0.001)


@pytest.mark.parametrize(("every", "minute", "second"), [(5, 59, 50), (15, 58, 0), (30, 45, 0), (60, 30, 0)])
def test_a_window_that_starts_just_before_an_hour(tmp_path, every, minute, second):
    """What the first poll of that hour stands for is partly before the window."""
    start = datetime(2026, 11, 3, tzinfo=UTC)
    end = start + timedelta(days=1, hours=11, minutes=minute, seconds=second)
    times = [start + timedelta(minutes=every * number) for number in range(2 * 24 * 60 // every)]
    polls = [*(time for time in times if time < end), end]
    history.add(tmp_path, [history.Sample(time, "a", 0, state="busy") for time in polls])
    assert stats.window(Rollups(tmp_path, end), 1).total.busy == pytest.approx(24, rel=0.001)


def test_a_row_with_a_cell_too_many_is_no_row_of_ours(data):
    """It is summed up again, and nothing is printed."""
    path = data / "rollups" / "2026-11-03.csv"
    about, good = path.stat(), path.read_text()
    header, first, rest = good.split("\n", 2)
    path.write_text(f"{header}\n{first},1\n" + "".join(f"{row},1\n" for row in rest.splitlines()))
    os.utime(path, ns=(about.st_mtime_ns, about.st_mtime_ns))
    agree(data)
    stats.window(rollups(data, save=True), 30)
    assert len({len(row) for row in csv.reader(path.read_text().splitlines())}) == 1
    agree(data)


def test_sums_as_of_an_earlier_moment(data):
    """What is after it doesn't count: the clock went back, or somebody asks."""
    end = max(time for time, _, _ in month.polls() if time < month.LAST - 2 * 86400 + 60)
    end = datetime.fromtimestamp(end, UTC)
    start = int(end.timestamp()) - 86400
    window = stats.window(Rollups(data, end), 1)
    wanted = month.answers(start, int(end.timestamp()))
    assert window.total.hours == pytest.approx(120, abs=0.02)
    assert window.total.energy == pytest.approx(wanted["total"][""]["energy"], rel=0.001)


def test_little_time_leaves_the_older_days_for_the_next_run(week):
    """The newest are made first, a day is counted once; today is always there."""
    sums = Rollups(week, month.END, save=True, limit_s=0)
    sums.make_all()
    assert sums.left_out == 8
    window = stats.window(sums, 7)
    assert sums.left_out == 8
    assert window.polled_hours == pytest.approx(18.25 + 5.57, abs=0.1)
    sums = rollups(week, save=True)
    sums.make_all()
    assert sums.left_out == 0
    agree(week, (7,))


def test_a_day_that_can_not_be_read_holds_up_no_other(week, monkeypatch):
    """It is told, its figures are those that were saved, or none, and it is read again the next time."""
    whole, bad = day_files.by_hour, TODAY - timedelta(days=3)

    def by_hour(days, day, hours):
        if day == bad:
            raise PermissionError(13, "Permission denied", str(days / f"{day}.csv.gz"))
        return whole(days, day, hours)

    monkeypatch.setattr(day_files, "by_hour", by_hour)
    sums = rollups(week, save=True)
    sums.make_all()
    assert f"{bad}.csv.gz can't be read: Permission denied" in sums.unsaved.problem
    assert stats.window(sums, 7).polled_hours == pytest.approx(168 - 24 - 4, abs=0.2)
    monkeypatch.undo()
    agree(week, (7,), save=True)
    monkeypatch.setattr(day_files, "by_hour", by_hour)
    agree(week, (1, 7))  # it is summed up now
    assert stats.window(Rollups(week, month.END - timedelta(days=2)), 1).polled_hours > 23


def test_a_history_that_is_no_folder_is_an_error_in_one_line(data):
    """Not a traceback."""
    shutil.rmtree(data / "history")
    (data / "history").write_text("in the way")
    with pytest.raises(DataError, match="history can't be read"):
        stats.window(rollups(data), 1)


def test_a_lab_without_cards_and_one_without_a_past(tmp_path):
    """Nothing is nothing, and no error."""
    for folder in (tmp_path / "none", tmp_path / "empty"):
        past = stats.past(rollups(folder, save=True))
        assert (list(past.hours), past.lines) == ([], {})
        assert {window.polled_hours for window in past.windows.values()} <= {0}
        (tmp_path / "empty" / "history").mkdir(parents=True, exist_ok=True)
        (tmp_path / "empty" / "history" / f"{TODAY}.csv").write_text(month.HEADER)


def test_two_that_sum_up_at_once_leave_nothing_twice(week, monkeypatch):
    """A render while a fetch is at work: each writes what it has read, and what it has added to that."""
    early = month.END - timedelta(hours=3)
    Rollups(week, early, save=True).gpus(TODAY)
    one, other = rollups(week, save=True), rollups(week, save=True)
    write = other._write
    monkeypatch.setattr(other, "_write", lambda *args: (one.gpus(TODAY), write(*args)))
    other.gpus(TODAY)
    agree(week, (1,))


def test_a_day_that_vanishes_while_it_is_read(week, monkeypatch):
    """Another run closes it: it is found compressed."""
    day = TODAY - timedelta(days=3)
    path = week / "history" / f"{day}.csv"
    closed = path.with_name(f"{path.name}.gz")
    content = closed.read_bytes()
    path.write_bytes(gzip.decompress(content))
    closed.unlink()
    size = day_files.size

    def closes(days, one):
        if one == day and path.exists():
            day_files.close(path)
        return size(days, one)

    monkeypatch.setattr(day_files, "size", closes)
    agree(week, (7,))
    assert not path.exists()
