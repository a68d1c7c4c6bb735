"""history.html, worked out: what the GPUs did, when they are free, what is wasted, what it costs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from usage_seen import ALICE, BOB, hours, past, window

from webmon.config.settings import SiteSettings
from webmon.model import Gpu, Host, Snapshot
from webmon.publish.lab import lab
from webmon.publish.look import Look
from webmon.publish.trends import trends
from webmon.publish.week import DAYS
from webmon.usage import NOTHING_PAST, Hour, Past, Use

NOW = datetime(2026, 11, 18, 8, 25, tzinfo=UTC)
DASH = "–"  # noqa: RUF001


def seen(past=NOTHING_PAST, price=None, zone=UTC, groups=("vision", None), taken_at=NOW):
    site = SiteSettings(Path("site"), "GPU monitor", 60, None, price)
    hosts = tuple(Host(f"gpu{2 + 8 * n}", None, group, "up") for n, group in enumerate(groups))
    names = ("NVIDIA A100-SXM4-80GB", "NVIDIA A100-PCIE-80GB", "NVIDIA H100", None)
    gpus = tuple(Gpu("gpu2", index, f"u{index}", name) for index, name in enumerate((*names, names[0])))
    snapshot = Snapshot(taken_at, hosts, gpus)
    return trends(lab(snapshot, past=past), Look(site, {}, taken_at, timedelta(minutes=5), zone))


def test_nothing_is_known_yet():
    """No table of zeros."""
    shown = seen()
    assert (shown.spans, shown.maps, shown.wasted, shown.energy, shown.sums) == ([], [], [], None, [])


def test_a_span_for_each_window():
    """In steps of one, two and twelve hours, of which the last one has the last poll in it."""
    shown = seen(past(NOW))
    assert [(span.title, len(span.rows), span.chart.width) for span in shown.spans] == [
        ("24 hours", 24, 24),
        ("7 days", 84, 84),
        ("30 days", 60, 60),
    ]
    assert [span.rows[-1].start for span in shown.spans] == [
        datetime(2026, 11, 18, 8, tzinfo=UTC),
        datetime(2026, 11, 18, 8, tzinfo=UTC),
        datetime(2026, 11, 18, 0, tzinfo=UTC),
    ]
    day, week, month = (span.chart.ticks for span in shown.spans)
    assert day == ["09:00 UTC", "15:00 UTC", "21:00 UTC", "03:00 UTC"]
    assert week == [f"{day} 10:00" for day in ("Wed", "Thu", "Fri", "Sat", "Sun", "Mon", "Tue")]
    assert month == ["Oct 19", "Oct 24", "Oct 29", "Nov 03", "Nov 08", "Nov 13"]


def test_the_numbers_of_a_chart_are_in_its_table():
    """How many GPUs were in each state on average, and how hard they worked."""
    day = seen(past(NOW)).spans[0]
    noon = next(row for row in day.rows if row.start.hour == 12)
    assert noon.states == ["2", "0", "2", "0", "0"]
    assert day.rows[0].states == ["3", "0", "1", "0", "0"]
    assert {row.utilization for row in day.rows} == {"50\u202f%"}
    assert (day.chart.top, day.chart.right) == ("4 GPUs", "100\u202f% utilization")
    assert [shape.kind for shape in day.chart.shapes] == ["busy", "free", "line"]


def test_a_gap_is_a_gap():
    """In the table a dash, in the chart nothing."""
    day = seen(past(NOW, gap=range(3, 6))).spans[0]
    assert [row.states for row in day.rows[18:21]] == [[DASH] * 5] * 3
    assert {row.utilization for row in day.rows[18:21]} == {DASH}
    assert len([shape for shape in day.chart.shapes if shape.path.count("M") == 2]) == 3


def test_a_chart_says_in_words_what_it_shows():
    """And whose table has the numbers."""
    day = seen(past(NOW)).spans[0]
    assert day.summary == (
        "44\u202f% in use (6\u202f% held but idle), 56\u202f% free, mean utilization 23\u202f%"
    )
    assert day.summary in day.chart.words
    assert "table below" in day.chart.words


def test_when_the_cards_of_a_model_are_free():
    """Each hour of the week, on average over all weeks; the best of them in words."""
    (shown,) = seen(past(NOW)).maps
    assert (shown.model, shown.cards) == ("A100 80GB", 3)
    assert shown.best == "Most are free on Monday from 12:00: 2 on average"
    assert [day for day, _ in shown.rows] == [day[:3] for day in DAYS]
    for _, cells in shown.rows:
        assert [text for text, _ in cells] == ["2" if hour == 12 else "1" for hour in range(24)]
        assert (cells[12][1], cells[0][1]) == (" v60 v7", " v30 v3")


@pytest.mark.parametrize(
    ("zone", "name", "noon"),
    [("Europe/Zurich", "CET", 13), ("America/New_York", "EST", 7), ("Asia/Tokyo", "JST", 21)],
)
def test_hours_of_the_week_are_those_of_the_place(zone, name, noon):
    """The lab's noon is not Greenwich's. With summer time in between, the hour is that of the day."""
    shown = seen(Past({30: window(NOW, 30)}, hours(NOW, 24 * 14), {}), zone=ZoneInfo(zone))
    assert shown.zone == name
    (day, cells) = shown.maps[0].rows[0]
    assert (day, [hour for hour, (text, _) in enumerate(cells) if text == "2"]) == ("Mon", [noon])


def test_an_hour_of_the_week_that_was_never_polled_is_not_known():
    """And a model that never was free says so; one that is gone has no map."""
    two = [
        Hour(NOW - timedelta(hours=ago), 0.5, Use(busy=2), {"NVIDIA H100": 0.0, "old": 3.0}) for ago in (0, 1)
    ]
    (shown,) = seen(Past({1: window(NOW, 1)}, two, {})).maps
    assert (shown.model, shown.best) == ("H100", "None was ever free")
    texts = [text for _, cells in shown.rows for text, _ in cells]
    assert (texts.count("0"), texts.count(DASH)) == (2, 24 * 7 - 2)


def test_who_held_cards_without_using_them():
    """The most first; who held none is not named."""
    (alice,) = seen(past(NOW)).wasted
    assert (alice.name, alice.level, alice.cells) == ("alice", " v100", ["4.0", "17\u202f%"])
    both = window(NOW, 30, users={"alice": ALICE, None: BOB._replace(held=9, busy=0)})
    assert [row.name for row in seen(Past({30: both}, hours(NOW), {})).wasted] == ["owner hidden", "alice"]


def test_energy_by_day_and_what_it_costs():
    """The sum is that of the window; days that are not known are a gap."""
    shown = seen(past(NOW, gap=range(24, 72)), price=0.25).energy
    assert shown.summary == "9.5 kWh in the last 30 days, which cost 2.38"
    assert len(shown.rows) == 31
    assert shown.rows[-1] == (datetime(2026, 11, 18, tzinfo=UTC), "4.5", "1.12")
    assert shown.rows[-3] == (datetime(2026, 11, 16, tzinfo=UTC), DASH, DASH)
    assert seen(past(NOW)).energy.summary == "9.5 kWh in the last 30 days"
    assert seen(past(NOW)).energy.rows[0][2] == ""


def test_cards_that_tell_no_power_have_no_energy():
    """Not 0 kWh."""
    silent = window(NOW, 30, total=Use(busy=4))
    assert seen(Past({30: silent}, hours(NOW), {})).energy is None


def test_how_much_was_used_of_each_model_group_and_host():
    """Those that are called alike on the pages are one row; hosts that are gone have one too."""
    by = {sums.by: [row.name for row in sums.rows] for sums in seen(past(NOW)).sums}
    assert by == {
        "model": ["A100 80GB", DASH],
        "group": ["no group", "vision"],
        "host": ["gone", "gpu2", "gpu10"],
    }
    alike = seen(past(NOW)).sums[0].rows[0]
    assert alike.cells[:2] == ["100\u202f%", "50\u202f%"]
    assert alike.cells[4] == "30.0"
    assert alike.cells[-1] == "99.0\u202f%"


def test_one_group_alone_is_no_table():
    """It would say what is said of all."""
    alone = window(NOW, 30, hosts={"gpu2": ALICE})
    assert [sums.by for sums in seen(Past({30: alone}, hours(NOW), {})).sums] == ["model", "host"]


def test_a_single_gpu_is_one():
    """And a chart of nothing at all has no height."""
    one = [Hour(NOW.replace(minute=0), 1.0, Use(busy=1), {})]
    assert seen(Past({1: window(NOW, 1)}, one, {})).spans[0].chart.top == "1 GPU"
    none = [Hour(NOW.replace(minute=0), 1.0, Use(), {})]
    assert seen(Past({1: window(NOW, 1)}, none, {})).spans[0].chart.top == "0 GPUs"
