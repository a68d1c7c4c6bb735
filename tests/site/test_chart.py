"""Charts: every number is where it belongs, and nothing is drawn where nothing is known."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webmon.publish import chart

PCTS = st.none() | st.floats(-50, 200)
GPUS = st.floats(0, 1000).map(lambda number: round(number, 3))
STACKS = st.none() | st.lists(GPUS, min_size=5, max_size=5)


def corners(path):
    """Follow a path of M, V, h, v, H and z: return its pieces as lists of points."""
    pieces, x, y = [], 0.0, 0.0
    for command, numbers in re.findall(r"([MVhvz])([-\d. ]*)", path):
        values = [float(number) for number in numbers.split()]
        if command == "M":
            x, y = values
            pieces.append([])
        elif command == "V":
            y = values[0]
        elif command == "v":
            y += values[0]
        elif command == "h":
            x += values[0]
        pieces[-1].append((round(x, 2), round(y, 2)))
    return pieces


def test_a_line_has_a_step_for_each_hour():
    """As high as the percentage; equal ones are one step."""
    assert chart.line([0, 50, 50, 100]).path == "M0 20V19h1V10h2V0h1V20h-4z"


def test_a_line_has_gaps_where_nothing_is_known():
    """And is nothing at all where nothing ever was."""
    assert chart.line([None, 40, None, None, 100]).path == "M1 20V12h1V20h-1zM4 20V0h1V20h-1z"
    assert chart.line([None, None]) is None
    assert chart.line([]) is None


def test_zero_is_not_the_same_as_unknown():
    """Nothing done is a hair; not known is nothing."""
    assert chart.line([0, None]).path == "M0 20V19h1V20h-1z"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([50.0, 0.0], "last 2 h: 25\u202f% utilization"),
        ([None, 10.0, None], "last 3 h: 10\u202f% utilization, known for 1 h"),
        ([None], ""),
        ([], ""),
    ],
)
def test_a_line_in_words(values, text):
    """Says the mean, and how much of it is known."""
    assert chart.line_words(values) == text


def test_areas_lie_one_on_the_other():
    """Busy below, then held, free, unknown, faulty; those that never were are left out."""
    busy, free = chart.stacked([[1, 0, 3, 0, 0], [2, 0, 2, 0, 0]], 4)
    assert (busy.kind, busy.path) == ("busy", "M0 200V150h1V100h1V200h-2z")
    assert (free.kind, free.path) == ("free", "M0 150V0h2V100h-1V150h-1z")


def test_where_there_are_no_polls_nothing_is_stacked():
    """A gap is a gap."""
    (busy,) = chart.stacked([[4, 0, 0, 0, 0], None, [4, 0, 0, 0, 0]], 4)
    assert busy.path == "M0 200V0h1V200h-1zM2 200V0h1V200h-1z"
    assert chart.stacked([None, None], 4) == []
    assert chart.stacked([[0, 0, 0, 0, 0]], 0) == []


def test_a_curve_is_a_line_with_gaps():
    """From the first hour that is known to the last, each as long as it is."""
    assert chart.curve([50, 50, None, 100]).path == "M0 100h1V100h1M3 0h1"


def test_bars_have_room_between_them():
    """And none where nothing was drawn."""
    (bars,) = chart.bars([2, None, 0, 4], 4)
    assert bars.path == "M0.1 200v-100h.8V200zM3.1 200v-200h.8V200z"
    assert chart.bars([None, 0], 0) == []


@given(st.lists(PCTS, max_size=30))
@settings(max_examples=60, deadline=None)
def test_a_line_stays_in_its_frame(values):
    """Whatever a card says of itself."""
    shape = chart.line(values)
    for piece in corners(shape.path) if shape else []:
        assert all(0 <= x <= len(values) and 0 <= y <= 20 for x, y in piece)


@given(st.lists(STACKS, max_size=20))
@settings(max_examples=60, deadline=None)
def test_a_stack_stays_in_its_frame(stacks):
    """The highest one reaches the top, and nothing goes beyond."""
    top = max((sum(stack) for stack in stacks if stack), default=0)
    for shape in chart.stacked(stacks, top):
        for piece in corners(shape.path):
            assert all(0 <= x <= len(stacks) and -0.1 <= y <= 200.1 for x, y in piece)
