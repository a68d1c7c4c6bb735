"""The page keeps itself up to date: in the background, and in nobody's way; in a real Chromium."""

from __future__ import annotations

import re
import threading
from datetime import timedelta

import pytest
from lab import RTX3090, lab, later, link, taken

from webmon.model import Gpu, Host
from webmon.publish import render as rendering
from webmon.publish import serve as serving
from webmon.publish.handler import Handler

# Seconds. A configuration has whole ones; no test wants to wait for them.
SOON = 0.2

# How often the page has looked whether there is something new.
LOOKED = (
    "performance.getEntriesByType('resource')"
    ".filter(({name}) => name === location.origin + location.pathname).length"
)
# A clock that can be put forward: `passed = 60000`.
CLOCK = "const now = Date.now; globalThis.passed = 0; Date.now = () => now() + passed"
LOGIN = b"<!doctype html><title>Sign in</title><main><h1>Sign in</h1><form><input></form></main>"


class Server(serving.Server):
    """A server of a site that can be told to do something else."""

    answer = None

    def __init__(self, folder):
        super().__init__(folder, "127.0.0.1", 0)
        self.RequestHandlerClass = _Handler
        self.over = threading.Event()


class _Handler(Handler):
    def _answer(self):
        answer = self.server.answer
        if answer is None:
            super()._answer()
        elif answer == "nothing":
            self.close_connection = True
        elif answer == "wait":
            self.server.over.wait(20)
            self.close_connection = True
        else:
            status, content = answer
            self._send(status, "text/html; charset=utf-8", content)


@pytest.fixture
def snapshot():
    """The small lab."""
    return lab()


@pytest.fixture
def publish(make_site):
    """Render a snapshot, as cron would, and return the folder."""

    def publish(snapshot):
        return make_site(snapshot, now=snapshot.taken_at, refresh=SOON)

    return publish


@pytest.fixture
def server(publish, snapshot):
    """Serve the small lab."""
    server = Server(publish(snapshot))
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()


@pytest.fixture
def look(browser, server):
    """Open a page; in the end, none has complained, but of a server that does not answer as it should."""
    pages = []

    def look(path="", **options):
        page = browser.open(server.url + path, **options)
        pages.append(page)
        return page

    yield look
    for page in pages:
        assert [text for text in page.messages if not text.startswith("Failed to load resource: ")] == []


def has_icon(page, state):
    return page.value(f"document.querySelector('link[rel=icon]').href.includes('/icon-{state}.')")


def until_looked(page, times=2):
    """Wait until the page has looked so often once more: what was there before has been seen then."""
    before = page.value(LOOKED)
    page.until(f"{LOOKED} >= {before + times}")


def until_says(page, selector, text):
    page.until(f"document.querySelector({selector!r}).innerText.includes({text!r})")


def cell(host, index):
    return f"#hosts li:has(> {link(host, index, '')})"


# ---- What has changed ----


def test_what_has_changed_is_swapped_in_and_nothing_else(look, publish, snapshot):
    """The GPU that somebody has taken; all other nodes are the very same ones as before."""
    page = look()
    assert page.value("document.title") == "4 free – GPU monitor"  # noqa: RUF001
    page.value("document.querySelectorAll('main *').forEach(element => { element.old = true })")
    publish(taken(snapshot, "gpu07", 1))
    until_says(page, cell("gpu07", 1), "zoe")
    assert page.value("document.title") == "3 free – GPU monitor"  # noqa: RUF001
    assert page.text(".big") == "3 of 8 GPUs free"
    assert page.value(f"document.querySelector({cell('gpu07', 1)!r}).matches('.busy:not(.free)')")
    assert page.value(f"document.querySelector({cell('gpu07', 1)!r}).old")
    new = page.value(
        "[...document.querySelectorAll('main *')].filter(element => !element.old)"
        f".filter(element => !element.closest({cell('gpu07', 1)!r})).map(element => element.outerHTML)"
    )
    assert new == []


def test_the_icon_says_whether_one_is_free(look, publish, snapshot):
    """And changes with it, there and back."""
    page = look()
    assert has_icon(page, "some")
    full = snapshot
    for gpu in snapshot.gpus:
        if gpu.state == "free":
            full = taken(full, gpu.host, gpu.index)
    publish(full)
    page.until("document.title.startsWith('0 free')")
    assert has_icon(page, "none")
    publish(later(full, gpus=snapshot.gpus))
    page.until("document.title.startsWith('4 free')")
    assert has_icon(page, "some")


@pytest.mark.parametrize(
    "query", ["", "?sort=free", "?sort=busy&view=compact", "?view=table&by=-used", "?q=gpu0&free=1"]
)
def test_hosts_come_and_go(browser, look, server, publish, snapshot, query):
    """The page becomes what one that is opened afterwards is, in every order and view."""
    gpu = Gpu("", 0, None, RTX3090, "free", 0, memory_used_mib=4, memory_total_mib=24576)
    seen = {"status": "up", "checked_at": snapshot.taken_at, "last_seen": snapshot.taken_at}
    changed = later(
        snapshot,
        hosts=(
            Host("gpu01", **seen),
            *(host for host in snapshot.hosts if host.host != "gpu08"),
            Host("gpu010", **seen),
        ),
        gpus=(
            *(gpu._replace(host="gpu01", index=index, uuid=f"GPU-1{index}") for index in range(4)),
            *(gpu._replace(host="gpu09", index=index, uuid=f"GPU-9{index}") for index in range(3)),
            *(gpu for gpu in snapshot.gpus if gpu.host == "gpu07" and gpu.index != 1),
            *(gpu for gpu in snapshot.gpus if gpu.host == "mixed:2222"),
        ),
    )
    page = look(query)
    page.value("document.querySelector('#host-gpu07').old = true")
    publish(changed)
    page.until("document.querySelector('#host-gpu01') !== null")
    fresh = look(query)
    expected = fresh.value("document.querySelector('main').innerText")
    assert page.value("document.querySelector('main').innerText") == expected
    assert page.value("document.title") == fresh.value("document.title")
    assert page.value("document.querySelector('#host-gpu07').old")
    # What was sorted anew goes back to the server's order, the new hosts in their places.
    for one in (page, fresh):
        one.value(
            "(() => { const sort = document.querySelector('#sort'); sort.value = 'host';"
            " sort.dispatchEvent(new Event('input', {bubbles: true})) })()"
        )
    order = "[...document.querySelectorAll('#hosts > .host')].map(host => host.id)"
    assert page.value(order) == [
        f"host-{name}" for name in ("gpu01", "gpu07", "gpu09", "gpu010", "mixed_2222")
    ]
    assert fresh.value(order) == page.value(order)


def test_a_host_has_a_page_that_refreshes_too(look, publish, snapshot):
    """New processes come, the rest stays."""
    page = look("hosts/gpu07.html")
    page.value("document.querySelector('#gpu3').old = true")
    assert has_icon(page, "some")
    publish(taken(taken(snapshot, "gpu07", 1), "gpu07", 2))
    until_says(page, "#gpu1", "new.py")
    assert page.text(".sum .count") == "0 of 4 free"
    assert has_icon(page, "none")
    assert page.value("document.querySelector('#gpu3').old")


def test_the_overview_is_written_last(publish, snapshot, monkeypatch):
    """Whoever sees what is new finds it on the pages of the hosts as well, and a page for each new host."""
    written = []
    write = rendering.write_if_changed
    monkeypatch.setattr(
        rendering, "write_if_changed", lambda path, *rest: written.append(path.name) or write(path, *rest)
    )
    publish(taken(snapshot, "gpu07", 1))
    assert written[-1] == "index.html"
    assert "gpu07.html" in written


# ---- What somebody is doing ----

STATE = """(() => {
  const {q, free, memory, sort} = document.querySelector('#tools').elements;
  const pressed = [...document.querySelectorAll('.tile[aria-pressed=true]')].map(tile => tile.value);
  const view = document.querySelector('[name=view]:checked').value;
  const by = document.querySelector('th[aria-sort]')?.innerText;
  return {q: q.value, caret: [q.selectionStart, q.selectionEnd], free: free.checked, memory: memory.value, by,
    sort: sort.value, pressed, view, address: location.href, scroll: [scrollX, scrollY]};
})()"""


def test_what_is_typed_stays(look, publish, snapshot):
    """The filter, the place of the caret in it, the model that was chosen, and the place in the page."""
    page = look("?sort=free", width=400, height=400)
    page.click(".tile[value='A100 80GB']")
    page.click("#q")
    page.type("gpu07 ")
    for key in ("ArrowLeft", "ArrowLeft", "Shift+ArrowLeft"):
        page.press(key)
    page.value("scrollTo(0, 90)")
    before = page.value(STATE)
    assert (before["q"], before["caret"], before["scroll"]) == ("gpu07 ", [3, 4], [0, 90])
    assert (before["pressed"], before["sort"]) == (["A100 80GB"], "free")
    publish(taken(snapshot, "gpu07", 1))
    until_says(page, cell("gpu07", 1), "zoe")
    until_looked(page)
    assert page.value(STATE) == before
    assert page.focused == "input#q"
    assert page.count_visible("li.gpu") == 4
    page.type("x")
    assert page.value("document.querySelector('#q').value") == "gpux7 "


def test_a_filter_holds_for_what_is_new(look, publish, snapshot):
    """A GPU that is free no more leaves the free ones; one that becomes free comes."""
    page = look("?free=1&memory=80")
    assert page.count_visible("li.gpu") == 2
    publish(taken(snapshot, "gpu07", 1))
    page.until("document.title.startsWith('3 free')")
    assert page.count_visible("li.gpu") == 1
    assert page.text("#found") == "1 of 8 GPUs shown"
    publish(later(later(snapshot)))
    page.until("document.title.startsWith('4 free')")
    assert page.count_visible("li.gpu") == 2


def test_the_table_stays_as_it_is_sorted(look, publish, snapshot):
    """By the column that was clicked on; the new rows are in their places, the focus is on its button."""
    page = look("?view=table")
    page.click("th button[value=use]")
    page.click("th button[value=use]")
    before = page.value(STATE)
    assert before["address"].endswith("?view=table&by=-use")
    publish(taken(snapshot, "gpu07", 1))
    until_says(page, "#table", "zoe")
    assert page.value(STATE) == before
    assert page.focused == 'button "utilization"'
    assert page.texts("#table td:nth-child(5)")[:5] == ["97\u202f%"] * 3 + ["88\u202f%", "0\u202f%"]
    assert page.texts("#table td:nth-child(10)")[3] == "zoe"


@pytest.mark.parametrize(
    ("query", "focus"),
    [
        ("", cell("gpu07", 2) + " > a"),
        ("?sort=free", "#host-mixed_2222 h2 a"),
        ("?sort=free", cell("mixed_2222", 1) + " > a"),
        ("?view=table&by=-use", link("gpu07", 1, "#table")),
        ("", ".tile[value='RTX 3090']"),
        ("", "#theme"),
        ("", "#memory"),
    ],
    ids=["cell", "host that moves", "cell that moves", "row that moves", "tile that moves", "theme", "tools"],
)
def test_the_focus_stays(look, publish, snapshot, query, focus):
    """On the same thing, wherever it has moved to."""
    page = look(query)
    page.value(f"document.querySelector({focus!r}).focus()")
    assert page.value(f"document.activeElement === document.querySelector({focus!r})")
    publish(taken(taken(snapshot, "gpu07", 1), "gpu07", 2))
    page.until("document.title.startsWith('2 free')")
    until_looked(page)
    assert page.value(f"document.activeElement === document.querySelector({focus!r})")


def test_the_focus_stays_on_its_gpu_when_another_one_is_gone(look, publish, snapshot):
    """Even where the GPUs of a host move up."""
    page = look()
    page.value(f"document.querySelector({link('gpu07', 2)!r}).focus()")
    publish(later(snapshot, gpus=snapshot.gpus[1:]))
    page.until("document.querySelectorAll('#host-gpu07 li').length === 3")
    assert page.value("document.activeElement.getAttribute('href')") == "hosts/gpu07.html#gpu2"
    until_says(page, "#details", "GPU-72")


def test_the_place_in_the_page_stays(look, publish, snapshot):
    """What is being read does not move when a host comes above it."""
    page = look(width=400, height=300)
    page.value("document.querySelector('#host-mixed_2222').scrollIntoView()")
    top = page.value("Math.round(document.querySelector('#host-mixed_2222').getBoundingClientRect().top)")
    publish(later(snapshot, hosts=(Host("gpu01", error="no answer", status="down"), *snapshot.hosts)))
    page.until("document.querySelector('#host-gpu01') !== null")
    page.until(
        "(top => Math.abs(top - document.querySelector('#host-mixed_2222').getBoundingClientRect().top) < 2)"
        f"({top})",
        seconds=1,
    )


# ---- Details that are open ----


@pytest.mark.parametrize("focus", ["", ".where a", ".where .copy", ".close", ".sheet .copy"])
def test_details_that_are_open_tell_the_news(look, publish, snapshot, focus):
    """They stay open, with the new processes in them, and the focus stays where it is in them."""
    page = look()
    page.click(link("gpu07", 1))
    until_says(page, "#details .sheet", "No processes.")
    inside = f"#details {focus}".strip()
    page.value(f"document.querySelector({inside!r}).focus()")
    publish(taken(snapshot, "gpu07", 1))
    until_says(page, "#details .sheet", "new.py")
    assert page.text("#details .state") == "busy"
    assert page.value(f"document.activeElement === document.querySelector({inside!r})")
    publish(later(later(snapshot)))
    until_says(page, "#details .sheet", "No processes.")
    assert page.value(f"document.activeElement === document.querySelector({inside!r})")


def test_details_stay_at_their_gpu(look, publish, snapshot):
    """A host that comes above moves the cell, and the box along with it."""
    page = look()
    page.click(link("gpu07", 1))
    until_says(page, "#details .sheet", "GPU-71")
    gap = (
        "document.querySelector('#details').getBoundingClientRect().top"
        f" - document.querySelector({cell('gpu07', 1)!r}).getBoundingClientRect().bottom"
    )
    before = page.value(gap)
    assert 0 <= before < 10
    publish(later(snapshot, hosts=(Host("gpu01", error="no answer", status="down"), *snapshot.hosts)))
    page.until("document.querySelector('#host-gpu01') !== null")
    page.until(f"Math.abs({gap} - {before}) < 1")


def test_the_place_in_the_details_stays(look, publish, snapshot):
    """Whoever has scrolled to the last of many processes stays there."""
    page = look(height=500)
    page.click(link("gpu08", 0))
    until_says(page, "#details .sheet", "worker16.py")
    page.value("document.querySelector('#details').scrollTop = 150")
    worn = tuple(
        process._replace(command="retrained.py") if process.pid == 216 else process
        for process in snapshot.processes
    )
    publish(later(snapshot, processes=worn))
    until_says(page, "#details .sheet", "retrained.py")
    assert page.value("document.querySelector('#details').scrollTop") == 150


def test_details_of_what_is_gone_close(look, publish, snapshot):
    """The host has been taken off the list."""
    page = look()
    page.click(link("gpu08", 1))
    until_says(page, "#details .sheet", "GPU-81")
    publish(
        later(
            snapshot,
            hosts=tuple(host for host in snapshot.hosts if host.host != "gpu08"),
            gpus=tuple(gpu for gpu in snapshot.gpus if gpu.host != "gpu08"),
        )
    )
    page.until("!document.querySelector('#host-gpu08')")
    page.until("!document.querySelector('#details').checkVisibility()")


# ---- When it looks, and when not ----


def test_nothing_is_touched_when_nothing_has_changed(look, server):
    """The server says that it is the same page (304), and no node changes."""
    page = look()
    page.value("""globalThis.changes = [];
      new MutationObserver(records => records.forEach(({type, target, attributeName, oldValue}) => {
        if (type === 'attributes' && target.getAttribute(attributeName) === oldValue) return;
        if (type === 'characterData' && !target.parentElement) return;
        if ((target.closest ? target : target.parentElement).closest('time')) return;
        changes.push(`${type} ${attributeName} ${target.outerHTML ?? target.data}`);
      })).observe(document.body, {subtree: true, childList: true, characterData: true, attributes: true,
        attributeOldValue: true, characterDataOldValue: true})""")
    page.forget()
    until_looked(page, 4)
    assert page.value("changes") == []
    asked = {
        event["requestId"]
        for event in page._events("Network.requestWillBeSent")
        if event["request"]["url"] == server.url
    }
    answers = page._events("Network.responseReceivedExtraInfo")
    assert {event["statusCode"] for event in answers if event["requestId"] in asked} == {304}


def test_a_hidden_page_asks_for_nothing(look, publish, snapshot):
    """And looks at once when it is seen again."""
    page = look()
    until_looked(page, 1)
    page.hide()
    page.value("'what was under way has come'")
    page.forget()
    publish(taken(snapshot, "gpu07", 1))
    # Timers of hidden pages go once in a second.
    page.value("new Promise(done => setTimeout(() => setTimeout(done, 10), 1010))")
    assert page.requests == []
    assert page.value("document.title").startswith("4 free")
    # It does not wait for its timer.
    page.value("globalThis.setInterval = null; for (let id = 1; id < 9999; id++) clearInterval(id)")
    page.show()
    page.until("document.title.startsWith('3 free')")


def test_a_new_version_reloads_the_page(look, server, publish, snapshot):
    """Once, and with the filter that was set: its address has it."""
    folder = publish(snapshot)
    page = look()
    page.click("#q")
    page.type("gpu08")
    page.value("globalThis.old = true")
    script = page.value("document.querySelector('script').getAttribute('src')")
    newer = re.sub(r"\.[0-9a-f]+\.js", ".newer.js", script)
    (folder / newer).write_bytes((folder / script).read_bytes())
    index = folder / "index.html"
    index.write_text(index.read_text(encoding="utf-8").replace(script, newer), encoding="utf-8")
    page.until("!globalThis.old && document.readyState === 'complete'")
    assert page.value("document.querySelector('script').getAttribute('src')") == newer
    page.until("document.querySelector('#q').value === 'gpu08'")
    assert page.count_visible("li.gpu") == 2
    page.value("globalThis.old = true")
    until_looked(page, 3)
    assert page.value("globalThis.old")


def test_opened_from_a_folder_it_reloads_itself(browser, publish, snapshot):
    """Without any server there is nothing to fetch; the details are what the overview knows."""
    folder = publish(snapshot)
    page = browser.open((folder / "index.html").as_uri() + "?q=gpu07")
    publish(taken(snapshot, "gpu07", 1))
    page.until("document.title.startsWith('3 free')")
    page.until("document.querySelector('#q').value === 'gpu07'")


# ---- A lost server, and old data ----


def until_lost(page, why):
    until_says(page, "#lost", f"Out of touch: {why}")
    assert page.count_visible("#lost") == 1
    page.until("document.title === '(old) 4 free \u2013 GPU monitor'")
    assert has_icon(page, "old")
    assert page.value("document.querySelector('#fresh').matches('.old')")


def until_found(page):
    page.until("!document.querySelector('#lost').checkVisibility()")
    page.until("document.title === '3 free \u2013 GPU monitor'")
    assert has_icon(page, "some")
    assert not page.value("document.querySelector('#fresh').matches('.old')")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("nothing", "the server can't be reached"),
        ((502, b"<h1>Bad Gateway</h1>"), "the server answers 502"),
        ((200, LOGIN), "the server answers with another page"),
        ((200, b""), "the server answers with another page"),
        ((404, b"Not Found"), "the server answers 404"),
    ],
    ids=["stopped", "bad gateway", "login", "empty", "not found"],
)
def test_a_lost_server_is_said_and_found_again(look, server, publish, snapshot, answer, why):
    """With the age of what is shown, in the title and in the icon; what it sends instead is never shown."""
    page = look(before=CLOCK)
    shown = page.value("document.querySelector('main').innerText")
    server.answer = answer
    until_lost(page, why)
    assert page.text("#lost time") == "just now"
    page.value("passed = 3 * 60000")
    until_says(page, "#lost time", "3 min ago")
    assert page.text("#fresh time") == "3 min ago"
    assert page.value("document.querySelector('main').innerText") == shown
    page.value("passed = 0")
    publish(taken(snapshot, "gpu07", 1))
    server.answer = None
    until_found(page)
    assert page.text(cell("gpu07", 1) + " .who").startswith("zoe")


def test_a_lost_network_is_said_and_found_again(look, server, publish, snapshot):
    """The icon that says so was there before the network had gone."""
    page = look()
    page.until("document.readyState === 'complete'")
    until_looked(page, 1)
    page.forget()
    page.offline(True)
    until_lost(page, "the server can't be reached")
    until_looked(page, 1)
    publish(taken(snapshot, "gpu07", 1))
    lost = {event["requestId"] for event in page._events("Network.loadingFailed")}
    sent = page._events("Network.requestWillBeSent")
    failed = [event["request"]["url"] for event in sent if event["requestId"] in lost]
    assert server.url in failed
    page.offline(False)
    until_found(page)
    assert [url for url in failed if "icon" in url] == []


def test_a_server_that_hangs_is_lost(look, server):
    """It takes the request, and never answers."""
    hurry = "const after = AbortSignal.timeout; AbortSignal.timeout = ms => after.call(AbortSignal, ms / 50)"
    page = look(before=hurry)
    server.answer = "wait"
    until_lost(page, "the server can't be reached")


def test_a_lost_server_takes_nothing_away(look, server):
    """Filters and details go on; what has not been asked for before is said to be missing."""
    page = look()
    page.click(link("gpu07", 1))
    until_says(page, "#details .sheet", "GPU-71")
    until_looked(page, 1)
    server.answer = "nothing"
    until_lost(page, "the server can't be reached")
    assert page.text("#details .sheet h2") == "GPU 1 NVIDIA A100-SXM4-80GB"
    page.click("#q")
    page.type("gpu08")
    assert page.count_visible("li.gpu") == 2
    page.click(link("gpu08", 1))
    until_says(page, "#details", "The rest can't be loaded: the server can't be reached.")
    assert "GPU-81" in page.text("#details")


def test_old_data_is_said_with_its_age(look, publish, snapshot):
    """Cron has stopped: after three periods the page says so, and takes it back when data comes again."""
    page = look(before=CLOCK)
    page.value("passed = 14 * 60000")
    page.until("document.querySelector('#fresh time').innerText === '14 min ago'")
    assert page.count_visible("#stale") == 0
    page.value("passed = 16 * 60000")
    until_says(page, "#stale", "it was taken 16 min ago")
    assert page.value("document.title") == "(old) 4 free – GPU monitor"  # noqa: RUF001
    assert has_icon(page, "old")
    assert page.count_visible("#lost") == 0
    page.value("passed = 26 * 3600000")
    until_says(page, "#stale", "it was taken 1 d ago")
    publish(snapshot._replace(taken_at=snapshot.taken_at + timedelta(hours=24)))
    until_says(page, "#stale", "it was taken 2 h ago")
    publish(taken(snapshot, "gpu07", 1)._replace(taken_at=snapshot.taken_at + timedelta(hours=26)))
    page.until("document.title === '3 free \u2013 GPU monitor'")
    assert page.count_visible("#stale") == 0
    assert has_icon(page, "some")


def test_a_host_page_says_it_too(look, server):
    """That its server is lost, and when it is back."""
    page = look("hosts/gpu07.html")
    server.answer = "nothing"
    until_says(page, "#lost", "Out of touch: the server can't be reached.")
    assert page.value("document.title") == "(old) gpu07 – GPU monitor"  # noqa: RUF001
    assert has_icon(page, "old")
    server.answer = None
    page.until("!document.querySelector('#lost').checkVisibility()")
    assert page.value("document.title") == "gpu07 – GPU monitor"  # noqa: RUF001
