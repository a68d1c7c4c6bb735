"""What axe-core, forced colours, print and the size of things say of every page."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from servers import axe
from usage_seen import lines, past

from webmon.resources import resource
from webmon.store import snapshot as store

ROOT = Path(__file__).resolve().parents[2]

VIEWS = ["index.html", "index.html?view=compact", "index.html?view=table", "index.html?q=nothing+fits"]
PAGES = [
    *VIEWS,
    "users.html",
    "history.html",
    "hosts/gpu2.lab.html",
    "hosts/mixed_2222.html",
    "hosts/gpu10.lab.html",
]


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing(browser, serve, make_site, fresh, dark, path):
    """In no view of any page, in neither theme."""
    before = past(fresh.taken_at, lines(fresh), gap=range(30, 50))
    folder = make_site(fresh, now=fresh.taken_at, past=before, price_per_kwh=0.3)
    page = browser.open(serve(folder) + path, dark=dark)
    page.value("document.querySelector('details')?.setAttribute('open', '')")
    assert axe.violations(page) == []
    assert page.messages == []


@pytest.mark.parametrize("width", [360, 1200])
def test_axe_finds_nothing_in_the_details(browser, serve, make_site, fresh, width):
    """Neither beside the cell nor at the foot of a phone."""
    page = browser.open(serve(make_site(fresh, now=fresh.taken_at)), width=width)
    page.click("[id='host-gpu2.lab'] li.gpu")
    page.until("!!document.querySelector('#details table')")
    assert axe.violations(page) == []


def test_axe_finds_nothing_in_the_warnings(browser, serve, make_site, snapshot):
    """Old data, and no server."""
    page = browser.open(serve(make_site(snapshot, now=snapshot.taken_at, refresh=1)))
    page.offline(True)
    page.until("!document.getElementById('lost').hidden", seconds=10)
    assert page.count_visible(".warning") == 2
    assert axe.violations(page) == []


def test_a_state_is_told_without_colours(browser, serve, make_site, fresh):
    """By a word and by a shape of its own, which stays where the system sets all colours."""
    page = browser.open(serve(make_site(fresh, now=fresh.taken_at)))
    page.media(forced_colors=True)
    shapes = json.loads(
        page.value(
            "JSON.stringify([...document.querySelectorAll('.legend .state')].map(e => [e.textContent, "
            "getComputedStyle(e, '::before').clipPath, getComputedStyle(e, '::before').backgroundColor]))"
        )
    )
    assert [word for word, _, _ in shapes] == ["free", "idle, held", "busy", "faulty", "unknown"]
    assert len({shape for _, shape, _ in shapes}) == 5
    assert all("none" not in shape for _, shape, _ in shapes)
    assert len({colour for _, _, colour in shapes}) == 5


def test_on_paper_there_are_no_controls(browser, serve, make_site, fresh):
    """And it is dark on white, whatever the theme is."""
    page = browser.open(serve(make_site(fresh, now=fresh.taken_at)), dark=True)
    page.media(dark=True, printed=True)
    assert page.count_visible("#tools, #theme, nav") == 0
    assert page.count_visible("li.gpu") == len(fresh.gpus)
    assert page.value("getComputedStyle(document.body).backgroundColor") == "rgb(246, 247, 249)"


def test_script_and_style_are_small():
    """One file each, together under 40 KB before compression."""
    folder = resource("assets")
    kinds = {kind: list(Path(folder).glob(f"*.{kind}")) for kind in ("css", "js")}
    assert [len(files) for files in kinds.values()] == [1, 1]
    assert sum(file.stat().st_size for files in kinds.values() for file in files) < 40_000


def test_a_thousand_hosts_fit_into_one_page(make_site, tmp_path):
    """8,000 GPUs: at most 4 MB, and 450 KB when compressed (`make bench-page` has the times)."""
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks" / "cluster.py", tmp_path / "data", "--hosts", "1000"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    folder = make_site(store.load(tmp_path / "data"))
    index = (folder / "index.html").read_bytes()
    assert len(index) < 4_000_000
    assert len(gzip.compress(index, 6)) < 450_000
    assert len(list((folder / "hosts").glob("*.html"))) == 1000
