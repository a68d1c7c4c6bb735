"""The site for curl where something is longer than its place: what is cut, and what never is."""

from __future__ import annotations

import re

import pytest
from clusters import NOW, gpu, host, lab
from texts import files

from webmon.model import Snapshot


def test_numbers_of_large_cards_are_whole():
    """One that is too wide for its column takes the blank before the next one."""
    large = ("NVIDIA H200", 143771)
    made = files(Snapshot(NOW, (host("gpu1"),), (gpu("gpu1", 0, large, "busy", memory_used_mib=140000),)))
    assert "| 140000 / 143771 |" in made["term.txt"]
    assert "  │140000 / 143771MiB          3771MiB " in made["detail.txt"]


def test_absurd_numbers_stay_apart():
    """The digits of two of them are never one number."""
    card = gpu("gpu1", 0, ("NVIDIA X", 10**11), "busy", memory_used_mib=0)
    text = files(Snapshot(NOW, (host("gpu1"),), (card,)))["detail.txt"]
    assert "  │     0 / 100000000000MiB 100000000000MiB        –  " in text  # noqa: RUF001


@pytest.mark.parametrize("index", [0, 15, 9999])
def test_a_long_name_of_a_card_is_cut(index):
    """Its number and its state are not."""
    card = gpu("gpu1", index, ("NVIDIA " + "Very Long Model " * 12, 81920), "held", memory_used_mib=1)
    made = files(Snapshot(NOW, (host("gpu1"),), (card,)))
    assert re.search(rf"^\|gpu1 +\|={index}:Very Long Mode?l?.*… ?\|", made["term.txt"], re.MULTILINE)
    assert f"  ┌[ gpu:{index} Very Long Model " in made["detail.txt"]
    assert "… ]─[ idle, held ]─┐" in made["detail.txt"]


def test_an_address_can_not_reach_into_the_terminal():
    """Nor be the line's end."""
    made = files(Snapshot(NOW, (host("gpu1"),)), addresses={"gpu1": "\x1b[31m\n"})
    assert "\n#### gpu1 :: �[31m� ####" in made["detail.txt"]


def test_a_long_title_is_cut_and_not_what_it_says():
    """How many are free, and as of when, is what one looks for."""
    for path, text in files(lab(), title="The machines of the institute " * 5).items():
        line = text.splitlines()[path.startswith("term")]
        assert re.search(r"…: 4 of 15 GPUs free \d{4}-\d\d-\d\d \d\d:\d\d UTC", line)
