"""Whatever the names and numbers are, the site for curl is 80 columns wide and moves no cursor."""

from __future__ import annotations

import re
import unicodedata

import clusters
import pytest
from any_lab import MAYBE_TEXT, TEXTS, labs, quick
from hypothesis import given
from hypothesis import strategies as st
from texts import files, readme, shown_width

# As they are configured: without spaces, and without what can't be seen.
HOST_NAMES = st.text("ab0-.:é数宽한e\u0301|", min_size=1, max_size=70).filter(
    lambda name: name[0] != "\u0301"
)

CLUSTERS = {
    "lab": clusters.lab(),
    "uneven": clusters.uneven(),
    "wordy": clusters.wordy(),
    "sixteen": clusters.large(2, 16, models=len(clusters.MODELS)),
    "wide names": clusters.called("数据科学家" * 5, "h" * 18, "h" * 19, "a b", "e\u0301" * 40, "👩‍🔬" * 9),
    "elsewhere": readme(),
}


def check(made):
    """Hold every line of every file against what a terminal of 80 columns can show."""
    for path, text in made.items():
        shown = re.sub(r"\x1b\[\d+m", "", text) if path == "term.ansi" else text
        *lines, end = shown.split("\n")
        assert end == ""
        for line in lines:
            assert not [
                char for char in line if unicodedata.category(char)[0] == "C" or char in "\u2028\u2029"
            ]
            width = shown_width(line)
            if path.startswith("term"):
                assert width == 80, line
            elif line.startswith(("  ┌", "  │", "  └")):
                assert width == 78, line
                assert line[-1] in "┐│┘"
            else:
                assert width <= 80, line
                assert width == 80 or not line.startswith(("####", "----", "____"))


@pytest.mark.parametrize("name", CLUSTERS)
def test_lines_are_80_columns_wide(name):
    """Long and wide names, sixteen cards, every model."""
    check(files(CLUSTERS[name]))


def test_so_are_those_of_the_golden_site(snapshot):
    """Every state, odd names, a host that is down."""
    check(files(snapshot))


@quick
@given(labs(), TEXTS, MAYBE_TEXT)
def test_lines_are_80_columns_wide_whatever_is_in_them(snapshot, title, address):
    """Users, programs, labels, cards, the title; negative and huge numbers; no control character is left."""
    made = files(snapshot, title=title, addresses={host.host: address for host in snapshot.hosts})
    check(made)
    assert re.sub(r"\x1b\[(0|1|3[1-4])m", "", made["term.ansi"]) == made["term.txt"]


@quick
@given(st.lists(HOST_NAMES, min_size=1, max_size=3, unique=True))
def test_the_name_of_a_host_is_whole(there):
    """It goes on below, in the table beside its cards, in the details in a second line."""
    made = files(clusters.called(*there))
    names = [_joined(block) for block in re.split(r"\n\+[-+]+\+\n", made["term.txt"])[2:-2]]
    heads = [_head(block) for block in made["detail.txt"].split("\n\n####")[1:]]
    assert sorted(heads) == sorted(there)
    assert sorted(names) == sorted(there)


def _joined(block):
    return "".join(_first_column(line) for line in block.split("\n"))


def _first_column(line):
    column = line[1:]
    while shown_width(column) > 18:
        column = column[:-1]
    return column.rstrip()


def _head(block):
    """Return the name in the lines with `####` at the start of a block, the first cut off."""
    lines = ["####" + block.split("\n")[0], *block.split("\n")[1:]]
    titles = [line for line in lines if re.match("#### .* #+$", line)]
    return "".join(re.sub("^#### | #+$", "", line) for line in titles)
