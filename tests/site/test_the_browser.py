"""The driver of the browser does what a person would, and sees what a person would."""

from __future__ import annotations

import struct
import threading

import pytest
from servers.axe import violations

from webmon.publish.serve import Server

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>A page</title>
<link rel="icon" href="icon.svg"><link rel="stylesheet" href="page.css"><script src="page.js" defer></script>
<main>
<h1>A page</h1>
<button id="one">One</button>
<label>Text <input id="text"></label>
<a class="far" href="#far">Far away</a>
<p id="hidden">not shown</p>
<p id="empty"></p>
<p id="under">under</p><div id="over"></div>
%s
</main></html>
"""
ICON = '<svg xmlns="http://www.w3.org/2000/svg"/>'
STYLE = """
main { height: 3000px; scroll-behavior: smooth }
h1 { position: sticky; top: 0; margin: 0; height: 80px; background: white }
.far { position: absolute; top: 2000px; left: 50px }
#hidden { visibility: hidden }
#empty { width: 0; height: 0 }
#under { margin: 0 }
#over { height: 40px; margin-top: -30px; position: relative }
.pale { color: #ccc; background: #fff }
"""
SCRIPT = """
const log = [];
const note = event => log.push(
  [event.type, event.target.id || event.target.className, event.pointerType || event.key]
    .filter(Boolean).join(' '));
for (const type of ['click', 'pointerover', 'pointerout', 'touchstart', 'keydown', 'input']) {
  document.addEventListener(type, event => event.isTrusted && note(event));
}
document.addEventListener('visibilitychange', note);
addEventListener('offline', note);
addEventListener('online', note);
const taken = () => log.splice(0);
"""


@pytest.fixture(scope="module")
def make_page(tmp_path_factory):
    """Serve the page above, with more in it, under the strict policy, and return its address."""
    folder = tmp_path_factory.mktemp("site")
    for name, content in (("page.css", STYLE), ("page.js", SCRIPT), ("icon.svg", ICON)):
        (folder / name).write_text(content, encoding="utf-8")
    server = Server(folder, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def make(more=""):
        (folder / "index.html").write_text(PAGE % more, encoding="utf-8")
        return server.url

    yield make
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def _closed_pages(browser):
    yield
    browser.close_pages()


def test_the_mouse_comes_clicks_and_goes(browser, make_page):
    """All events are real ones, on the element that is meant."""
    page = browser.open(make_page())
    page.hover("#one")
    assert page.value("taken()") == ["pointerover one mouse"]
    assert page.value("document.querySelector('#one').matches(':hover')")
    page.click("#one")
    assert page.value("taken()") == ["click one mouse"]
    assert page.focused == "button#one"
    page.move_away()
    assert page.value("taken()") == ["pointerout one mouse"]
    assert not page.value("document.querySelector(':hover')")
    assert page.value("matchMedia('(hover: hover) and (pointer: fine)').matches")


@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
def test_it_scrolls_to_what_it_clicks(browser, make_page, script):
    """Down to a link, and back up to a button that a heading would cover; without JavaScript too."""
    page = browser.open(make_page(), script=script)
    page.click(".far")
    assert page.value("location.hash") == "#far"
    assert page.focused == 'a.far "Far away"'
    page.value("scrollTo(0, 200)")
    page.click("#one")
    assert page.focused == "button#one"


@pytest.mark.parametrize(
    ("selector", "why"),
    [
        ("#none", "nothing matches"),
        ("#hidden", "it is invisible"),
        ("#empty", "it is invisible"),
        ("#under", "covered by '<div id"),
    ],
)
def test_what_cannot_be_clicked_is_not(browser, make_page, selector, why):
    """The test fails, and says why."""
    page = browser.open(make_page())
    with pytest.raises((AssertionError, pytest.fail.Exception), match=f"{selector}: .*{why}"):
        page.click(selector)


def test_a_finger_is_no_mouse(browser, make_page):
    """A phone has no hover; a tap is a touch and a click."""
    page = browser.open(make_page(), width=360, touch=True)
    page.tap("#one")
    assert {"touchstart one", "pointerover one touch", "click one touch"} <= set(page.value("taken()"))
    assert page.value("matchMedia('(hover: none) and (pointer: coarse)').matches")
    assert page.value("navigator.maxTouchPoints") == 1


def test_keys_reach_what_has_the_focus(browser, make_page):
    """Tab moves, a text is typed key by key, Enter presses a button; Control selects and writes nothing."""
    page = browser.open(make_page())
    assert page.focused == "body"
    seen = [(page.press(keys), page.focused)[1] for keys in ("Tab", "Tab", "Tab", "Shift+Tab")]
    assert seen == ["button#one", "input#text", 'a.far "Far away"', "input#text"]
    page.value("taken()")
    page.type("a B+")
    typed = ["keydown text a", "keydown text  ", "keydown text B", "keydown text +"]
    assert page.value("taken()") == [event for key in typed for event in (key, "input text")]
    assert page.value("document.activeElement.value") == "a B+"
    page.press("Control+a")
    page.press("Backspace")
    assert page.value("document.activeElement.value") == ""
    page.press("Shift+Tab")
    page.press("Enter")
    assert page.value("taken()").count("click one mouse") == 0
    assert page.focused == "button#one"


def test_it_reads_what_is_seen(browser, make_page):
    """Hidden texts are no texts."""
    page = browser.open(make_page("<p>one</p><p hidden>two</p><p>three</p>"))
    assert page.texts("p") == ["", "under", "one", "three"]
    assert page.count_visible("p") == 4
    assert page.text("h1") == "A page"
    with pytest.raises(AssertionError, match="#hidden: nothing"):
        page.text("#hidden")


def test_it_waits_until_something_is_true(browser, make_page):
    """What can't be worked out yet is waited for too; in the end it says what it has seen."""
    page = browser.open(make_page())
    page.value("void setTimeout(() => { globalThis.late = {there: 7} }, 100)")
    assert page.until("late.there") == 7
    with pytest.raises(pytest.fail.Exception, match=r"after 0.1 s, log.length is still 0"):
        page.until("log.length", seconds=0.1)


def test_a_hidden_page_knows_it(browser, make_page):
    """Its timers are slowed down, its requests are seen, and it comes back."""
    page = browser.open(make_page())
    page.hide()
    assert page.value("[document.visibilityState, ...taken()]") == ["hidden", "visibilitychange"]
    page.forget()
    page.value("void setTimeout(() => fetch('page.css?hidden').then(() => { globalThis.done = true }), 1)")
    page.until("globalThis.done")
    assert [request.partition("?")[2] for request in page.requests] == ["hidden"]
    with pytest.raises(AssertionError, match="the page is hidden"):
        page.click("#one")
    page.show()
    assert page.value("[document.visibilityState, ...taken()]") == ["visible", "visibilitychange"]
    page.click("#one")


def test_pages_side_by_side_are_all_visible(browser, make_page):
    """Each has a window of its own."""
    url = make_page()
    pages = [browser.open(url), browser.open(url)]
    assert [page.value("document.visibilityState") for page in pages] == ["visible", "visible"]
    pages[0].close()
    pages[1].click("#one")


def test_without_a_network_nothing_is_fetched(browser, make_page):
    """The page is told, and told again when it is back."""
    page = browser.open(make_page())
    fetched = "fetch('page.css', {cache: 'no-store'}).then(answer => answer.status, String)"
    page.offline(True)
    assert page.value(fetched) == "TypeError: Failed to fetch"
    assert not page.value("navigator.onLine")
    page.offline(False)
    assert page.value(fetched) == 200
    page.until("log.includes('online') && log.includes('offline')")
    assert set(page.messages) == {"Failed to load resource: net::ERR_INTERNET_DISCONNECTED"}


@pytest.mark.parametrize("host", ["127.0.0.1", "gpu.lab"])
def test_what_was_copied_can_be_pasted(browser, make_page, host):
    """Also from an origin that isn't trusted, and so has no navigator.clipboard."""
    page = browser.open(make_page().replace("127.0.0.1", host))
    trusted = host == "127.0.0.1"
    assert page.value("[isSecureContext, 'clipboard' in navigator]") == [trusted, trusted]
    by_script = "navigator.clipboard.writeText" if trusted else "(() => document.execCommand('copy'))"
    page.value(
        "void (document.querySelector('#one').onclick = () => {"
        f" getSelection().selectAllChildren(document.querySelector('h1')); {by_script}('A page') }})"
    )
    page.click("#one")
    assert page.clipboard() == "A page"
    page.click("#text")
    page.type(f"for {host}")
    page.press("Control+a")
    page.press("Control+c")
    assert page.clipboard() == f"for {host}"
    assert page.focused == "input#text"


def test_nobody_else_is_reached(browser, make_page):
    """Names and addresses other than this machine's aren't even looked up."""
    page = browser.open(make_page())
    for url in ("http://example.com/", "http://192.0.2.1/"):
        with pytest.raises(AssertionError, match="ERR_NAME_NOT_RESOLVED"):
            page.go(url)


def test_it_is_looked_at_in_other_ways(browser, make_page):
    """Dark, still, with forced colours, on paper, in a smaller window; and back."""
    page = browser.open(make_page(), before="globalThis.early = document.readyState")
    assert page.value("early") == "loading"
    queries = ("(prefers-color-scheme: dark)", "(prefers-reduced-motion)", "(forced-colors: active)", "print")
    matches = f"{list(queries)}.map(query => matchMedia(query).matches)"
    page.media(dark=True, reduced_motion=True, forced_colors=True, printed=True)
    assert page.value(matches) == [True] * 4
    page.media()
    assert page.value(matches) == [False] * 4
    page.resize(500, 400)
    assert page.value("[innerWidth, innerHeight]") == [500, 400]


def test_pictures_are_of_the_window_or_of_all(browser, make_page, tmp_path):
    """The page is longer than the window."""
    page = browser.open(make_page(), width=400, height=300)
    heights = []
    for whole in (False, True):
        page.picture(tmp_path / "picture.png", whole=whole)
        heights.append(struct.unpack(">I", (tmp_path / "picture.png").read_bytes()[20:24])[0])
    assert heights[0] == 300
    assert heights[1] >= 3000


def test_large_pages_and_large_messages(browser, make_page):
    """Megabytes go through the pipe, both ways; what Chromium counts is told, and it can be slowed down."""
    page = browser.open(make_page("<i>x</i>" * 8000))
    assert page.metrics()["Nodes"] > 16000
    assert page.count_visible("i") == 8000
    assert page.value(f"'{'x' * 5_000_000}'.repeat(2)") == "x" * 10_000_000
    page.value(
        "void (globalThis.busy = () => { const start = performance.now();"
        " for (let i = 0; i < 1e7; i++); return performance.now() - start })"
    )
    usual = min(page.value("busy()") for _ in range(10))
    page.slow_down(10)
    assert sum(page.value("busy()") for _ in range(10)) > 10 * usual * 2


def test_dialogs_and_crashes_stop_no_test(browser, make_page):
    """A dialog is dismissed and noted; of a crash one is told at once, and other pages go on."""
    page, other = browser.open(make_page()), browser.open("about:blank")
    assert page.value("confirm('Sure?')") is False
    page.value("console.log(1, 'two')")
    page.value("void setTimeout(() => { throw new Error('three') })")
    page.until("true")
    assert page.messages[0] == "1 two"
    assert page.messages[1].startswith("Error: three")
    assert page.messages[2:] == ["confirm: Sure?"]
    with pytest.raises(pytest.fail.Exception, match="the page has crashed"):
        page.call("Page.crash")
    page.close()
    assert other.value("1 + 1") == 2


def test_axe_finds_what_is_planted_and_nothing_else(browser, make_page):
    """A picture without a text, and pale letters; the strict policy doesn't stop it."""
    assert violations(browser.open(make_page())) == []
    page = browser.open(make_page("<img src='page.css'><p class='pale'>pale</p>"))
    found = violations(page)
    assert [text.split(",")[0] for text in found] == ["color-contrast", "image-alt"]
    assert ".pale" in found[0]
    assert "critical" in found[1]
