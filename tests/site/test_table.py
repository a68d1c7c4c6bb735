"""The table of all GPUs."""

from __future__ import annotations

import pytest
from clusters import (
    lab,
    large,
    looking,
    query,
    rows,
    search,
    served,
    shown,
    switch,
    uneven,
)

ROWS = ["gpu1 0", "gpu1 1", "gpu2 0", "gpu2 2", "gpu9 0", "gpu10 0", "gpu10 1"]
# The rows by each column, ascending. Those that are equal, and those that are missing here since
# nothing is known of them, keep the order of ROWS; the latter come last, in both directions.
ASCENDING = {
    "host": ["gpu1 0 = gpu1 1", "gpu2 0 = gpu2 2", "gpu9 0", "gpu10 0 = gpu10 1"],
    "gpu": ["gpu1 0 = gpu2 0 = gpu9 0 = gpu10 0", "gpu1 1 = gpu10 1", "gpu2 2"],
    "model": ["gpu10 1", "gpu10 0", "gpu2 0", "gpu1 1 = gpu2 2", "gpu1 0"],
    "state": ["gpu1 0 = gpu2 0 = gpu10 0", "gpu10 1", "gpu1 1", "gpu2 2", "gpu9 0"],
    "use": ["gpu2 2", "gpu1 1", "gpu1 0", "gpu2 0"],
    "used": ["gpu1 1", "gpu1 0", "gpu2 0", "gpu2 2", "gpu10 0"],
    "memory": ["gpu2 0", "gpu1 1 = gpu2 2", "gpu10 1", "gpu1 0", "gpu10 0"],
    "temperature": ["gpu10 0", "gpu1 1", "gpu2 0", "gpu1 0"],
    "power": ["gpu1 1", "gpu2 0", "gpu1 0", "gpu10 0"],
    "user": ["gpu2 0", "gpu1 0", "gpu2 2", "gpu10 0"],
    "program": ["gpu10 0", "gpu2 0", "gpu1 0"],
    "running": ["gpu10 0", "gpu2 0", "gpu1 0", "gpu2 2"],
}
COUNT = "document.querySelectorAll('#table tbody tr').length"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with served(uneven(), tmp_path_factory.mktemp("uneven")) as address:
        yield address


@pytest.fixture
def look(browser, url):
    with looking(browser, url) as opened:
        yield opened


@pytest.fixture(scope="module")
def large_url(tmp_path_factory):
    with served(large(66, 8), tmp_path_factory.mktemp("large")) as address:
        yield address


@pytest.fixture
def look_at_many(browser, large_url):
    with looking(browser, large_url) as opened:
        yield opened


def expected(column, *, down=False):
    """Return the rows as they have to be, sorted by a column."""
    groups = [group.split(" = ") for group in ASCENDING[column]]
    known = [row for group in (groups[::-1] if down else groups) for row in group]
    return [*known, *(row for row in ROWS if row not in known)]


def sorting(page):
    """Return what a screen reader is told of the columns' order."""
    return page.value(
        "Object.fromEntries([...document.querySelectorAll('#table [aria-sort]')]"
        ".map(head => [head.querySelector('button').value, head.getAttribute('aria-sort')]))"
    )


def column(name):
    return f"#table th button[value={name}]"


def test_every_gpu_is_a_row(look):
    """Hosts in the order that a person would count them; what is not known is a dash, or not there."""
    page = look("?view=table")
    assert page.texts("#table th") == [
        *("host", "GPU", "model", "state", "utilization", "used", "memory", "temp.", "power"),
        *("users", "program", "running"),
    ]
    texts = page.value(
        "[...document.querySelectorAll('#table tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.innerText.replaceAll('\\u202f', ' ')))"
    )
    assert len(texts) == 7
    assert texts[0] == [
        *("gpu1", "0", "RTX A6000", "busy", "10 %", "9 GB", "48 GB", "100 °C", "310 W"),
        *("bob", "train10.py", "3 h"),
    ]
    assert texts[3] == [
        *("gpu2", "2", "RTX 3090", "idle, held", "0 %", "11.5 GB", "24 GB", "–", "–"),  # noqa: RUF001
        *("carol", "", "2 d"),
    ]
    assert texts[4] == ["gpu9", "0", "–", "unknown", *"–––––", "no data", "", ""]  # noqa: RUF001


def test_the_rows_lead_to_the_pages(look):
    """Of the host, and to the place of the GPU in it."""
    page = look("?view=table")
    links = page.value("[...document.querySelectorAll('#table a')].map(link => link.getAttribute('href'))")
    assert links[:2] == ["hosts/gpu1.html", "hosts/gpu1.html#gpu0"]
    assert links[-2:] == ["hosts/gpu10.html", "hosts/gpu10.html#gpu1"]


@pytest.mark.parametrize("name", ASCENDING)
def test_each_column_sorts(look, name):
    """A click sorts upwards, the next one downwards; numbers as numbers, times as times, unknown last."""
    other = "power" if name == "host" else "host"
    page = look(f"?view=table&by=-{other}")
    page.click(column(name))
    assert rows(page) == expected(name)
    assert sorting(page) == {name: "ascending"}
    page.click(column(name))
    assert rows(page) == expected(name, down=True)
    assert sorting(page) == {name: "descending"}
    page.click(column(name))
    assert rows(page) == expected(name)
    assert sorting(page) == {name: "ascending"}


@pytest.mark.parametrize("by", ["use", "-use", "-host", "-running"])
def test_the_column_is_in_the_address(look, by):
    """A minus is downwards; upwards by host is the usual, and not told."""
    name, down = by.lstrip("-"), by.startswith("-")
    page = look(f"?view=table&by={by}")
    assert rows(page) == expected(name, down=down)
    assert sorting(page) == {name: "descending" if down else "ascending"}
    assert query(page) == f"?view=table&by={by}"
    page.click(column("gpu"))
    page.click(column("host"))
    assert query(page) == "?view=table"
    page.click(column(name))
    page.click(column(name))
    if name == "host":
        page.click(column(name))
    assert query(page) == f"?view=table&by=-{name}"


def test_the_heads_are_as_the_pattern_wants_them(look):
    """A button in each, which says that it can be sorted by; the head says how it is."""
    page = look("?view=table")
    assert page.value("document.querySelectorAll('#table thead th[scope=col] > button').length") == 12
    assert sorting(page) == {"host": "ascending"}


def test_an_arrow_shows_the_column_and_the_direction(look):
    """The same as is told to a screen reader, which needs no arrow."""
    page = look("?view=table&by=use")
    arrow = "getComputedStyle(document.querySelector('{}'), '::after').content"
    assert page.value(arrow.format(column("use"))) == '"▲" / ""'
    assert page.value(arrow.format(column("power"))) == '"↕" / ""'
    page.click(column("use"))
    assert page.value(arrow.format(column("use"))) == '"▼" / ""'


def test_equal_rows_do_not_depend_on_what_was_before(look):
    """They keep the order of the hosts."""
    page = look("?view=table")
    for name in ("running", "running", "use", "model", "state"):
        page.click(column(name))
    assert rows(page) == expected("state")


def test_the_keyboard_sorts(look):
    """Tab leads from column to column, and the focus stays where it is."""
    page = look("?view=table")
    page.value("document.querySelector('#view-table').focus()")
    for _ in range(5):
        page.press("Tab")
    page.press("Space")
    assert rows(page) == expected("use")
    assert sorting(page) == {"use": "ascending"}
    page.press("Enter")
    assert rows(page) == expected("use", down=True)
    page.press("Shift+Tab")
    page.press("Enter")
    assert rows(page) == expected("state")
    assert page.focused == 'button "state"'


def test_rows_are_filtered_and_stay_sorted(look):
    """And counted."""
    page = look("?view=table&by=-use")
    search(page, "a6000")
    assert rows(page) == ["gpu1 0"]
    search(page, "busy")
    assert rows(page) == ["gpu2 0", "gpu1 0", "gpu10 0"]
    assert page.value("document.querySelector('[role=status]').textContent") == "3 of 7 GPUs shown"
    page.click("#free")
    assert rows(page) == []
    page.click("#all")
    assert rows(page) == expected("use", down=True)


def test_the_order_outlasts_another_view(look):
    """Whoever comes back to the table finds it as it was."""
    page = look("?view=table")
    page.click(column("power"))
    switch(page, "cards")
    assert query(page) == "?by=power"
    assert shown(page) == ROWS
    switch(page, "table")
    assert rows(page) == expected("power")


def test_several_users_are_one_text(browser, tmp_path):
    """The first is the one who has most of the card."""
    with served(lab(), tmp_path) as url, looking(browser, url) as look:
        page = look("?view=table&by=user")
        users = 1 + page.texts("#table th").index("users")
        texts = page.texts(f"#table td:nth-child({users})")
        assert texts[:4] == ["alice", "alice, bob", "bob", "carol"]


def test_of_many_rows_the_first_come_at_once(look_at_many):
    """And how many there are besides."""
    page = look_at_many("?view=table")
    here, left = page.value(f"[{COUNT}, document.querySelector('#further').innerText]")
    assert 30 <= here < 528
    assert left == f"{min(528 - here, 480)} more"


def test_all_rows_come_when_they_are_asked_for(look_at_many):
    """Each once, and in order."""
    page = look_at_many("?view=table")
    page.until(f"{COUNT} === 480")  # so many come by themselves, and push the button down
    page.click("#further")
    page.until(f"{COUNT} === 528")
    assert page.count_visible("#further") == 0
    assert rows(page) == [f"gpu{number:03}.lab {index}" for number in range(1, 67) for index in range(8)]


def test_all_rows_are_sorted_and_not_only_those_that_are_there(look_at_many):
    """The last come first, if that is asked for."""
    page = look_at_many("?view=table&by=-host")
    assert rows(page)[:9] == [*(f"gpu066.lab {index}" for index in range(8)), "gpu065.lab 0"]
    page.click(column("gpu"))
    assert rows(page)[:3] == ["gpu001.lab 0", "gpu002.lab 0", "gpu003.lab 0"]


def test_all_rows_are_found_and_not_only_those_that_are_there(look_at_many):
    """Few enough need no button."""
    page = look_at_many("?view=table")
    search(page, "gpu066")
    assert rows(page) == [f"gpu066.lab {index}" for index in range(8)]
    assert page.count_visible("#further") == 0
    search(page, "")
    assert page.count_visible("#further") == 1


def test_paper_shows_all_rows(look_at_many):
    """A printed page has no button to press."""
    page = look_at_many("?view=table")
    page.call("Page.printToPDF", pageRanges="1")
    page.until(f"{COUNT} === 528")
    page.media(printed=True)
    assert page.count_visible("#further") == 0
    assert page.count_visible("#tools") == 0
