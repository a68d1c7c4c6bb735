"""The site for curl: what a table and a box look like, and that nothing leaves its 80 columns."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from clusters import NOW, gpu, host, lab, process
from texts import files, readme

from webmon.model import Gpu, Snapshot

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def block(table, name):
    """Return the lines of a host's block of term.txt."""
    blocks = re.split(r"\n\+[-+]+\+\n", table)
    (found,) = [block for block in blocks if block.startswith(f"|{name} ")]
    return found.splitlines()


def test_a_row_is_what_it_is_elsewhere():
    """Host, card, memory, utilization and temperature stand where people's scripts and eyes expect them."""
    lines = files(readme())["term.txt"].splitlines()
    assert lines[2:] == [
        "+------------------+------------------------+-----------------+--------+-------+",
        "| host             | gpu                    | memory usage    | volat. | temp. |",
        "+------------------+------------------------+-----------------+--------+-------+",
        "|mau_local_19e5d26c| 0:GeForce GTX 1080 Ti  |   8018 /  11169 |    92 %|  80 °C|",
        "|                  | 1:GeForce GTX 1080 Ti  |      2 /  11172 |     0 %|  38 °C|",
        "+------------------+------------------------+-----------------+--------+-------+",
        "| * free   = idle, but held   ! faulty   ? unknown                             |",
        "+------------------------------------------------------------------------------+",
    ]


def test_a_box_is_what_it_is_elsewhere():
    """It has the state and the power, too; of the memory's 71.8 % it shows 71, as vesta does."""
    text = files(readme(), addresses={"mau_local_19e5d26c": "127.0.0.1"})["detail.txt"]
    assert text.splitlines()[1:] == [
        "",
        "#### mau_local_19e5d26c :: 127.0.0.1 ###########################################",
        "  last update: 2019-03-24 20:27 UTC",
        "  0 of 2 free · GTX 1080 Ti",
        "--------------------------------------------------------------------------------",
        "  ┌[ gpu:0 GeForce GTX 1080 Ti ]────────────────────────────────────[ busy ]─┐",
        "  │      memory used  memory available  gpu volatile  temperature     power  │",
        "  │  8018 / 11169MiB           3151MiB           92%         80°C         –  │",  # noqa: RUF001
        "  │                                                                          │",
        "  │ mem [///////////////////////////////////////////                  ]  71% │",
        "  │  ├── train1                      6400MiB root                            │",
        "  │  └── train2                      1618MiB user1                           │",
        "  └──────────────────────────────────────────────────────────────────────────┘",
        "",
        "  ┌[ gpu:1 GeForce GTX 1080 Ti ]────────────────────────────────────[ busy ]─┐",
        "  │      memory used  memory available  gpu volatile  temperature     power  │",
        "  │     2 / 11172MiB          11170MiB            0%         38°C         –  │",  # noqa: RUF001
        "  │                                                                          │",
        "  │ mem [                                                             ]   0% │",
        "  └──────────────────────────────────────────────────────────────────────────┘",
        "",
        "________________________________________________________________________________",
    ]


def test_a_host_has_a_file_of_its_own():
    """The first line and its block of detail.txt."""
    made = files(lab())
    head, *blocks = made["detail.txt"].split("\n\n#### ")
    assert len(blocks) == 6
    for block in blocks:
        name = block.split()[0]
        assert made[f"hosts/{name}.txt"].rstrip("\n") == f"{head}\n\n#### {block}".rstrip("\n")


def test_a_host_stands_once_in_its_block():
    """At its first line, in natural order."""
    names = re.findall(r"^\|(\w+) .* °C\|$|^\|(\w+) .*status", files(lab())["term.txt"], re.MULTILINE)
    assert [up or down for up, down in names] == ["gpu2", "gpu10", "gpu11", "split", "wild", "zero"]


@pytest.mark.parametrize(
    ("state", "mark", "colour"),
    [("free", "*", 32), ("busy", " ", 34), ("held", "=", 33), ("faulty", "!", 31), ("unknown", "?", 31)],
)
def test_a_state_is_a_mark_and_a_colour(state, mark, colour):
    """The row from the card on is coloured; a name with a border in it moves nothing."""
    made = files(Snapshot(NOW, (host("a|b"),), (gpu("a|b", 0, state=state),)))
    assert f"|a|b               |{mark}0:A100-SXM4-80GB " in made["term.txt"]
    assert f"|a|b               |\x1b[{colour}m{mark}0:A100-SXM4-80GB " in made["term.ansi"]


def test_a_host_that_is_down_says_since_when():
    """Its cards are what they were then: they are counted, and not shown."""
    made = files(lab())
    assert block(made["term.txt"], "gpu11") == [
        "|gpu11             | status: down (timeout)                                    |",
        f"|                  | last update: {NOW:%Y-%m-%d %H:%M} UTC, 2 GPUs unknown         |",
    ]
    detail = made["hosts/gpu11.txt"].splitlines()[3:]
    assert detail == [
        f"  last update: {NOW:%Y-%m-%d %H:%M} UTC",
        "  status: down: no answer.",
        "  robotics",
        "  RTX 3090",
        "-" * 80,
        "_" * 80,
    ]
    assert "last update: –" in made["hosts/zero.txt"]  # noqa: RUF001


def test_a_host_that_is_ill_says_why_and_shows_its_cards():
    """In red, in colour."""
    made = files(lab())
    first, *cards = block(made["term.txt"], "wild")
    assert first == "|wild              | status: degraded (lost-gpu)                               |"
    assert len(cards) == 4
    assert "\x1b[31m status: degraded (lost-gpu)" in made["term.ansi"]
    assert "  status: degraded: 1 of 4 GPUs lost or in error.\n" in made["hosts/wild.txt"]


@pytest.mark.parametrize("status", ["up", "degraded"])
def test_a_host_without_a_card_says_so(status):
    """In both."""
    made = files(Snapshot(NOW, (host("gpu1", status),)))
    assert "| no GPU has been seen  " in made["term.txt"]
    assert "\n  no GPU has been seen\n" in made["detail.txt"]


def test_a_lab_without_hosts_says_so():
    """Instead of a table of nothing."""
    made = files(Snapshot(NOW))
    assert "| No host has been asked yet.  " in made["term.txt"]
    assert "\nNo host has been asked yet.\n" in made["detail.txt"]
    assert made["term.txt"].count("0 of 0 GPUs free") == 1


def test_what_is_not_known_is_a_dash_and_never_zero():
    """Not a number of a card of which nothing is known."""
    made = files(Snapshot(NOW, (host("gpu1"),), (Gpu("gpu1", 7),)))
    (row,) = block(made["term.txt"], "gpu1")
    assert row == "|gpu1              |?7:–                    |      – /      – |     – %|   – °C|"  # noqa: RUF001
    _, values, _, memory, processes = made["detail.txt"].split("  ┌")[1].splitlines()[1:6]
    assert values == "  │     – /        –                 –             –            –         –  │"  # noqa: RUF001
    assert memory == f"  │ mem [{' ' * 61}]    – │"  # noqa: RUF001
    assert processes.startswith("  │  its processes are not known ")
    assert "0" not in re.sub(r"\d{4}-.*UTC|0 of 1", "", made["term.txt"] + made["detail.txt"])


def test_a_process_of_no_card_is_shown_all_the_same():
    """It may be on any of them."""
    card = gpu("gpu1", 0, state="busy")
    stray = process(card, None, "lost.py", gpu_uuid="GPU-else", started_at=NOW - timedelta(days=3))
    text = files(Snapshot(NOW, (host("gpu1"),), (card,), (stray,)))["hosts/gpu1.txt"]
    assert "  on no GPU that is known:\n    └── lost.py                     1024MiB owner hidden" in text
    assert text.count("lost.py") == 1
    assert re.search(r"owner hidden +3 d$", text, re.MULTILINE)


def test_two_cards_of_one_index_are_both_there():
    """A machine whose driver counts badly is no reason to leave one out."""
    cards = (gpu("gpu1", 0), gpu("gpu1", 0)._replace(uuid="GPU-other", state="busy", memory_used_mib=4711))
    made = files(Snapshot(NOW, (host("gpu1"),), cards))
    assert len(block(made["term.txt"], "gpu1")) == 2
    assert made["detail.txt"].count("┌[ gpu:0 A100") == 2
    assert "4711 / 81920MiB" in made["detail.txt"]


def test_all_processes_are_listed():
    """Seventeen of them: the largest first, whatever their order was."""
    card = gpu("gpu1", 0, state="busy")
    many = tuple(process(card, f"user{n}", f"{n}.py", memory_mib=n, pid=n) for n in range(1, 18))
    text = files(Snapshot(NOW, (host("gpu1"),), (card,), many))["detail.txt"]
    assert re.findall(r"── (\d+)\.py", text) == [str(n) for n in range(17, 0, -1)]
    assert text.count("└── ") == 1


def test_colours_are_all_that_term_ansi_has_more():
    """Without its escapes it is term.txt, and each of them is a colour, or the end of one."""
    made = files(lab())
    assert ESCAPE.sub("", made["term.ansi"]) == made["term.txt"]
    assert set(ESCAPE.findall(made["term.ansi"])) == {
        *(f"\x1b[{colour}m" for colour in (0, 1, 31, 32, 33, 34)),
    }
