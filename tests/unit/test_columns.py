"""Text in columns of a terminal: how wide it is, cut, filled up, broken into lines, and made harmless."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webmon.columns import broken, cut, fitted, harmless, len_shown, wrapped

ANY_TEXT = st.text("ab- " + "数宽한ｱ" + "e\u0301\u20dd\u1161" + "👩🔬", max_size=40) | st.text(max_size=40)
WIDTHS = st.integers(0, 30)


@pytest.mark.parametrize(
    ("text", "width"),
    [
        ("", 0),
        ("gpu01.lab", 9),
        ("für 5 °C – …", 12),  # noqa: RUF001
        ("数据", 4),
        ("Ｆｕｌｌ", 8),  # noqa: RUF001
        ("ｱｲ", 2),
        ("e\u0301", 1),
        ("\u0301", 0),
        ("a\u20dd", 1),
        ("\u1112\u1161\u11ab", 2),
        ("한글", 4),
        ("👩🔬", 4),
        ("שלום", 4),
    ],
)
def test_width_is_what_a_terminal_gives(text, width):
    """Wide characters and emoji take two columns, combining ones none."""
    assert len_shown(text) == width


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("gpu01", 5, "gpu01"),
        ("gpu01", 4, "gpu…"),
        ("gpu01", 1, "…"),
        ("gpu01", 0, ""),
        ("gpu01", -3, ""),
        ("", 0, ""),
        ("数据科", 6, "数据科"),
        ("数据科", 5, "数据…"),
        ("数据科", 4, "数…"),
        ("数据科", 1, "…"),
        ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
        ("e\u0301e\u0301", 2, "e\u0301e\u0301"),
    ],
)
def test_what_does_not_fit_is_cut_and_shows_it(text, width, shown):
    """A wide character is never halved; a mark stays with its letter."""
    assert cut(text, width) == shown


@given(ANY_TEXT, WIDTHS)
def test_fitted_text_is_just_as_wide_as_asked(text, width):
    """What fits is whole, and filled up with blanks."""
    shown = fitted(text, width)
    assert len_shown(shown) == width
    if len_shown(text) <= width:
        assert shown == text + " " * (width - len_shown(text))


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 5, []),
        ("   ", 5, []),
        ("no answer within 20 s", 10, ["no answer", "within 20", "s"]),
        ("a  b", 10, ["a b"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("ab cdefgh ij", 5, ["ab", "cdefg", "h ij"]),
        ("数据科 学", 4, ["数据", "科", "学"]),
        ("数据", 1, ["数", "据"]),
        ("ab", 0, ["a", "b"]),
    ],
)
def test_sentences_are_wrapped_between_words(text, width, lines):
    """And within those that are longer than a line."""
    assert wrapped(text, width) == lines


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("", 3, [""]),
        ("gpu01", 5, ["gpu01"]),
        ("gpu01", 2, ["gp", "u0", "1"]),
        ("a b c", 2, ["a ", "b ", "c"]),
        ("数据", 3, ["数", "据"]),
        ("数据", 1, ["数", "据"]),
        ("abe\u0301", 2, ["ab", "e\u0301"]),
        ("ae\u0301b", 2, ["ae\u0301", "b"]),
    ],
)
def test_names_are_broken_anywhere(text, width, lines):
    """A character that is wider than the line has one of its own; there is no empty line after it."""
    assert broken(text, width) == lines


@settings(max_examples=60)
@given(ANY_TEXT, WIDTHS)
def test_no_line_is_wider_than_asked_and_nothing_is_lost(text, width):
    """But for the blanks between the lines of a sentence."""
    assert "".join(broken(text, width)) == text
    assert "".join("".join(wrapped(text, width)).split()) == "".join(text.split())
    for line in [*broken(text, width), *wrapped(text, width)]:
        assert len_shown(line) <= width or len(line) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("python train.py", "python train.py"),
        ("größe 数据 e\u0301", "größe 数据 e\u0301"),
        ("a\x1b[31mb", "a�[31mb"),
        ("a\x9b31mb\n\tc", "a�31mb��c"),
        ("abc\u202edcba\u2066", "abc�dcba�"),
        ("a\u200db\ufeffc\ue000", "a�b�c�"),
        ("\ud800", "�"),
        ("", ""),
    ],
)
def test_harmless_text_does_nothing_to_a_terminal(text, shown):
    """No escape sequence, no new line, no turning around; ordinary text is as it was."""
    assert harmless(text) == shown


@given(st.text(st.characters(exclude_categories=()), max_size=40))
def test_any_text_is_made_harmless(text):
    """Half characters (surrogates) included."""
    categories = {unicodedata.category(char) for char in harmless(text)}
    assert not categories & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
