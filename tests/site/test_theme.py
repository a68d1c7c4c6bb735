"""Dark and light, by the system and by the switch, in a real Chromium."""

from __future__ import annotations

import pytest
from lab import lab

# Whether what is seen is dark: by the colours themselves, not by what the page says of them.
IS_DARK = """(() => {
  const light = colour => colour.match(/[\\d.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0);
  const {backgroundColor, color} = getComputedStyle(document.body);
  return light(backgroundColor) < light(color);
})()"""
NO_STORAGE = "Object.defineProperty(window, 'localStorage', {get() { throw new Error('not allowed') }})"


@pytest.fixture
def look(browser, serve, make_site):
    """Open a page of the small lab: `look("hosts/gpu07.html", dark=True)`."""
    snapshot = lab()
    url = serve(make_site(snapshot, now=snapshot.taken_at))
    pages = []

    def look(path="", **options):
        pages.append(browser.open(url + path, **options))
        return pages[-1]

    yield look
    # All pages of the browser share what is stored: the next test gets none of it.
    browser.open(url).value("localStorage.clear()")
    for page in pages:
        assert page.messages == []


def reload(page):
    page.go(page.value("location.href"))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("path", ["", "hosts/gpu07.html"], ids=["overview", "host"])
def test_it_is_as_the_system_is(look, path, dark):
    """And changes with it, at once; the switch says what it would switch to."""
    page = look(path, dark=dark)
    for now in (dark, not dark, dark):
        page.media(dark=now)
        page.until(f"{IS_DARK} === {str(now).lower()}")
        page.until(f"document.querySelector('#theme').innerText === {'light' if now else 'dark'!r}")


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_switch_is_remembered(look, dark):
    """Over a reload, and on the other pages; whatever the system does then."""
    page = look(dark=dark)
    page.click("#theme")
    assert page.value(IS_DARK) != dark
    assert page.text("#theme") == ("dark" if dark else "light")
    reload(page)
    assert page.value(IS_DARK) != dark
    other = look("hosts/gpu07.html", dark=dark)
    assert other.value(IS_DARK) != dark
    assert other.text("#theme") == ("dark" if dark else "light")
    for system in (not dark, dark):
        other.media(dark=system)
        other.until(f"matchMedia('(prefers-color-scheme: dark)').matches === {str(system).lower()}")
    assert other.value(IS_DARK) != dark


def test_who_comes_back_to_the_system_follows_it_again(look):
    """Over a reload too."""
    page = look(dark=False)
    page.click("#theme")
    page.click("#theme")
    assert not page.value(IS_DARK)
    reload(page)
    assert not page.value(IS_DARK)
    page.media(dark=True)
    page.until("document.querySelector('#theme').innerText === 'light'")
    assert page.value(IS_DARK)


def test_it_is_painted_right_from_the_start(look):
    """Nothing of the body has been read when the theme that was chosen holds: it does not flash."""
    look(dark=False).click("#theme")
    page = look(
        dark=False,
        before="new MutationObserver((_, watching) => { if (!document.body) return; watching.disconnect();"
        " globalThis.first = document.documentElement.dataset.theme })"
        ".observe(document, {childList: true, subtree: true})",
    )
    assert page.value("first") == "dark"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_without_storage_it_still_switches(look, dark):
    """The choice lasts as long as the page; all the rest works as well."""
    page = look(dark=dark, before=NO_STORAGE)
    assert page.value(IS_DARK) == dark
    page.click("#theme")
    assert page.value(IS_DARK) != dark
    page.click("#q")
    page.type("gpu07")
    page.until("document.querySelector('#found').textContent === '4 of 8 GPUs shown'")
    assert page.count_visible("li.gpu") == 4
    page.click("#theme")
    assert page.value(IS_DARK) == dark
    reload(page)
    assert page.value(IS_DARK) == dark


def test_the_keyboard_switches_too(look):
    """It is a button with a name that says what it does."""
    page = look(dark=False)
    page.value("document.querySelector('#theme').focus()")
    page.press("Enter")
    assert page.value(IS_DARK)
    assert page.value("document.querySelector('#theme').title") == "switch between dark and light"
    assert page.focused == "button#theme"
