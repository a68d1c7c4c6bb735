"""The compact view: a whole lab on one screen. And what holds for all views."""

from __future__ import annotations

from itertools import pairwise

import pytest
from clusters import lab, large, looking, query, rows, search, served, shown, switch, wordy

CELLS = """[...document.querySelectorAll('#hosts li.gpu')].map(cell => {
  const {left, top, right, bottom, width, height} = cell.getBoundingClientRect();
  return {left, top, right, bottom, width, height};
})"""
# What sticks out of the window, unless it is cut off with dots or has a scroll bar of its own.
OUTSIDE = """(() => {
  const isCut = part => part && (getComputedStyle(part).overflowX !== 'visible' || isCut(part.parentElement));
  return [...document.querySelectorAll('main *')]
    .filter(part => part.checkVisibility() && part.getBoundingClientRect().right > innerWidth + 0.5)
    .filter(part => !isCut(part.parentElement))
    .map(part => part.outerHTML.slice(0, 80));
})()"""
SIDEWAYS = """[...document.querySelectorAll('main *')]
  .filter(part => getComputedStyle(part).overflowX === 'auto' && part.scrollWidth > part.clientWidth)
  .map(part => part.outerHTML.slice(0, 80))"""
STATES = ("free", "held", "busy", "faulty", "unknown")


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with served(lab(), tmp_path_factory.mktemp("lab")) as address:
        yield address


@pytest.fixture
def look(browser, url):
    with looking(browser, url) as opened:
        yield opened


def colour(page, selector, part=""):
    style = f"getComputedStyle(document.querySelector('{selector}'), '{part}')"
    return page.value(f"{style}.backgroundColor")


@pytest.mark.parametrize(
    ("hosts", "gpus", "name", "models"),
    [
        pytest.param(125, 8, "gpu{:03}.lab", 4, id="125 x 8"),
        pytest.param(250, 4, "gpu{:03}.lab", 4, id="250 x 4"),
        pytest.param(250, 4, "node{:03}.cluster.example.org", 4, id="long names"),
        pytest.param(125, 8, "gpu{:03}.lab", 9, id="nine models"),
    ],
)
def test_a_thousand_gpus_fit_one_screen(browser, tmp_path, hosts, gpus, name, models):
    """Of a small laptop, without scrolling, with a tile for each model; no cell lies over another."""
    with served(large(hosts, gpus, name, models), tmp_path) as url, looking(browser, url) as look:
        page = look("?view=compact", width=1280, height=800)
        # What the browser has not laid out yet, it takes to be larger.
        page.until("document.documentElement.scrollHeight <= 800")
        cells = page.value(CELLS)
        assert len(cells) == 1000
        assert max(cell["bottom"] for cell in cells) <= 800
        assert max(cell["right"] for cell in cells) <= 1280
        assert min(cell["width"] for cell in cells) >= 12
        assert min(cell["height"] for cell in cells) >= 12
        in_order = sorted(cells, key=lambda cell: (cell["top"], cell["left"]))
        assert all(a["right"] <= b["left"] or a["bottom"] <= b["top"] for a, b in pairwise(in_order))


def test_each_state_has_a_colour_of_its_own(look):
    """One that stands out from the page, in the light and in the dark; the legend shows the same."""
    page = look("?view=compact")
    for dark in (False, True):
        page.media(dark=dark)
        colours = [colour(page, f"#hosts .gpu.{state}") for state in STATES]
        assert len({*colours, colour(page, "body")}) == 6
        assert [colour(page, f".legend .{state} .state", "::before") for state in STATES] == colours


def test_a_state_is_not_told_by_colour_alone(look):
    """Each has a shape, too, and a word for those who listen."""
    page = look("?view=compact")
    shapes = {
        page.value(f"getComputedStyle(document.querySelector('#hosts .{state} .state'), '::before').clipPath")
        for state in STATES
    }
    assert len(shapes) == 5
    assert page.text("#hosts .free") == "0 A100 80GB\nfree"


def test_only_the_hosts_name_and_the_cells_are_seen(look):
    """A host without cells says why there are none."""
    page = look("?view=compact")
    assert page.texts(".facts, .label, .group, .count, .why, .use, .mem, .who, .more, .for") == []
    assert page.texts("#hosts h2") == ["gpu2", "gpu10", "gpu11", "split", "wild", "zero"]
    none = "getComputedStyle([...document.querySelectorAll('.host')].at(-1), '::after').content"
    assert page.value(none) == '"no GPU seen"'


def test_the_views_are_switched(look):
    """By a click on their names; the address tells which it is, and the usual one is not told."""
    page = look()
    assert page.count_visible("#hosts .who") == 15
    switch(page, "compact")
    assert query(page) == "?view=compact"
    assert page.count_visible("#hosts .who") == 0
    assert len(shown(page)) == 15
    switch(page, "table")
    assert query(page) == "?view=table"
    assert shown(page) == []
    assert len(rows(page)) == 15
    switch(page, "cards")
    assert query(page) == ""
    assert page.count_visible("#hosts .who") == 15
    assert page.count_visible("#list") == 0


@pytest.mark.parametrize("view", ["cards", "compact", "table"])
def test_an_address_leads_to_a_view(look, view):
    """The control says which it is."""
    page = look(f"?view={view}")
    assert page.value("document.querySelector('[name=view]:checked').value") == view
    assert (len(shown(page)), page.count_visible("#table tbody tr")) == (
        (0, 15) if view == "table" else (15, 0)
    )


def test_cells_are_filtered(look):
    """What does not fit leaves no gap."""
    page = look("?view=compact")
    left, top = page.value("(({x, y}) => [x, y])(document.querySelector('.gpu').getBoundingClientRect())")
    search(page, "jupyter")
    assert shown(page) == ["gpu2 2", "gpu10 3"]
    first = page.value("(({x, y}) => [x, y])(document.querySelector('.gpu.held').getBoundingClientRect())")
    assert first == [left, top]


@pytest.mark.parametrize("view", ["cards", "compact", "table"])
@pytest.mark.parametrize("width", [360, 768])
def test_no_view_scrolls_sideways(browser, tmp_path, view, width):
    """Not with long names; nothing sticks out. On a phone not even the table does, within the page."""
    with served(wordy(), tmp_path) as url, looking(browser, url) as look:
        page = look(f"?view={view}", width=width, height=780, touch=width == 360)
        assert page.value("document.documentElement.scrollWidth") <= width
        assert page.value(OUTSIDE) == []
        if width == 360:
            assert page.value(SIDEWAYS) == []


def test_a_finger_finds_a_cell(browser, tmp_path):
    """On a phone, cells are larger, and a hundred of them still fit."""
    with served(large(25, 4), tmp_path) as url, looking(browser, url) as look:
        page = look("?view=compact", width=360, height=780, touch=True)
        cells = page.value(CELLS)
        assert min(cell["width"] for cell in cells) >= 20
        assert max(cell["bottom"] for cell in cells) - min(cell["top"] for cell in cells) <= 780
