"""The order of the hosts."""

from __future__ import annotations

import pytest
from clusters import called, choose, lab, looking, query, search, served, shown, shown_hosts, switch

ORDERS = {
    "host": ["gpu2", "gpu10", "gpu11", "split", "wild", "zero"],
    # wild has two; of gpu2 and gpu10, which have one each, the first comes first, and so on.
    "free first": ["wild", "gpu2", "gpu10", "gpu11", "split", "zero"],
    # 45 %, 33 %, 3 %; of the others nobody knows.
    "busiest": ["gpu10", "gpu2", "wild", "gpu11", "split", "zero"],
}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with served(lab(), tmp_path_factory.mktemp("lab")) as address:
        yield address


@pytest.fixture
def look(browser, url):
    with looking(browser, url) as opened:
        yield opened


def test_hosts_come_as_a_person_would_count(browser, tmp_path):
    """gpu2 before gpu10, whatever stands before and after the number."""
    names = ["a1.lab", "gpu1", "gpu2", "gpu2-10", "gpu10", "gpu100", "node9.rack2", "node9.rack10"]
    with served(called(*sorted(names, reverse=True)), tmp_path) as url, looking(browser, url) as look:
        assert shown_hosts(look()) == names


@pytest.mark.parametrize("order", ["free first", "busiest"])
@pytest.mark.parametrize("view", ["cards", "compact"])
def test_hosts_can_be_sorted(look, view, order):
    """By their free GPUs, by how busy they are, and back to their names."""
    page = look(f"?view={view}")
    assert shown_hosts(page) == ORDERS["host"]
    choose(page, "#sort", order)
    assert shown_hosts(page) == ORDERS[order]
    assert page.focused == "select#sort"
    choose(page, "#sort", "host")
    assert shown_hosts(page) == ORDERS["host"]


def test_hosts_that_are_equal_keep_their_order(look):
    """Whichever order was there before."""
    page = look()
    choose(page, "#sort", "busiest")
    choose(page, "#sort", "free first")
    assert shown_hosts(page) == ORDERS["free first"]


@pytest.mark.parametrize(("word", "order"), [("free", "free first"), ("busy", "busiest")])
def test_the_order_is_in_the_address(look, word, order):
    """The usual one needs no word."""
    page = look(f"?sort={word}")
    assert shown_hosts(page) == ORDERS[order]
    assert page.value("document.querySelector('#sort').selectedOptions[0].text") == order
    choose(page, "#sort", "host")
    assert query(page) == ""
    choose(page, "#sort", order)
    assert query(page) == f"?sort={word}"


def test_what_is_found_is_sorted(look):
    """And what is sorted can be found."""
    page = look()
    search(page, "a100")
    assert shown_hosts(page) == ["gpu2", "wild"]
    choose(page, "#sort", "free first")
    assert shown_hosts(page) == ["wild", "gpu2"]
    search(page, "vision")
    assert shown_hosts(page) == ["gpu2", "gpu10"]
    search(page, "")
    assert shown_hosts(page) == ORDERS["free first"]


def test_the_cards_of_a_host_stay_in_their_order(look):
    """It is the hosts that are sorted; in the table, the columns are."""
    page = look()
    choose(page, "#sort", "busiest")
    switch(page, "compact")
    assert shown(page)[:7] == [
        *("gpu10 0", "gpu10 1", "gpu10 2", "gpu10 3"),
        *("gpu2 0", "gpu2 1", "gpu2 2"),
    ]
