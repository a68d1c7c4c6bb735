"""What is removed when: rollups outlive the days, and nothing goes while the clock may be wrong."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta

import pytest

from webmon.store import history
from webmon.store.rollup import Rollups

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)


def put(folder, name, day):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    when = datetime(day.year, day.month, day.day, 23, 55, tzinfo=UTC).timestamp()
    os.utime(path, (when, when))
    return path


@pytest.fixture
def past(tmp_path):
    """Twenty days of history and rollups, as old as they say, and today."""
    for ago in range(20):
        day = NOW.date() - timedelta(days=ago)
        put(tmp_path, f"history/{day}.csv{'.gz' if ago else ''}", day)
        for kind in (".csv", "-hours.csv", "-gpus.csv.gz"):
            put(tmp_path, f"rollups/{day}{kind}", day)
    return tmp_path


def days(folder, kind):
    return sorted(path.name[:10] for path in (folder / "rollups").glob(f"????-??-??{kind}"))


def test_cards_go_with_the_history_and_sums_later(past):
    """So many days before today stay."""
    Rollups(past, NOW, save=True).remove_old(5, 12)
    assert [len(days(past, kind)) for kind in (".csv", "-hours.csv", "-gpus.csv.gz")] == [13, 13, 6]
    assert days(past, ".csv")[0] == "2026-11-06"


def test_sums_are_not_removed_before_the_days_that_they_are_of(past):
    """With a smaller `keep_rollup_days`: they would be made again with each run."""
    Rollups(past, NOW, save=True).remove_old(15, 2)
    assert {len(days(past, kind)) for kind in (".csv", "-hours.csv", "-gpus.csv.gz")} == {16}


@pytest.mark.parametrize("with_history", [True, False])
def test_nothing_goes_while_the_clock_may_be_wrong(past, with_history):
    """A hundred years ahead everything is old; the same if the history has been deleted."""
    if not with_history:
        for path in (past / "history").iterdir():
            path.unlink()
    later = NOW.replace(year=2126)
    for _ in range(2):
        Rollups(past, later, save=True).remove_old(5, 12)
        assert len(days(past, ".csv")) == 20
    for number in range(3):
        put(
            past,
            f"history/{later.date() + timedelta(days=number)}.csv",
            later.date() + timedelta(days=number),
        )
    Rollups(past, later + timedelta(days=3), save=True).remove_old(5, 12)
    assert days(past, ".csv") == []


def test_what_is_not_ours_stays(past, tmp_path):
    """Other names, folders, links and what they point to; leftovers of a run that was killed go."""
    outside = put(tmp_path, "elsewhere/2020-01-01.csv", date(2020, 1, 1))
    kept = [
        put(past, f"rollups/{name}", date(2020, 1, 1))
        for name in ("notes.txt", "2020-01-01.csv.bak", "2020-13-01.csv", "x2020-01-01.csv", "2020-01-01.CSV")
    ]
    (past / "rollups" / "2020-01-02.csv").mkdir()
    (past / "rollups" / "2020-01-03.csv").symlink_to(outside)
    (past / "rollups" / "2020-01-04-gpus.csv.gz").symlink_to(past / "rollups" / "2020-01-04-gpus.csv.gz")
    leftover = put(past, "rollups/.2026-11-01.csv.0123abcd", date(2026, 11, 1))
    sums = Rollups(past, NOW, save=True)
    sums.remove_old(5, 12)
    assert all(path.exists() for path in (*kept, outside, past / "rollups" / "2020-01-02.csv"))
    assert (past / "rollups" / "2020-01-03.csv").is_symlink()
    assert not leftover.exists()
    assert date(2020, 1, 3) not in sums.known_days()


def test_no_rollups_no_trouble(tmp_path):
    """Nor without a data folder."""
    Rollups(tmp_path / "nothing", NOW).remove_old(5, 12)
    assert not (tmp_path / "nothing").exists()


def test_a_file_that_vanishes_meanwhile(past, monkeypatch):
    """Somebody else tidies up, too."""
    whole = os.scandir

    def scandir(folder):
        entries = list(whole(folder))
        for entry in entries:
            if entry.name.startswith("2026-10-31"):
                os.unlink(entry.path)

        class Listing(list):
            def __enter__(self):
                return self

            def __exit__(self, *_):
                return None

        return Listing(entries)

    monkeypatch.setattr(os, "scandir", scandir)
    sums = Rollups(past, NOW, save=True)
    sums.remove_old(5, 12)
    monkeypatch.undo()
    assert days(past, ".csv")[0] == "2026-11-06"
    history.tidy(past, NOW, 5)
    assert len(history.days(past)) == 6
