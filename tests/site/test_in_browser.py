"""The overview in a real Chromium."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_asks_nobody_else_and_complains_of_nothing(browser, serve, make_site, fresh, dark):
    """No console message, no request to another server, under the strict policy."""
    url = serve(make_site(fresh, now=fresh.taken_at))
    page = browser.open(url, dark=dark)
    assert page.messages == []
    assert len(page.requests) >= 3
    assert all(request.startswith(url) for request in page.requests)


def test_names_of_strangers_run_nothing(browser, serve, make_site, fresh):
    """The scripts in the names of users and processes stay text."""
    page = browser.open(serve(make_site(fresh, now=fresh.taken_at)))
    assert page.value("document.title") == "1 free – GPU monitor"  # noqa: RUF001
    assert page.value("document.querySelectorAll('img').length") == 0
    assert "<script>" in page.value("document.querySelector('#host-mixed_2222 .gpu:last-child').textContent")


@pytest.mark.parametrize("width", [360, 500, 768, 1500])
def test_no_width_needs_sideways_scrolling(browser, serve, make_site, fresh, width):
    """Neither the page nor what is in a cell is cut off or sticks out."""
    page = browser.open(serve(make_site(fresh, now=fresh.taken_at)), width=width)
    assert page.value("document.documentElement.scrollWidth") <= width
    outside = (
        "[...document.querySelectorAll('.gpu > *')].filter(e => "
        "e.getBoundingClientRect().right > e.closest('.gpu').getBoundingClientRect().right + 0.5).length"
    )
    assert page.value(outside) == 0


def test_a_page_that_is_rendered_no_more_says_so(browser, serve, make_site, snapshot):
    """Cron has stopped: the page was fresh when it was written, and is old when it is looked at."""
    old = snapshot._replace(taken_at=datetime.now(UTC) - timedelta(hours=2))
    page = browser.open(serve(make_site(old, now=old.taken_at)))
    assert page.value("document.getElementById('stale').checkVisibility()")
    assert page.value("document.querySelector('#fresh time').textContent") == "2 h ago"


def test_a_fresh_page_gives_ages(browser, serve, make_site, fresh):
    """No warning; the time is told as an age."""
    page = browser.open(serve(make_site(fresh, now=fresh.taken_at)))
    assert not page.value("document.getElementById('stale').checkVisibility()")
    assert page.value("document.querySelector('#fresh time').textContent") == "just now"


def test_it_opens_from_a_folder_too(browser, make_site, fresh):
    """`open site/index.html`, without any server."""
    page = browser.open((make_site(fresh, now=fresh.taken_at) / "index.html").as_uri())
    assert page.messages == []
    assert page.value("getComputedStyle(document.querySelector('.big b')).fontSize") == "44px"
