"""Text from hosts, made fit for terminals, pages and CSV files."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webmon.clean import MAX_LENGTH, clean

ANY_TEXT = st.text(st.characters(exclude_categories=()))  # half characters (surrogates) included


@pytest.mark.parametrize("text", ["", "python train.py", 'memhög ünïcode "q", 100%', "日本語", "e\u0301"])
def test_ordinary_text_stays_as_it_is(text):
    """Whatever can be seen is kept, combining marks and all."""
    assert clean(text) == text


@pytest.mark.parametrize(
    "char", ["\x00", "\x07", "\n", "\r", "\t", "\x1b", "\x7f", "\x9b", "\u200b", "\u202e", "\u2028", "\ufeff"]
)
def test_what_can_not_be_seen_is_shown_as_a_replacement(char):
    """Escape sequences, line ends, marks that turn the text around: nothing is just left out."""
    assert clean(f"a{char}b") == "a�b"


@given(ANY_TEXT)
def test_nothing_is_left_that_moves_a_cursor(text):
    """No control character, invisible mark, half character or line end, whatever the text."""
    cleaned = clean(text)
    assert not any(
        unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for char in cleaned
    )
    assert cleaned == cleaned.strip()
    cleaned.encode()


@given(ANY_TEXT)
def test_cleaning_twice_is_cleaning_once(text):
    """So it does not matter who does it."""
    assert clean(clean(text)) == clean(text)


@pytest.mark.parametrize("unit", ["x", "ü", "\x00"])
def test_long_text_is_cut(unit):
    """A process may have a megabyte of arguments."""
    assert len(clean(unit * MAX_LENGTH * 2)) == MAX_LENGTH
