"""users.html, history.html and the lines of the last day, in a real Chromium."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from lab import A100, lab, later, link, process, taken
from servers import axe
from usage_seen import ALICE, BOB, FREE, hours, lines, past, window

from webmon.model import Gpu, Host, Snapshot
from webmon.usage import Past, Use

# Seconds. A configuration has whole ones; no test wants to wait for them.
SOON = 0.2

PAGES = ("users.html", "history.html")
STATES = ("busy", "held", "free", "unknown", "faulty")
# Names as strangers would choose them.
ODD = (
    "<img src=x onerror=document.title='hacked'>",
    '"><script>document.title="hacked"</script>',
    "x" * 200,
    "many words " * 20,
    "مستخدم-طويل",
    "👩‍🔬🚀🔥",
    "a&amp;b\"'",
)
STICKING_OUT = """[...document.querySelectorAll('main *, header *')].filter(part => {
  const {right, left, width} = part.getBoundingClientRect();
  return part.checkVisibility() && width && !part.closest('.scroll > *, .tiles, svg')
    && (right > innerWidth + 1 || left < -1);
}).map(part => part.outerHTML.slice(0, 80))"""
OPEN = "document.querySelector('details')?.setAttribute('open', '')"


def everything(snapshot, **more):
    """A month with every state, and what each GPU did in the last day."""
    before = past(snapshot.taken_at, lines(snapshot), **more)
    use = Use(busy=1, held=1, free=1, unknown=1, faulty=1, measured=4, worked=2, metered=4, energy=0.5)
    return before._replace(hours=[hour._replace(total=use) for hour in before.hours])


def strangers():
    """Users, hosts and models of odd names, now and in the past; the first one's host is not in the list."""
    now = lab().taken_at
    hosts = tuple(Host(name, None, name, "up", checked_at=now, last_seen=now) for name in ODD[1:])
    gpus = tuple(Gpu(name, 0, None, name, "busy", 50, memory_total_mib=81920) for name in ODD)
    processes = tuple(process(name, 0, None, 7, name, "train.py", 900) for name in ODD)
    used = dict.fromkeys(ODD, ALICE)
    windows = {
        days: window(now, days, users={**used, "": BOB}, hosts=used, models=used) for days in (1, 7, 30)
    }
    known = [hour._replace(free=dict.fromkeys(ODD, 0.5)) for hour in hours(now)]
    snapshot = Snapshot(now, hosts, gpus, processes)
    return snapshot, Past(windows, known, lines(snapshot))


@pytest.fixture
def snapshot():
    """The small lab."""
    return lab()


@pytest.fixture
def publish(make_site):
    """Render a snapshot and its past, as cron would, and return the folder."""

    def publish(snapshot, before, **settings):
        return make_site(snapshot, now=snapshot.taken_at, past=before, price_per_kwh=0.3, **settings)

    return publish


@pytest.fixture
def look(browser, serve, publish, snapshot):
    """Open a page of the small lab; in the end, none has complained, nor asked anybody else."""
    pages = []
    url = ""

    def look(path, refresh=60, **options):
        nonlocal url
        url = serve(publish(snapshot, everything(snapshot, gap=range(30, 50)), refresh=refresh))
        pages.append(browser.open(url + path, **options))
        return pages[-1]

    yield look
    for page in pages:
        assert page.messages == []
        assert all(request.startswith(url) for request in page.requests)


def style(page, selector, name):
    return page.value(f"getComputedStyle(document.querySelector({selector!r})).{name}")


@pytest.mark.parametrize(("width", "dark"), [(360, True), (1300, False)])
def test_names_of_strangers_break_nothing(browser, serve, publish, width, dark):
    """They are text, and only tables scroll sideways, in boxes that keys reach; axe finds nothing."""
    snapshot, before = strangers()
    url = serve(publish(snapshot, before))
    page = browser.open(url + "users.html", width=width, dark=dark)
    for path in PAGES:
        page.go(url + path)
        page.value(OPEN)
        assert page.value("document.documentElement.scrollWidth") <= width, path
        assert page.value(STICKING_OUT) == [], path
        assert page.value("document.querySelectorAll('img, main script').length") == 0
        names = page.value("[...document.querySelectorAll('tbody th')].map(cell => cell.textContent)")
        assert {" ".join(name.split()) for name in ODD} <= {" ".join(name.split()) for name in names}
        assert ("owner hidden" in names) == (path == "users.html")
        assert axe.violations(page) == [], path
    assert "hacked" not in page.value("document.title")
    assert page.messages == []
    assert all(request.startswith(url) for request in page.requests)


def test_links_lead_to_pages_that_are_there(publish):
    """Of a host that is not in the list there is none: its GPU is named without a link."""
    snapshot, before = strangers()
    folder = publish(snapshot, before)
    for path in PAGES:
        page = (folder / path).read_text()
        for address in re.findall(r'(?:href|data-old|src)="([^"]*)"', page):
            assert (folder / address).is_file(), address
        assert " style=" not in page
    assert len(re.findall('<a href="hosts/', (folder / "users.html").read_text())) == len(ODD) - 1


def test_the_pages_lead_to_each_other(look):
    """From everywhere, those of the hosts too; each says where one is."""
    page = look("hosts/gpu07.html")
    assert page.count_visible("[aria-current]") == 0
    for name, heading in (("Users", "Users"), ("History", "History"), ("Overview", "4 of 8 GPUs free")):
        page.value(f"[...document.querySelectorAll('nav a')].find(a => a.text === {name!r}).click()")
        page.until(f"document.querySelector('h1')?.innerText === {heading!r}")
        assert page.texts("[aria-current]") == [name]


def test_users_are_kept_up_to_date(look, publish, snapshot):
    """The numbers change in place."""
    page = look("users.html", refresh=SOON)
    page.value("document.querySelector('#now table').old = true")
    assert page.texts("#now tbody th") == ["alice", "chen", "bob", "dora", "<img src=x>"]
    publish(taken(snapshot, "gpu07", 1), everything(snapshot), refresh=SOON)
    page.until("document.querySelector('#now').innerText.includes('zoe')")
    assert page.value("document.querySelector('#now table').old")
    assert axe.violations(page) == []


def test_a_refresh_is_in_nobody_s_way(look, publish, snapshot):
    """A table that was opened stays open, and the page stays where it is, while its numbers change."""
    page = look("history.html", refresh=SOON, height=500)
    page.click("#days-7 summary")
    page.value("scrollTo(0, 400)")
    before = page.text("#days-7 p")
    new = later(snapshot)
    half = everything(new)
    windows = {days: window(new.taken_at, days, total=FREE) for days in (1, 7, 30)}
    publish(new, half._replace(windows=windows, hours=half.hours[:-5]), refresh=SOON)
    page.until(f"document.querySelector('#days-7 p').innerText !== {before!r}")
    assert "0\u202f% in use" in page.text("#days-7 p")
    assert page.value("[...document.querySelectorAll('details')].map(part => part.open)") == [
        False,
        True,
        False,
        False,
    ]
    assert page.value("scrollY") == 400


def test_without_javascript_nothing_is_missing(look):
    """Charts, tables to be opened, maps, and who uses what."""
    page = look("history.html", script=False)
    page.click("#days-30 summary")
    assert page.count_visible("#days-30 tbody tr") == 60
    assert page.count_visible(".chart > svg") == 4
    assert page.count_visible("button:enabled") == 0
    assert page.text("#fresh").endswith(" UTC")
    page.click("nav a[href='users.html']")
    page.until("!!document.querySelector('#now')")
    assert page.count_visible("section") == 4


def test_states_differ_by_more_than_colour(look):
    """By stripes and lightness, in charts and legend, in both themes, and where colours are forced."""
    page = look("history.html")
    page.media(forced_colors=True)
    fills = {state: style(page, f"#days-7 path.{state}", "fill") for state in STATES}
    assert {state: style(page, f".legend li > svg > .{state}", "fill") for state in STATES} == fills
    assert len(set(fills.values())) == 5
    striped = [state for state, fill in fills.items() if fill.startswith("url(")]
    assert striped == ["held", "unknown", "faulty"]
    # Rows of a pattern's stripes: how much of it they cover.
    stripes = page.value(
        "[...document.querySelectorAll('pattern')].map(pattern => [pattern.id, "
        "pattern.lastElementChild.getBBox().height / pattern.height.baseVal.value])"
    )
    assert stripes == [["held", 0.5], ["unknown", 0.125], ["faulty", 0.5]]
    page.media()
    page.value("localStorage.clear()")
    light = style(page, "#days-7 path.free", "fill")
    page.click("#theme")
    assert style(page, "#days-7 path.free", "fill") != light
    page.click("#theme")
    assert style(page, "#days-7 path.free", "fill") == light


def test_a_gap_is_seen(look):
    """Where there was no poll, the chart has a hole through all its layers."""
    page = look("history.html")
    pieces = page.value(
        "[...document.querySelectorAll('#days-7 .chart path')]"
        ".map(path => path.getAttribute('d').split('M').length - 1)"
    )
    assert pieces == [2] * 6
    page.click("#days-7 summary")
    numbers = page.texts("#days-7 tbody td:nth-child(2)")
    assert numbers.count("\u2013") in (9, 10)


def test_on_paper_there_are_charts(look):
    """In colour; of the tables, those that somebody has opened."""
    page = look("history.html", dark=True)
    page.click("#days-1 summary")
    page.media(dark=True, printed=True)
    assert page.count_visible(".chart > svg") == 4
    assert page.count_visible("details") == 1
    assert style(page, ".chart > svg", "printColorAdjust") == "exact"
    assert style(page, ".map tbody td", "printColorAdjust") == "exact"
    assert style(page, ".scroll", "overflowX") == "visible"


def test_lines_are_where_there_is_room(look, snapshot):
    """In the cells and in the details; a square has none, nor has a row."""
    page = look("index.html")
    assert page.count_visible("li.gpu .spark") == len(snapshot.gpus)
    words = "last 24 h: 42\u202f% utilization, known for 22 h"
    assert page.value("document.querySelector('.spark').ariaLabel") == words
    page.click(link("gpu07", 1))
    page.until("!!document.querySelector('#details .spark')")
    assert page.text("#details .day") == "42\u202f%\nlast 24 h"
    page.press("Escape")
    for view in ("compact", "table"):
        page.click(f"label:has(#view-{view})")
        assert page.count_visible(".spark") == 0
    page.click("label:has(#view-cards)")
    assert page.count_visible("li.gpu .spark") == len(snapshot.gpus)


def test_of_thousands_of_gpus_lines_are_on_the_pages_of_the_hosts(make_site, snapshot):
    """The overview stays as small as it was."""
    first = snapshot.gpus[1]
    many = tuple(first._replace(index=index, uuid=f"GPU-{index}") for index in range(501))
    shown = snapshot._replace(hosts=snapshot.hosts[:1], gpus=many, processes=())
    folder = make_site(shown, past=everything(shown))
    assert "<svg" not in (folder / "index.html").read_text()
    assert (folder / "hosts" / "gpu07.html").read_text().count('class="spark"') == 501


def test_without_a_past_that_is_said(browser, serve, make_site, snapshot):
    """After the first poll there is a now, and no table of zeros; of no GPU at all there is a page, too."""
    url = serve(make_site(snapshot, now=snapshot.taken_at))
    page = browser.open(url + "users.html")
    assert page.texts(".empty") == ["There is no history yet."]
    assert page.count_visible("#now tbody tr") == 5
    page.go(url + "history.html")
    assert page.texts(".empty") == ["There is no history yet."]
    assert page.count_visible(".legend, svg, table") == 0
    make_site(Snapshot(snapshot.taken_at), now=snapshot.taken_at)
    page.go(url + "users.html")
    assert page.texts(".empty") == ["Nobody is on any GPU.", "There is no history yet."]
    assert page.messages == []


def test_one_poll_alone_makes_a_page(publish, snapshot):
    """Of a single hour, with no GPU in it."""
    now = snapshot.taken_at
    nothing = {"users": {}, "hosts": {}, "models": {}, "total": Use(), "polled_hours": 0.1}
    one = hours(now, 1)[0]._replace(total=Use(), free={}, polled_hours=0.1)
    windows = {days: window(now, days, **nothing) for days in (1, 7, 30)}
    folder = publish(Snapshot(now), Past(windows, [one], {}))
    assert "0 GPUs" in (folder / "history.html").read_text()
    assert (folder / "users.html").read_text().count("Nobody used any GPU") == 3
    assert A100 not in (folder / "history.html").read_text()
    assert timedelta(hours=1) > now - one.start
