"""What the buttons copy, pasted elsewhere, in a real Chromium."""

from __future__ import annotations

import pytest
from lab import lab, link

# Browsers trust this machine, but not a plain http address of a lab: there is no navigator.clipboard.
ORIGINS = pytest.mark.parametrize("origin", ["127.0.0.1", "gpu.lab"], ids=["trusted", "plain http"])
SSH = "#details .where .copy"
CUDA = "#details .sheet .copy"


@pytest.fixture
def look(browser, serve, make_site):
    """Open a page of the small lab: `look("hosts/gpu07.html", origin="gpu.lab")`."""
    snapshot = lab()
    url = serve(make_site(snapshot, now=snapshot.taken_at))
    pages = []

    def look(path="", origin="127.0.0.1", **options):
        pages.append(browser.open(url.replace("127.0.0.1", origin) + path, **options))
        return pages[-1]

    yield look
    for page in pages:
        assert page.messages == []


def click(page, selector):
    """Click on a button and wait until it says what has become of it."""
    page.click(selector)
    return page.until(
        f"(text => !text.startsWith('copy ') && text)(document.querySelector({selector!r}).innerText)"
    )


@ORIGINS
@pytest.mark.parametrize(
    ("host", "index", "ssh", "cuda"),
    [
        ("gpu07", 1, "ssh gpu07", "CUDA_VISIBLE_DEVICES=1"),
        ("mixed_2222", 1, "ssh -p 2222 mixed", "CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1"),
    ],
    ids=["usual", "port, several models"],
)
def test_the_details_copy_what_to_type(look, origin, host, index, ssh, cuda):
    """How to get there, and how to say which GPU; the button shows what it copies, and says when it has."""
    page = look(origin=origin)
    assert page.value("isSecureContext") == (origin == "127.0.0.1")
    page.click(link(host, index))
    page.until(f"document.querySelector({CUDA!r}) !== null")
    assert page.texts("#details .copy") == [f"copy {ssh}", f"copy {cuda}"]
    assert click(page, SSH) == f"copied {ssh}"
    assert page.clipboard() == ssh
    assert click(page, CUDA) == f"copied {cuda}"
    assert page.clipboard() == cuda
    assert page.count_visible("#details") == 1


@ORIGINS
def test_with_the_mouse_alone(look, origin):
    """The box that opened under the mouse stays open over its button."""
    page = look(origin=origin)
    page.hover(link("gpu07", 0))
    page.until(f"document.querySelector({SSH!r}) !== null")
    assert click(page, SSH) == "copied ssh gpu07"
    assert page.count_visible("#details") == 1
    assert page.clipboard() == "ssh gpu07"


@ORIGINS
def test_with_the_keyboard(look, origin):
    """The focus stays on the button, the box open, and the page where it was."""
    page = look(origin=origin)
    page.value(f"document.querySelector({link('gpu07', 2)!r}).focus()")
    page.press("Enter")
    page.until(f"document.querySelector({CUDA!r}) !== null")
    while page.focused != 'button.copy "copy CUDA_VISIBLE_DEVICES=2"':
        before = page.focused
        page.press("Tab")
        assert page.focused not in (before, "body")
    scroll = page.value("scrollY")
    page.press("Enter")
    page.until(f"document.querySelector({CUDA!r}).innerText === 'copied CUDA_VISIBLE_DEVICES=2'")
    assert page.focused == 'button.copy "copied CUDA_VISIBLE_DEVICES=2"'
    assert page.value("scrollY") == scroll
    assert page.clipboard() == "CUDA_VISIBLE_DEVICES=2"


@ORIGINS
def test_with_a_finger(look, origin):
    """In the sheet of a phone."""
    page = look(origin=origin, width=360, height=740, touch=True)
    page.tap(link("gpu07", 0))
    page.until(f"document.querySelector({SSH!r}) !== null")
    page.tap(SSH)
    page.until(f"document.querySelector({SSH!r}).innerText === 'copied ssh gpu07'")
    assert page.count_visible("#details") == 1


@ORIGINS
def test_the_page_of_a_host_copies_too(look, origin):
    """The way to the host once, and each of its GPUs."""
    page = look("hosts/gpu07.html", origin)
    assert page.texts(".copy") == ["copy ssh gpu07", *(f"copy CUDA_VISIBLE_DEVICES={n}" for n in range(4))]
    assert click(page, "#ssh") == "copied ssh gpu07"
    assert click(page, "#gpu3 .copy") == "copied CUDA_VISIBLE_DEVICES=3"
    assert page.clipboard() == "CUDA_VISIBLE_DEVICES=3"


def test_it_can_be_copied_again(look):
    """After two seconds the button says again what it does."""
    hurry = "const wait = setTimeout; setTimeout = (action, delay) => wait(action, delay / 10)"
    page = look("hosts/gpu07.html", before=hurry)
    assert click(page, "#ssh") == "copied ssh gpu07"
    page.until("document.querySelector('#ssh').innerText === 'copy ssh gpu07'")
    assert click(page, "#ssh") == "copied ssh gpu07"


def test_a_browser_that_does_not_let_it(look):
    """Where neither way works, the button says so; the text can be selected by hand."""
    page = look(
        "hosts/gpu07.html",
        before="Clipboard.prototype.writeText = () => Promise.reject(new Error('not allowed'));"
        "document.execCommand = () => false",
    )
    assert click(page, "#ssh") == "can't copy ssh gpu07"
    assert page.count_visible("textarea") == 0


def test_where_only_the_old_way_works(look):
    """The clipboard is there, but refuses: it is copied all the same."""
    page = look(
        "hosts/gpu07.html",
        before="Clipboard.prototype.writeText = () => Promise.reject(new Error('not allowed'))",
    )
    assert click(page, "#ssh") == "copied ssh gpu07"
    assert page.clipboard() == "ssh gpu07"


def test_this_machine_itself_needs_no_ssh(browser, serve, make_site):
    """`self` has a button for its GPUs only."""
    snapshot = lab()
    renamed = type(snapshot)(
        snapshot.taken_at,
        (type(snapshot.hosts[0])("self", status="up"),),
        (type(snapshot.gpus[0])("self", 0, "GPU-1", "NVIDIA L4", "free"),),
    )
    page = browser.open(serve(make_site(renamed, now=renamed.taken_at)))
    page.click(link("self", 0))
    page.until(f"document.querySelector({CUDA!r}) !== null")
    assert page.texts("#details .copy") == ["copy CUDA_VISIBLE_DEVICES=0"]
    assert page.messages == []
