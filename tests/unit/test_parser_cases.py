"""What real drivers print, case by case: a new case is a new folder in tests/fixtures/probe."""

from __future__ import annotations

import json

import pytest
from probe_answers import CASES, folder, plain, read

EVERY_CASE = pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir()))


def _expected(case):
    expected = json.loads((CASES / case / "expected.json").read_text(encoding="utf-8"))
    assert expected.pop("about"), "say what the case is about, and where it comes from"
    return expected


@EVERY_CASE
def test_a_recorded_answer_reads_as_expected(case):
    """The reading is that of expected.json, in which whatever is not known is left out."""
    assert plain(read(folder(CASES / case).encode())) == _expected(case)


@EVERY_CASE
def test_line_ends_of_a_terminal_change_nothing(case):
    """An answer that came through a terminal ends its lines with CR LF."""
    text = folder(CASES / case)
    assert plain(read(text.replace("\n", "\r\n").encode())) == _expected(case)


@EVERY_CASE
@pytest.mark.parametrize("noise", ["Welcome to gpu01!", "\n@ exit 0\n0, GPU-1, @\n", "\x1b[2J\x00\ufffd"])
def test_noise_of_the_login_changes_nothing(case, noise):
    """What stands before the first mark is passed over, even when it ends without a new line."""
    text = noise + folder(CASES / case)
    assert plain(read(text.encode())) == _expected(case)
