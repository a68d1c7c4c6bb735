"""A month with known answers: the figures of webmon are those that its plan has."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import month
import pytest
from figures import WINDOWS, agree, rollups

from webmon.store import stats

STATES = ("free", "busy", "held", "faulty", "unknown")


@pytest.mark.parametrize("days", WINDOWS)
def test_every_figure_of_every_window(data, days):
    """GPU-hours by state, sole and shared, held, kWh, utilization and coverage; by user, host and model."""
    agree(data, (days,))


def test_users_by_their_odd_names(data):
    """Quotes, commas, equals signs; and `nan` and `NA` are names, not numbers that are missing."""
    window = stats.window(rollups(data), 30)
    assert set(window.users) == {"alice", "bob", "carol", "dave", "nan", "NA", 'o"brien, x', "ünï=x", None}
    assert window.users["alice"].shared / window.users["bob"].shared == pytest.approx(6400 / 1618)
    assert window.users["carol"].shared == pytest.approx(window.users["dave"].shared)


def test_what_each_hour_was_like(data):
    """How many GPUs were in each state on average, and how many of each model were free."""
    hours = stats.past(rollups(data)).hours
    odd = {month.second(24 * month.BACK_DAY + month.BACK_HOUR + n) + 280 for n in (-1, 0)}
    for hour in hours:
        moment = int(hour.start.timestamp())
        polled = month.overlap(moment - 280, moment + 3320)
        assert hour.polled_hours == pytest.approx(polled, abs=0.05 if moment in odd else 0.003)
        wanted = month.answers(moment - 280, min(moment + 3320, month.LAST))
        assert hour.total.hours / hour.polled_hours == pytest.approx(5)
        if moment in odd:
            continue
        for state in STATES:
            mean = getattr(hour.total, state) / hour.polled_hours
            assert mean == pytest.approx(wanted["total"][""].get(state, 0) / polled, abs=1e-4), (
                moment,
                state,
            )
        free = {model: wanted["model"][model].get("free", 0) / polled for model in wanted["model"]}
        assert hour.free == pytest.approx(free, abs=1e-4)
    # All hours of thirty days, aside from those without a poll; the first one has begun before.
    starts = [hour.start for hour in hours]
    assert starts == sorted(starts)
    assert len(starts) == 721 - 6
    assert starts[-1] == month.END.replace(minute=0, second=0)


def test_the_line_of_each_card(data):
    """Its mean utilization in each of the last 24 hours; None where it is not known."""
    lines = stats.past(rollups(data)).lines
    last = month.END.replace(minute=0, second=0)
    hours = [(last - timedelta(hours=ago)).hour for ago in reversed(range(24))]
    wanted = [90 if hour < 9 else 97 if hour < 15 else 0 for hour in hours]
    assert lines["gpua.lab", "GPU-a0"] == pytest.approx(wanted, abs=1e-4)
    assert lines["gpu10", "GPU-c0"] == pytest.approx(
        [80 if 8 <= hour < 20 else 0 for hour in hours], abs=1e-4
    )
    assert lines["gpub.lab", "1"] == [0.0] * 24
    assert lines["gpub.lab", "GPU-b0"] == pytest.approx([50] * 24, abs=1e-4)
    assert len(lines) == 5


def test_the_time_of_the_last_poll(raw):
    """That of the history, if there is no snapshot; None if there is neither."""
    assert stats.last_time(raw) == month.END
    assert stats.last_time(raw / "nothing") is None
    for path in (raw / "history").iterdir():
        path.write_bytes(b"")
    assert stats.last_time(raw) is None


def test_a_poll_that_the_window_starts_within_counts_from_there(data):
    """Two minutes after a poll: the next one stands for the three that are left."""
    whole = rollups(data)
    for seconds in (0, 120, 250):
        start = month.LAST - 86400 + seconds
        polled = whole.totals_after(start).drop_duplicates("day")["polled_hours"].sum()
        day_ends = datetime.fromtimestamp(start, UTC).replace(hour=23, minute=55, second=20).timestamp()
        assert polled == pytest.approx((day_ends - start) / 3600, abs=0.003)
