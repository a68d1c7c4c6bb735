"""What holds for any polls, in any order, however often: no time counts twice, parts make up the whole."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from webmon.store import stats
from webmon.store.coverage import seconds
from webmon.store.rollup import Rollups
from webmon.store.samples import _carefully, frame, poll_times
from webmon.store.shares import _shares, used
from webmon.usage import Use, total

DAY = int(datetime(2026, 11, 17, tzinfo=UTC).timestamp())
STATES = ("free", "busy", "held", "faulty", "unknown")


def stamp(time):
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@given(
    st.lists(st.integers(0, 7199), min_size=1, max_size=40),
    st.lists(st.integers(-3600, -1), max_size=20),
)
def test_the_spans_of_polls_never_overlap(polls, before):
    """Each reaches back to the poll before, at most; the first one stands for an hour at most."""
    spans = seconds(set(polls), set(before))
    times = sorted({*polls, *before})
    for time, span in spans.items():
        earlier = [one for one in times if one < time]
        assert 0 < span <= (time - earlier[-1] if earlier else 3600)


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(0, 86399), st.sampled_from(STATES), st.booleans()), max_size=60))
def test_no_time_counts_twice(polls):
    """For each card: the whole of its hours is what has passed, and one poll's time, at most."""
    lines = [
        f"{stamp(DAY + time)},gpu01,0,GPU-a,A100,{state},5,1,2,100,40,{'a=1;b=3' if two else ''}\n".encode()
        for time, state, two in polls
    ]
    sums = used(lines)
    times = [time for time, _, _ in polls] or [0]
    assert sums["hours"].sum() <= (max(times) - min(times)) / 3600 + 1 + 1e-6
    assert sums["hours"].sum() == pytest.approx(sums.drop_duplicates("hour")["polled_hours"].sum())
    again = used([*reversed(lines), *lines])
    assert again["hours"].sum() == pytest.approx(sums["hours"].sum())


names = st.text(st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters=";"), max_size=8)
memory = st.one_of(
    st.just(""), st.integers(0, 10**14).map(str), st.sampled_from(["x", "-1", "1e9", "٣", "9" * 5000])
)


@given(st.lists(st.tuples(names, memory), min_size=1, max_size=6))
def test_the_parts_of_users_make_up_the_card(users):
    """Whatever their names and numbers."""
    parts = _shares(";".join(f"{name}={mib}" for name, mib in users))
    assert sum(share for _, share, _ in parts) == pytest.approx(1)
    assert all(share >= 0 for _, share, _ in parts)


rows = st.tuples(
    st.integers(0, 2 * 86400 - 1),
    st.sampled_from(["gpu01", "gpu02"]),
    st.integers(0, 1),
    st.sampled_from(["A100", "H100, big", "nan", ""]),
    st.sampled_from(STATES),
    st.sampled_from(["", "0", "50", "100", "101", "-3", "1e300", "nan", "inf", "x"]),
    st.sampled_from(["", "100", "389.5", "-1", "1e308", "inf"]),
    st.sampled_from(["", "a=1", "a=1;b=", "nan=5;NA=7", "=5", '"q""x=3;b=4"']),
)


@settings(max_examples=8)
@example([(0, "gpu01", 0, "A100", "free", "", "", ""), (1, "gpu02", 0, "A100", "free", "", "", "")])
@given(st.lists(rows, max_size=25))
def test_sums_agree_with_the_total(some):
    """By user, host, model and state; coverage is between 0 and 100; nothing is infinite or less than 0."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "history").mkdir()
        for time, *cells in some:
            host, index, model, state, load, power, users = cells
            model = f'"{model}"' if "," in model else model
            with (folder / "history" / f"{stamp(DAY + time)[:10]}.csv").open("a") as file:
                file.write(
                    f"{stamp(DAY + time)},{host},{index},,{model},{state},{load},1,2,{power},40,{users}\n"
                )
        end = datetime.fromtimestamp(DAY + 2 * 86400 - 1, UTC)
        for save in (True, False):
            past = stats.past(Rollups(folder, end, save=save))
            for window in past.windows.values():
                holds(window)
            for hour in past.hours:
                assert sum(hour.free.values()) <= 4 + 1e-6
                assert hour.total.free == pytest.approx(sum(hour.free.values()) * hour.polled_hours, abs=1e-6)


def holds(window):
    for uses in (window.hosts, window.models):
        assert total(uses.values()) == pytest.approx(window.total, abs=1e-5)
    users = total(use for user, use in window.users.items() if user is not None)
    assert users.sole + users.shared == pytest.approx(users.hours, abs=1e-5)
    assert (users.sole, users.shared) == pytest.approx((window.total.sole, window.total.shared), abs=1e-5)
    owned = total(window.users.values())
    assert owned.in_use == pytest.approx(window.total.in_use, abs=1e-5)
    for use in (window.total, owned, *window.users.values()):
        assert all(-1e-9 <= number < 1e9 for number in use)
        assert use.worked <= use.measured + 1e-6
        assert 0 <= window.coverage_pct(use) <= 100 + 1e-6
    assert 0 <= window.polled_pct <= 100


GOOD = "2026-11-18T12:{:02}:00Z,gpu01,0,GPU-a,A100,busy,97,1,2,300,71,alice=6400;bob=1618\n"
LINE = GOOD.format(0).encode()


@given(
    st.integers(0, len(LINE) - 1),
    st.integers(0, 6),
    st.one_of(
        st.binary(max_size=5), st.sampled_from([b",", b'"', b"\r", b"\0", b"nan", b"-", b"9" * 30, b"\xff"])
    ),
)
@settings(max_examples=25)
@example(60, 40, b"\n")
def test_a_damaged_line_is_read_alike_among_others_and_alone(place, length, instead):
    """And costs no other line."""
    damaged = LINE[:place] + instead + LINE[place + length :]
    if not damaged.endswith(b"\n"):
        damaged += b"\n"
    others = [GOOD.format(minute).encode() for minute in range(5, 60, 5)]
    pieces = damaged.splitlines(keepends=True)
    among, alone = frame([*others, *pieces]), frame(pieces)
    careful = _carefully(pieces)
    assert len(among) == len(others) + len(careful)
    assert len(alone) == len(careful)
    assert alone["users"].tolist() == careful["users"].tolist()
    used([*others, *pieces], pieces)
    poll_times(pieces)


def test_one_bad_line_among_many_is_found_quickly():
    """By halves: all that is read with care is a thousand lines."""
    lines = [LINE.replace(b"gpu01", f"gpu{number}".encode()) for number in range(5000)]
    for bad in (
        b"garbage\n",
        LINE[:40] + b"\n",
        LINE.replace(b"A100", b'"A,1""00"'),
        LINE.replace(b"97", b"inf"),
    ):
        whole = frame([*lines[:3333], bad, *lines[3333:]])
        assert len(whole) == 5000 + (b'"' in bad)
    assert set(whole["users"].unique()) == {"alice=6400;bob=1618"}


def test_columns_of_a_later_webmon_may_begin_within_a_day():
    """Some lines have them, some not."""
    lines = [LINE] * 3 + [LINE.replace(b"12:00", b"12:05").strip() + b",5,more\n"] * 3
    assert len(frame(lines)) == 6
    assert used(lines)["polled_hours"].iloc[0] == pytest.approx(1 / 6)


def test_nothing_adds_up_to_nothing():
    """Percentages of nothing are not known."""
    assert total([]) == Use()
    use = Use()
    assert (use.utilization_pct, use.occupancy_pct, use.held_pct, use.free_pct, use.kwh) == (None,) * 5
