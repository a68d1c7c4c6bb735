"""The month as it came: poll by poll over two midnights, with a clock that goes back."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta

import month
import pytest
from figures import WINDOWS, agree

from webmon.store import history, stats
from webmon.store.rollup import Rollups

DAYS_KEPT = 90

# Minutes between two polls here.
STEP = 5


def poll(folder, moment, text, *, render=True):
    """Do what `webmon update` does with the history."""
    path = folder / "history" / f"{moment:%Y-%m-%d}.csv"
    if not path.exists():
        path.write_text(month.HEADER)
    with path.open("a") as file:
        file.write(text)
    os.utime(path, (moment.timestamp(), moment.timestamp()))
    history.tidy(folder, moment, DAYS_KEPT)
    sums = Rollups(folder, moment, save=True)
    sums.make_all()
    sums.remove_old(DAYS_KEPT, 400)
    if render:
        stats.window(Rollups(folder, moment, save=True), 1)
    assert sums.unsaved is None


@pytest.fixture(scope="module")
def caught_up(summed, tmp_path_factory):
    """The folder after the last days were polled one by one; not to be changed."""
    folder = tmp_path_factory.mktemp("polled") / "data"
    shutil.copytree(summed, folder)
    first = month.END - timedelta(days=1, hours=19)  # twenty to eleven before two midnights
    for path in [*(folder / "history").iterdir(), *(folder / "rollups").iterdir()]:
        if path.name[:10] >= f"{first:%Y-%m-%d}":
            path.unlink()
    for number, (time, text) in enumerate(month.lines_of_polls()):
        moment = datetime.fromtimestamp(time, UTC)
        if moment.date() >= first.date():
            path = folder / "history" / f"{moment:%Y-%m-%d}.csv"
            if moment < first:
                with path.open("a") as file:
                    file.write(text if path.stat().st_size else month.HEADER + text)
            else:
                near = (moment.hour, moment.minute // 10) in ((23, 5), (0, 0), (1, 0))
                if near or number % 30 == 0 or time == month.LAST:
                    poll(folder, moment, text, render=number % 3 == 0)
                else:
                    with (folder / "history" / f"{moment:%Y-%m-%d}.csv").open("a") as file:
                        file.write(text)
    return folder


@pytest.mark.parametrize("days", WINDOWS)
def test_the_figures_are_those_of_the_plan(caught_up, days):
    """As if all had been read at once."""
    agree(caught_up, (days,))


LINE = "{time},gpu01,0,GPU-a,A100,{state},{load},1,2,{power},40,{users}\n"


def line(moment, user="alice"):
    return LINE.format(
        time=f"{moment:%Y-%m-%dT%H:%M:%SZ}", state="busy", load=50, power=100, users=f"{user}=5"
    )


def steps(start, minutes):
    return [start + timedelta(minutes=n) for n in range(STEP, minutes + 1, STEP)]


def same_from_scratch(folder, end, *, days=7):
    """The figures with what was saved on the way, and with nothing saved."""
    now = stats.window(Rollups(folder, end), days)
    anew = folder.with_name("anew")
    shutil.copytree(folder / "history", anew / "history")
    fresh = stats.window(Rollups(anew, end), days)
    shutil.rmtree(anew)
    assert now.total == pytest.approx(fresh.total, rel=1e-4)
    assert now.polled_hours == pytest.approx(fresh.polled_hours, rel=1e-4)
    assert now.hosts.keys() == fresh.hosts.keys()
    assert now.users.keys() == fresh.users.keys()
    for user, use in now.users.items():
        assert use == pytest.approx(fresh.users[user], rel=1e-4)
    return now


@pytest.mark.parametrize(("hour", "back"), [(12, 60), (0, 130)])
def test_a_clock_that_goes_back(tmp_path, hour, back):
    """Within a day and over midnight, for less than an hour and for more: no time is there twice."""
    folder = tmp_path / "data"
    (folder / "history").mkdir(parents=True)
    turn = datetime(2026, 11, 18, hour, 30, tzinfo=UTC)
    start = turn - timedelta(hours=2, minutes=20)
    moments = [(one, "alice") for one in steps(start, 140)]
    again = turn - timedelta(minutes=back, seconds=-90)
    moments += [(one, "bob") for one in steps(again, back + 50)]
    for moment, user in moments:
        poll(folder, moment, line(moment, user), render=moment.minute % 2 == 0)
        if moment.minute < 5:
            same_from_scratch(folder, moment)
    end = moments[-1][0]
    window = same_from_scratch(folder, end)
    elapsed = (end - start).total_seconds() / 3600
    # What the first poll stands for is guessed from those after it, which are closer together.
    assert window.total.hours == pytest.approx(elapsed, abs=0.06)
    assert window.polled_hours == pytest.approx(window.total.hours)
    assert window.users["bob"].hours == pytest.approx((50 + 0.3 * back) / 60, abs=0.06)


@pytest.mark.parametrize("ahead", [timedelta(hours=1), timedelta(days=1)])
def test_a_clock_that_was_ahead_for_a_while(tmp_path, ahead):
    """And is put right again: polls of the future count when it is there."""
    folder = tmp_path / "data"
    (folder / "history").mkdir(parents=True)
    start = datetime(2026, 11, 18, 9, tzinfo=UTC)
    for moment in steps(start, 90):
        poll(folder, moment, line(moment))
    for moment in steps(start + timedelta(minutes=90) + ahead, 20):
        poll(folder, moment, line(moment, "future"))
    for moment in steps(start + timedelta(minutes=112), 150):
        poll(folder, moment, line(moment), render=moment.minute > 50)
    window = same_from_scratch(folder, moment, days=1)
    assert window.total.hours <= (moment - start).total_seconds() / 3600 + 0.01
    assert ("future" in window.users) == (ahead == timedelta(hours=1))
