"""Colours: on a terminal, and where they are asked for."""

from __future__ import annotations

import pytest
from screen import on_a_screen
from servers.command import webmon

GREEN, BLUE, YELLOW, RED = (f"\x1b[{number}m" for number in (32, 34, 33, 31))


def test_states_have_colours_on_a_terminal(data):
    """Free is green, busy blue, held yellow, what is not known red; the header has none."""
    seen = on_a_screen("list", "--data", data, "-q")
    header, *lines = seen.text.splitlines()
    assert "\x1b" not in header
    assert [line[:5] for line in lines] == [BLUE, GREEN, GREEN, YELLOW, BLUE, GREEN, RED, GREEN, RED]
    assert all(line.endswith("\x1b[0m") for line in lines)


def test_there_are_none_in_a_pipe(data):
    """Nor in a file."""
    assert "\x1b" not in webmon("list", "--data", data).stdout


@pytest.mark.parametrize(
    ("changes", "coloured"),
    [
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": ""}, True),
        ({"TERM": "dumb"}, False),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
    ],
)
def test_the_usual_variables_are_heeded_on_a_terminal(data, changes, coloured):
    """NO_COLOR takes them away, unless it is empty; so does a terminal that knows none."""
    seen = on_a_screen("list", "--data", data, "-q", **changes)
    assert ("\x1b" in seen.text) is coloured


@pytest.mark.parametrize(
    ("changes", "coloured"),
    [
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": ""}, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
    ],
)
def test_they_can_be_had_in_a_pipe(data, changes, coloured):
    """FORCE_COLOR, for `watch -c` and `less -R`."""
    done = webmon("list", "--data", data, env=changes)
    assert ("\x1b" in done.stdout) is coloured


def test_data_never_has_colours(data):
    """JSON and CSV are for programs."""
    for form in ("--json", "--csv"):
        assert "\x1b" not in webmon("list", "--data", data, form, env={"FORCE_COLOR": "1"}).stdout
