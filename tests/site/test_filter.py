"""Finding GPUs: by typing, by what is asked of them, by the tiles; and sharing what was found."""

from __future__ import annotations

import pytest
from clusters import (
    NOW,
    called,
    choose,
    host,
    lab,
    looking,
    query,
    rows,
    search,
    served,
    shown,
    shown_hosts,
    switch,
)

from webmon.model import Snapshot

FOUND = {
    "gpu2": ["gpu2 0", "gpu2 1", "gpu2 2"],
    "Rack-B": ["gpu2 0", "gpu2 1", "gpu2 2"],
    "robotics": ["gpu11 0", "gpu11 1"],
    "A6000": ["wild 2"],
    "mig": ["split 0", "split 1"],
    "alice": ["gpu2 1", "wild 2"],
    "frank": ["split 1"],
    "ollama": ["gpu10 2"],
    "free": ["gpu2 0", "gpu10 1", "wild 0", "wild 1"],
    "held": ["gpu2 2", "gpu10 3"],
    "idle": ["gpu2 2", "gpu10 3"],
    "faulty": ["wild 3"],
    "degraded": ["wild 0", "wild 1", "wild 2", "wild 3"],
}
A100S = ["gpu2 0", "gpu2 1", "gpu2 2", "wild 0", "wild 1"]
LARGE_CARDS = ["gpu2 0", "gpu2 1", "gpu2 2", "split 0", "split 1", "wild 0", "wild 1"]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with served(lab(), tmp_path_factory.mktemp("lab")) as address:
        yield address


@pytest.fixture
def look(browser, url):
    with looking(browser, url) as opened:
        yield opened


def said(page):
    """Return what a screen reader is told of how much is shown."""
    return page.value("document.querySelector('[role=status]').textContent")


def tile(model):
    return f'.tile[value="{model}"]'


def pressed(page):
    return page.texts(".tile[aria-pressed=true]")


def test_typing_finds_host_label_group_model_user_program_and_state(look):
    """Wherever the text is, and whichever way it is written."""
    page = look()
    found = {}
    for text in FOUND:
        search(page, text)
        found[text] = shown(page)
    assert found == FOUND


def test_whoever_is_second_on_a_card_is_found(look):
    """Bob has a GPU of his own, and shares one on which Alice has more."""
    page = look()
    search(page, "bob")
    assert shown(page) == ["gpu2 1", "gpu10 2"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("vision 3090 free", ["gpu10 1"]),
        ("  FREE\tViSiOn  3090 ", ["gpu10 1"]),
        ("a100 80gb alice", ["gpu2 1"]),
        ("alice free", []),
        ("rack-b 3090", []),
    ],
)
def test_all_of_several_words_are_needed(look, text, found):
    """In any order, with any spaces, in upper or lower case."""
    page = look()
    search(page, text)
    assert shown(page) == found


def test_down_finds_the_hosts_that_are_down(look):
    """With the GPUs that they had, or with none."""
    page = look()
    search(page, "down")
    assert shown_hosts(page) == ["gpu11", "zero"]
    assert shown(page) == ["gpu11 0", "gpu11 1"]


def test_a_host_without_a_match_is_not_shown(look):
    """Neither are the words in its header looked at: each says how many GPUs are free."""
    page = look()
    assert "0 of 2 free" in page.texts(".host .count")
    search(page, "free")
    assert shown_hosts(page) == ["gpu2", "gpu10", "wild"]


def test_free_only(look):
    """And all again; a host whose GPUs nobody has seen has no free one."""
    page = look()
    page.click("#free")
    assert shown(page) == FOUND["free"]
    assert shown_hosts(page) == ["gpu2", "gpu10", "wild"]
    page.click("#free")
    assert len(shown(page)) == 15
    assert "zero" in shown_hosts(page)


def test_a_minimum_of_memory(look):
    """The sizes that the lab has, as they are printed on the box; a card of unknown size is not meant."""
    page = look()
    assert page.value("[...document.getElementById('memory').options].map(o => o.text)") == [
        *("any", "24 GB", "48 GB", "80 GB")
    ]
    choose(page, "#memory", "80 GB")
    assert shown(page) == LARGE_CARDS
    choose(page, "#memory", "48 GB")
    assert shown(page) == [*LARGE_CARDS, "wild 2"]
    choose(page, "#memory", "24 GB")
    assert len(shown(page)) == 14
    choose(page, "#memory", "any")
    assert len(shown(page)) == 15


def test_a_tile_for_each_model_with_the_most_free_first(look):
    """Free and total; of what has no name there is none."""
    page = look()
    assert page.texts(".tile") == ["3/5 A100 80GB", "1/6 RTX 3090", "0/2 H100 80GB", "0/1 RTX A6000"]
    assert page.count_visible(".tile[aria-pressed=false]") == 4


def test_a_tile_filters_when_it_is_pressed(look):
    """And no longer when it is pressed again."""
    page = look()
    page.click(tile("A100 80GB"))
    assert shown(page) == A100S
    assert pressed(page) == ["3/5 A100 80GB"]
    page.click(tile("A100 80GB"))
    assert len(shown(page)) == 15
    assert pressed(page) == []


def test_several_tiles_mean_either_model(look):
    """One that is let go is no longer meant."""
    page = look()
    page.click(tile("A100 80GB"))
    page.click(tile("RTX A6000"))
    assert shown(page) == [*A100S, "wild 2"]
    assert pressed(page) == ["3/5 A100 80GB", "0/1 RTX A6000"]
    page.click(tile("A100 80GB"))
    assert shown(page) == ["wild 2"]
    assert pressed(page) == ["0/1 RTX A6000"]


def test_everything_that_is_asked_is_needed_together(look):
    """Words, free only, memory and model."""
    page = look()
    page.click("#free")
    assert said(page) == "4 of 15 GPUs shown"
    page.click(tile("A100 80GB"))
    assert said(page) == "3 of 15 GPUs shown"
    search(page, "wild")
    assert said(page) == "2 of 15 GPUs shown"
    choose(page, "#memory", "80 GB")
    assert shown(page) == ["wild 0", "wild 1"]
    page.click(tile("H100 80GB"))
    page.click(tile("A100 80GB"))
    assert said(page) == "0 of 15 GPUs shown"


def test_how_many_are_shown_is_told_to_those_who_do_not_see_it(look):
    """Where nothing is left out, nothing needs to be said."""
    page = look()
    assert said(page) == ""
    search(page, "bob")
    assert said(page) == "2 of 15 GPUs shown"
    search(page, "")
    assert said(page) == ""


@pytest.mark.parametrize("view", ["cards", "compact", "table"])
def test_if_nothing_fits_it_says_so_and_offers_all(look, view):
    """Everything is asked no longer, but order and view stay; the next word can be typed at once."""
    page = look(f"?view={view}&sort=free&free=1&memory=24&model=A100+80GB")
    assert page.count_visible("#none") == 0
    search(page, "nobody")
    assert page.text("#none") == "No GPU fits. Show all"
    assert said(page) == "0 of 15 GPUs shown"
    page.click("#all")
    assert page.count_visible("#none") == 0
    assert len(rows(page) if view == "table" else shown(page)) == 15
    assert pressed(page) == []
    assert query(page) == "?sort=free" + (f"&view={view}" if view != "cards" else "")
    page.type("bob")
    assert said(page) == "2 of 15 GPUs shown"


def test_a_table_without_rows_says_so(look):
    """What is found is a host, and it has no GPU."""
    page = look("?view=table")
    search(page, "zero")
    assert rows(page) == []
    assert page.text("#none") == "No GPU fits. Show all"


@pytest.mark.parametrize("view", ["compact", "table"])
def test_every_view_shows_the_same(look, view):
    """What was found stays found when the view is another one."""
    page = look()
    search(page, "vision")
    page.click("#free")
    switch(page, view)
    assert (rows(page) if view == "table" else shown(page)) == ["gpu2 0", "gpu10 1"]
    switch(page, "cards")
    assert shown(page) == ["gpu2 0", "gpu10 1"]


def ask_for_much(page):
    """Use every control, and return the address that it leads to."""
    search(page, " wild  Free ")
    page.click("#free")
    choose(page, "#memory", "48 GB")
    page.click(tile("A100 80GB"))
    page.click(tile("RTX A6000"))
    choose(page, "#sort", "busiest")
    switch(page, "compact")
    return page.value("location.href")


def controls(page):
    """Return what the controls say."""
    return page.value(
        "[...document.querySelectorAll('#tools input, #tools select')]"
        ".map(tool => tool.type === 'radio' || tool.type === 'checkbox' ? tool.checked : tool.value.trim())"
    )


def test_all_of_it_is_in_the_address(look, url):
    """In words, and only what differs from the usual; the history is not filled with it."""
    page = look()
    assert query(page) == ""
    asked = "?q=wild++Free&free=1&memory=48&sort=busy&view=compact&model=A100+80GB&model=RTX+A6000"
    assert ask_for_much(page) == url + asked
    assert page.value("history.length") == 2
    page.click("#free")
    switch(page, "cards")
    choose(page, "#sort", "host")
    assert query(page) == "?q=wild++Free&memory=48&model=A100+80GB&model=RTX+A6000"


def test_an_address_leads_to_the_same_view(look, url):
    """For somebody else, who opens the link, and for oneself, who loads the page anew."""
    page = look()
    address = ask_for_much(page)
    seen = (shown(page), controls(page), pressed(page), said(page))
    assert seen[0] == ["wild 0", "wild 1"]
    other = look(address.removeprefix(url))
    assert (shown(other), controls(other), pressed(other), said(other)) == seen
    page.value("window.isOld = true")
    page.call("Page.reload")
    page.until("!window.isOld && document.documentElement.classList.contains('js')")
    assert (shown(page), controls(page), pressed(page), said(page)) == seen
    assert page.value("location.href") == address


def test_the_place_in_the_address_stays(look):
    """A link to a host is one afterwards, too."""
    page = look("#gpu10")
    search(page, "bob")
    assert page.value("location.search + location.hash") == "?q=bob#gpu10"


@pytest.mark.parametrize(
    "nonsense",
    [
        "?view=x&sort=y&memory=abc&by=zzz&free=maybe",
        "?view=constructor&sort=toString&by=toString",
        "?view=table&by=toString",
        "?view=table&by=-",
        "?view=table&by=--host",
        "?memory=-1",
        "?memory=%00&=&&?%%&q",
    ],
)
def test_nonsense_in_the_address_breaks_nothing(look, nonsense):
    """What makes no sense counts as not said."""
    page = look(nonsense)
    assert len(rows(page) if "view=table" in nonsense else shown(page)) == 15
    search(page, "bob")
    switch(page, "cards")
    assert shown(page) == ["gpu2 1", "gpu10 2"]


@pytest.mark.parametrize(
    "nonsense", ["?q=%FF", "?model=none", "?model=&view=table", "?memory=9999", "?q=<img src=x>&memory=7e7"]
)
def test_who_is_sent_to_what_is_not_there_gets_back(look, nonsense):
    """A word that nobody has, a model that is gone, more memory than there is."""
    page = look(nonsense)
    assert page.text("#none") == "No GPU fits. Show all"
    page.click("#all")
    switch(page, "cards")
    assert len(shown(page)) == 15


def test_a_size_that_the_lab_has_not_can_be_asked_for(look):
    """The list says it, too."""
    page = look("?memory=30")
    assert page.value("document.querySelector('#memory').selectedOptions[0].text") == "30 GB"
    assert shown(page) == [*LARGE_CARDS, "wild 2"]


def test_the_keyboard_is_enough(look):
    """Tab leads from tile to tile, to the filter and on; each control does what it does elsewhere."""
    page = look()
    page.value("document.querySelector('#theme').focus()")
    page.press("Tab")
    page.press("Space")
    assert query(page) == "?model=A100+80GB"
    page.press("Enter")
    assert query(page) == ""
    for _ in range(4):
        page.press("Tab")
    assert page.focused == "input#q"
    page.type("a")
    page.press("Tab")
    page.press("Space")
    page.press("Tab")
    page.press("ArrowDown")
    page.press("Tab")
    page.press("ArrowDown")
    page.press("Tab")
    assert page.focused == "input#view-cards"
    page.press("ArrowRight")
    assert query(page) == "?q=a&free=1&memory=24&sort=free&view=compact"
    page.press("ArrowRight")
    assert query(page).endswith("&view=table")
    page.press("ArrowLeft")
    assert query(page).endswith("&view=compact")
    assert page.focused == "input#view-compact"
    page.press("Tab")
    assert page.focused.startswith("a")


def test_enter_loads_nothing(look):
    """What is typed has been looked for already; the form is not sent, as the policy would complain."""
    page = look()
    search(page, "bob")
    page.value("addEventListener('submit', event => { window.isSent = !event.defaultPrevented; })")
    page.press("Enter")
    page.until("window.isSent === false")
    page.type("by")
    assert query(page) == "?q=bobby"


def test_what_is_typed_stays_as_it_is_typed(look):
    """Spaces are not taken away under the hand, and the cursor stays where it is."""
    page = look()
    search(page, " bob")
    page.press("Home")
    page.type("vision ")
    assert page.value("document.querySelector('#q').value") == "vision  bob"
    assert shown(page) == ["gpu2 1", "gpu10 2"]


def test_it_finds_in_a_page_from_a_folder_too(browser, make_site):
    """Without any server; the address can be passed on there as well."""
    page = browser.open((make_site(lab(), now=NOW) / "index.html").as_uri())
    search(page, "bob")
    assert shown(page) == ["gpu2 1", "gpu10 2"]
    assert query(page) == "?q=bob"
    assert page.messages == []


def test_a_host_may_be_called_like_a_part_of_the_page(browser, tmp_path):
    """Whatever a host is called, it is found, and looks like any other."""
    names = ["all", "details", "found", "free", "further", "hosts", "list", "memory"]
    names += ["none", "q", "sort", "table", "theme", "tools", "view-table"]
    with served(called(*names), tmp_path) as url, looking(browser, url) as look:
        page = look()
        assert shown_hosts(page) == names
        widths = page.value("[...document.querySelectorAll('.host')].map(host => host.offsetWidth)")
        assert len(set(widths)) == 1
        switch(page, "table")
        assert page.texts("#table td:first-child") == names
        search(page, "tab")
        switch(page, "cards")
        assert shown_hosts(page) == ["table", "view-table"]


def test_a_lab_without_gpus_can_be_filtered(browser, tmp_path):
    """There is nothing to press and nothing to choose, and nothing breaks."""
    empty = Snapshot(NOW, (host("gpu1"), host("zero", "down")))
    with served(empty, tmp_path) as url, looking(browser, url) as look:
        page = look()
        search(page, "down")
        assert shown_hosts(page) == ["zero"]
        page.click("#free")
        assert page.text("#none") == "No GPU fits. Show all"
