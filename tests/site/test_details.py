"""The details of a GPU: on hover, on keyboard focus, on a click and on a tap, in a real Chromium."""

from __future__ import annotations

import pytest
from lab import lab, link

BOX = "#details"
IS_OPEN = "document.querySelector('#details').checkVisibility()"
PINNED = "document.querySelector('#details').contains(document.activeElement)"
# How far it sticks out of the window, and where.
OUTSIDE = """(() => {
  const {left, top, right, bottom} = document.querySelector('#details').getBoundingClientRect();
  const out = {left: -left, top: -top, right: right - innerWidth, bottom: bottom - innerHeight};
  return Object.entries(out).filter(([, far]) => far > 0.5).map(([edge, far]) => `${edge}: ${far}`);
})()"""


@pytest.fixture
def url(serve, make_site):
    """Serve the small lab."""
    snapshot = lab()
    return serve(make_site(snapshot, now=snapshot.taken_at))


@pytest.fixture
def quiet():
    """Check of pages in the end that nothing was written to the console: `quiet(page)`."""
    pages = []
    yield pages.append
    for page in pages:
        assert page.messages == []


@pytest.fixture
def look(browser, url, quiet):
    """Open the overview: `look("?view=table", width=360)`."""

    def look(query="", **options):
        page = browser.open(url + query, **options)
        quiet(page)
        return page

    return look


def until_about(page, *texts, part="#details .sheet"):
    """Wait until the box is open, has been loaded and says all of this."""
    for text in texts:
        page.until(f"document.querySelector({part!r}).innerText.includes({text!r})")
    assert page.value(IS_OPEN)


def until_closed(page):
    page.until(f"!{IS_OPEN}")


def places(view):
    """Return what returns the selector of a GPU's place in a view."""
    if view == "table":
        return lambda host, index: f"tr:has(> * > {link(host, index, '')}) .state"
    return lambda host, index: f"#hosts li:has(> {link(host, index, '')})"


def stays(page, expression, milliseconds=400):
    """Tell whether something holds now and for a moment longer than any delay of the page's."""
    wait = f"new Promise(done => setTimeout(() => done({expression}), {milliseconds}))"
    return page.value(expression) and page.value(wait)


def test_the_mouse_opens_it_after_a_moment(look):
    """Whoever only passes over the cells sees nothing open; who stays does, and need not click."""
    page = look(
        before="""
        let over, opened;
        document.addEventListener('pointerover', ({target}) => {
          if (target.closest('li.gpu')) over ??= performance.now();
        }, true);
        addEventListener('load', () => new MutationObserver(() => {
          if (!document.querySelector('#details').hidden) opened ??= performance.now();
        }).observe(document.querySelector('#details'), {attributes: true}));"""
    )
    page.hover(link("gpu07", 0))
    until_about(page, "GPU-70")
    assert page.value("opened - over") >= 100
    assert page.focused == "body"


def test_all_that_is_known_of_a_gpu(look):
    """Every process with user, program, memory, pid and since; uuid, clocks, power limit, fan, driver."""
    page = look()
    page.hover(link("gpu07", 0))
    until_about(page, "GPU-70")
    assert page.text(f"{BOX} .where a") == "gpu07"
    assert page.text(f"{BOX} h2") == "GPU 0 NVIDIA A100-SXM4-80GB"
    assert page.text(f"{BOX} .state") == "busy"
    assert page.texts(f"{BOX} th") == ["user", "program", "memory", "pid", "since"]
    rows = [page.texts(f"{BOX} tbody tr:nth-child({row}) td") for row in (1, 2)]
    assert rows == [
        ["alice", "train.py (python) in slurm-12", "58.6\u202fGB", "101", "2 d ago"],
        ["bob", "eval.py (python)", "17.6\u202fGB", "102", "1 h ago"],
    ]
    names, values = page.texts(f"{BOX} dt"), page.texts(f"{BOX} dd")
    readings = dict(zip(names, values, strict=True))
    expected = {
        "temperature": "71\u202f°C",
        "power": "310 of 400\u202fW",
        "fan": "45\u202f%",
        "SM clock": "1410\u202fMHz",
        "driver": "550.54.15",
        "uuid": "GPU-70",
    }
    assert expected.items() <= readings.items()


def test_a_gpu_that_nobody_uses(look):
    """Nobody is on it; one that is held tells since when it is idle."""
    page = look()
    page.hover(link("gpu07", 1))
    until_about(page, "GPU-71", "No processes.")
    assert page.count_visible(f"{BOX} tbody") == 0
    page.hover(link("gpu07", 3))
    until_about(page, "GPU-73", "chen", "Idle since 3 h ago.")


def test_names_of_strangers_stay_text_in_the_details(look):
    """The scripts and the pictures in the names of users and programs are shown, not run."""
    page = look()
    page.click(link("mixed_2222", 1))
    until_about(page, "<img src=x>", "<script>document.title='hacked'</script>")
    assert page.value("document.querySelectorAll('img, #details script').length") == 0
    assert "hacked" not in page.value("document.title")


def test_the_mouse_may_move_into_the_box_and_closes_it_by_leaving(look):
    """Over the gap between the two, to its buttons, and away (WCAG 1.4.13: hoverable, persistent)."""
    page = look()
    page.hover(link("gpu07", 0))
    until_about(page, "GPU-70")
    x, bottom, top = page.value(
        "(() => { const box = document.querySelector('#details').getBoundingClientRect(),"
        f" cell = document.querySelector({link('gpu07', 0)!r}).closest('li').getBoundingClientRect();"
        " return [cell.x + 40, cell.bottom, box.top] })()"
    )
    assert bottom < top
    for y in (bottom - 2, (bottom + top) / 2, top + 2):
        page._mouse("mouseMoved", x=x, y=y)
    assert stays(page, IS_OPEN)
    page.hover(f"{BOX} .sheet .copy")
    assert stays(page, IS_OPEN)
    page.hover("h1")
    until_closed(page)


def test_it_closes_when_the_mouse_leaves_the_window(look):
    """Nothing stays open that nobody is at."""
    page = look()
    page.hover(link("gpu07", 0))
    until_about(page, "GPU-70")
    page.move_away()
    until_closed(page)


def test_from_cell_to_cell(look):
    """The box goes along with the mouse."""
    page = look()
    for index in range(4):
        page.hover(link("gpu07", index))
        until_about(page, f"GPU-7{index}")
    assert page.count_visible(BOX) == 1


def test_escape_closes_it_without_moving_the_mouse(look):
    """WCAG 1.4.13: dismissible; nothing opens again by itself."""
    page = look()
    page.hover(link("gpu07", 0))
    until_about(page, "GPU-70")
    page.press("Escape")
    assert stays(page, f"!{IS_OPEN}")


def test_the_focus_opens_it_and_moves_it_along(look):
    """Tab to a GPU, to the next one, and to something else."""
    page = look()
    page.value("document.querySelector('#host-gpu07 h2 a').focus()")
    for index in range(4):
        page.press("Tab")
        until_about(page, f"GPU-7{index}")
        assert not page.value(PINNED)
    page.press("Tab")
    assert page.focused == 'a "gpu08"'
    until_closed(page)
    page.press("Shift+Tab")
    until_about(page, "GPU-73")
    page.press("Escape")
    assert stays(page, f"!{IS_OPEN}")
    assert page.value("document.activeElement.matches('li.gpu > a')")


def test_enter_puts_the_focus_into_it_and_escape_gives_it_back(look):
    """Tab reaches its link and its buttons; Escape closes it for good, and Tab goes on from the GPU."""
    page = look()
    page.value("document.querySelector('#host-gpu07 h2 a').focus()")
    page.press("Tab")
    page.press("Enter")
    until_about(page, "GPU-70")
    assert page.value(PINNED)
    assert page.focused == "div#details"
    seen = []
    for _ in range(4):
        page.press("Tab")
        seen.append(page.focused)
    assert len(set(seen)) == 4
    assert {'button.copy "copy ssh gpu07"', 'button.copy "copy CUDA_VISIBLE_DEVICES=0"'} < set(seen)
    page.press("Escape")
    assert stays(page, f"!{IS_OPEN}")
    assert page.value(f"document.activeElement === document.querySelector({link('gpu07', 0)!r})")
    page.press("Tab")
    until_about(page, "GPU-71")


def test_the_button_that_closes_it(look):
    """With the keyboard, and the focus is back at the GPU; with the mouse."""
    page = look()
    page.value(f"document.querySelector({link('gpu07', 2)!r}).focus()")
    page.press("Enter")
    until_about(page, "GPU-72")
    page.value("document.querySelector('#details .close').focus()")
    page.press("Enter")
    assert stays(page, f"!{IS_OPEN}")
    assert page.value(f"document.activeElement === document.querySelector({link('gpu07', 2)!r})")
    page.click(link("gpu07", 0))
    until_about(page, "GPU-70")
    page.click(f"{BOX} .close")
    assert stays(page, f"!{IS_OPEN}")


def test_a_click_keeps_it_open_until_the_next_one(look):
    """The mouse may leave; a second click closes it, and so does one elsewhere; on another GPU it moves."""
    page = look()
    page.click(link("gpu07", 0))
    until_about(page, "GPU-70")
    page.hover(link("gpu07", 3))
    page.hover("h1")
    assert stays(page, f"{IS_OPEN} && {PINNED}")
    assert "GPU-70" in page.text(BOX)
    page.click(link("gpu07", 0))
    until_closed(page)
    page.click(link("gpu07", 0))
    page.click(link("gpu07", 3))
    until_about(page, "GPU-73")
    page.click(f"{BOX} dt")
    assert stays(page, IS_OPEN)
    page.click(".line")
    until_closed(page)
    assert page.value("location.pathname") == "/"


def test_it_does_not_flicker_under_the_mouse(look):
    """A box that the mouse has opened stays there while it is clicked upon."""
    page = look()
    page.hover(link("gpu07", 0))
    until_about(page, "GPU-70")
    page.value(
        "void new MutationObserver(() => { globalThis.closed ||= document.querySelector('#details').hidden })"
        ".observe(document.querySelector('#details'), {attributes: true})"
    )
    page.click(link("gpu07", 0))
    page.until(PINNED)
    # Whatever was pressed and hidden within one task isn't seen by the observer.
    assert not page.value("globalThis.closed")


@pytest.mark.parametrize("view", ["cards", "compact", "table"])
def test_in_every_view_with_the_mouse(look, view):
    """Cards, the compact grid and the table have the same details."""
    page = look(f"?view={view}")
    place = places(view)
    page.hover(place("gpu07", 0))
    until_about(page, "GPU-70", "train.py")
    page.press("Escape")
    until_closed(page)
    page.click(place("gpu07", 1))
    until_about(page, "GPU-71")
    assert page.value(PINNED)
    assert page.value(OUTSIDE) == []


@pytest.mark.parametrize("view", ["cards", "compact", "table"])
def test_a_tap_on_a_phone_opens_a_sheet(look, view):
    """It lies in the window, closes by its button, by a second tap and by one elsewhere."""
    page = look(f"?view={view}", width=360, height=740, touch=True)
    place = places(view)
    page.tap(place("gpu07", 0))
    until_about(page, "GPU-70", "alice")
    assert page.value(OUTSIDE) == []
    assert page.value("document.documentElement.scrollWidth") == 360
    page.tap(f"{BOX} .close")
    until_closed(page)
    page.tap(place("gpu07", 1))
    until_about(page, "GPU-71")
    page.value("scrollTo(0, 0)")
    page.tap(".line")
    until_closed(page)


def test_a_second_tap_closes(look):
    """As with the mouse."""
    page = look(width=360, height=1300, touch=True)
    page.tap(link("gpu07", 1))
    until_about(page, "GPU-71")
    page.tap(link("gpu07", 1))
    assert stays(page, f"!{IS_OPEN}")


@pytest.fixture
def many(serve, make_site):
    """Serve a lab of 48 GPUs, each with 17 processes."""
    one = lab()
    host, gpu = one.hosts[1], one.gpus[4]
    processes = [process for process in one.processes if process.user == "dora"]
    hosts = [f"gpu{number}" for number in range(10, 16)]
    snapshot = one._replace(
        hosts=tuple(host._replace(host=name) for name in hosts),
        gpus=tuple(
            gpu._replace(host=name, index=index, uuid=f"{name}-{index}")
            for name in hosts
            for index in range(8)
        ),
        processes=tuple(
            process._replace(host=name, gpu_index=index, gpu_uuid=f"{name}-{index}")
            for name in hosts
            for index in range(8)
            for process in processes
        ),
    )
    return serve(make_site(snapshot, now=snapshot.taken_at))


@pytest.mark.parametrize(
    ("width", "height"),
    [(1500, 900), (1000, 560), (640, 420), (360, 740), (320, 256)],
    ids=["desk", "laptop", "small", "phone", "zoomed to 400 %"],
)
def test_it_never_sticks_out_of_the_window(browser, quiet, many, width, height):
    """The first cell and the last, those at the edges of the window and in the middle."""
    page = browser.open(many, width=width, height=height)
    quiet(page)
    wrong = {}
    for host, index in (("gpu10", 0), ("gpu10", 7), ("gpu12", 3), ("gpu13", 4), ("gpu15", 0), ("gpu15", 7)):
        for block in ("start", "center", "end"):
            selector = link(host, index)
            page.value(f"document.querySelector({selector!r}).scrollIntoView({{block: {block!r}}})")
            # What a mouse would do; it could not get to a cell that the sheet of the last one lies over.
            page.value(f"document.querySelector({selector!r}).click()")
            until_about(page, f"{host}-{index}", "worker16.py")
            if outside := page.value(OUTSIDE):
                wrong[host, index, block] = outside
            page.press("Escape")
            until_closed(page)
    assert wrong == {}


def test_it_does_not_cover_its_gpu(browser, quiet, many):
    """Where the window has the room, it opens below or above."""
    page = browser.open(many, width=1500, height=900)
    quiet(page)
    for host, index in (("gpu10", 0), ("gpu10", 7), ("gpu15", 0), ("gpu15", 7)):
        page.hover(link(host, index))
        until_about(page, f"{host}-{index}", "worker16.py")
        assert page.value(
            "(() => { const box = document.querySelector('#details').getBoundingClientRect(),"
            f" cell = document.querySelector({link(host, index)!r}).closest('li').getBoundingClientRect();"
            " return box.top >= cell.bottom || box.bottom <= cell.top })()"
        )


def test_a_window_that_becomes_smaller(look):
    """The box that is open moves back into it."""
    page = look(width=1500)
    page.click(link("gpu07", 3))
    until_about(page, "GPU-73")
    page.resize(800, 600)
    page.until(f"{OUTSIDE}.length === 0")


def test_many_processes_scroll_within_the_box(look):
    """With the wheel and with the keyboard; the page stays where it is."""
    page = look(width=900, height=500)
    page.click(link("gpu08", 0))
    until_about(page, "GPU-80", "worker16.py")
    scroll = page.value("scrollY")
    assert len(page.texts(f"{BOX} tbody tr")) == 17
    assert page.value(OUTSIDE) == []
    box = "document.querySelector('#details')"
    assert page.value(f"{box}.scrollHeight > {box}.clientHeight")
    page.press("End")
    page.until(f"{box}.scrollTop + {box}.clientHeight >= {box}.scrollHeight - 1")
    page.hover(f"{BOX} .sheet > .copy")
    assert page.value("scrollY") == scroll


@pytest.mark.parametrize("view", ["cards", "compact"])
def test_a_click_for_a_new_tab_is_left_to_the_browser(look, view):
    """Control and Shift with a click mean something else; the whole cell is a link to the host's page."""
    page = look(f"?view={view}")
    point = page._point(places(view)("gpu07", 0))
    page.value(
        "globalThis.left = []; addEventListener('click', event => {"
        " left.push(event.target.closest('a[href]') !== null && !event.defaultPrevented);"
        " event.preventDefault() })"
    )
    for modifiers in (2, 8, 0):  # Control, Shift, none
        for kind in ("mousePressed", "mouseReleased"):
            page._mouse(kind, **point, button="left", clickCount=1, modifiers=modifiers)
    assert page.value("left") == [True, True, False]
    assert page.value(PINNED)


def test_a_host_is_asked_for_once_and_only_when_wanted(look):
    """Nothing is loaded ahead; the GPUs of one host share one answer."""
    page = look()

    def asked():
        return [request.rpartition("/")[2] for request in page.requests if "/hosts/" in request]

    assert asked() == []
    for index in (0, 1, 0, 3):
        page.hover(link("gpu07", index))
        until_about(page, f"GPU-7{index}")
    assert asked() == ["gpu07.html"]
    page.click(link("gpu08", 0))
    until_about(page, "GPU-80")
    assert asked() == ["gpu07.html", "gpu08.html"]


def test_what_cannot_be_loaded_is_said(browser, serve, make_site):
    """Then it shows what the overview knows, and the next time it asks again."""
    snapshot = lab()
    folder = make_site(snapshot, now=snapshot.taken_at)
    page = browser.open(serve(folder))
    (folder / "hosts" / "gpu07.html").unlink()
    page.click(link("gpu07", 0))
    until_about(page, "can't be loaded", "404", part=BOX)
    for text in ("alice · train.py · 58.6\u202fGB · pid 101", "bob · eval.py", "GPU-70", "fan 45"):
        assert text in page.text(BOX)
    page.press("Escape")
    make_site(snapshot, now=snapshot.taken_at)
    page.click(link("gpu07", 0))
    until_about(page, "550.54.15")
    assert "can't be loaded" not in page.text(BOX)
    assert all("404" in message for message in page.messages)


def test_without_a_network_the_overview_still_knows(look):
    """No raw error of the browser's."""
    page = look()
    page.offline(True)
    page.click(link("gpu07", 0))
    until_about(page, "The rest can't be loaded: the server can't be reached.", "alice · train.py", part=BOX)
    page.offline(False)
    page.press("Escape")
    page.click(link("gpu07", 0))
    until_about(page, "550.54.15")
    assert set(page.messages) == {"Failed to load resource: net::ERR_INTERNET_DISCONNECTED"}
    page.forget()


def test_no_hover_text_lies_over_the_details(look):
    """The title is for those without JavaScript."""
    page = look()
    assert page.value("document.querySelectorAll('#hosts [title]:not(time)').length") == 0


def test_a_filter_that_hides_the_gpu_closes_its_details(look):
    """The box is never about something that isn't shown."""
    page = look()
    page.value("document.querySelector('#q').focus()")
    page.hover(link("gpu07", 0))
    until_about(page, "GPU-70")
    page.type("gpu0")
    assert page.value(IS_OPEN)
    page.type("8")
    until_closed(page)


def test_it_tells_assistive_technology_what_it_is(look):
    """A dialog with a name of its own."""
    page = look()
    page.click(link("gpu07", 0))
    until_about(page, "GPU-70")
    seen = page.value("['role', 'aria-label'].map(name => document.activeElement.getAttribute(name))")
    assert seen == ["dialog", "gpu07, GPU 0"]
