"""The pages without JavaScript, in a real Chromium that runs none."""

from __future__ import annotations

from datetime import timedelta

import pytest
from lab import lab, later, link, taken

from webmon.model import Host


@pytest.fixture
def snapshot():
    """The small lab."""
    return lab()


@pytest.fixture
def look(browser, serve, make_site, snapshot):
    """Open a page of a lab: `look("hosts/gpu07.html", shown=snapshot, width=360)`."""
    pages = []

    def look(path="", shown=snapshot, refresh=60, **options):
        url = serve(make_site(shown, now=shown.taken_at, refresh=refresh))
        pages.append(browser.open(url + path, script=False, **options))
        return pages[-1]

    yield look
    for page in pages:
        assert page.messages == []


def test_every_gpu_tells_its_details_in_its_title(look, snapshot):
    """All processes, uuid, clock, power with its limit, fan; the driver stands beside the host's name."""
    page = look()
    titles = page.value("[...document.querySelectorAll('#hosts li.gpu')].map(cell => cell.title)")
    assert len(titles) == len(snapshot.gpus)
    assert all(gpu.uuid in title for gpu, title in zip(snapshot.gpus, titles, strict=True))
    assert titles[0].splitlines() == [
        "GPU 0: NVIDIA A100-SXM4-80GB, busy",
        "alice · train.py · 58.6\u202fGB · pid 101 · for 2 d · in slurm-12",
        "bob · eval.py · 17.6\u202fGB · pid 102 · for 1 h",
        "310 of 400\u202fW · 1410\u202fMHz · fan 45\u202f% · GPU-70",
    ]
    assert [f"worker{n}.py" in titles[4] for n in range(17)] == [True] * 17
    assert "driver 550.54.15" in page.text("#host-gpu07 .facts")


def test_more_gpus_than_titles(look, snapshot):
    """With 500 GPUs each has its title; with one more, its link leads to all of it, on the host's page."""
    host, gpu = snapshot.hosts[1], snapshot.gpus[4]
    counts = {}
    for number in (500, 501):
        shown = snapshot._replace(
            hosts=(host,),
            gpus=tuple(gpu._replace(index=index, uuid=f"GPU-{index}") for index in range(number)),
            processes=tuple(
                process._replace(gpu_index=number - 1, gpu_uuid=f"GPU-{number - 1}")
                for process in snapshot.processes
                if process.user == "dora"
            ),
        )
        page = look(shown=shown)
        counts[number] = page.count_visible("li.gpu"), page.count_visible("li.gpu[title]")
    assert counts == {500: (500, 500), 501: (501, 0)}
    page.click(link("gpu08", 500))
    page.until("location.hash === '#gpu500' && document.readyState === 'complete'")
    assert page.value("document.querySelector('#gpu500').matches(':target')")
    assert "worker16.py" in page.text("#gpu500")


def test_hosts_are_in_the_order_of_people(look, snapshot):
    """gpu2 comes before gpu10."""
    hosts = tuple(Host(name, status="up") for name in ("gpu10", "gpu3b", "gpu2", "GPU1", "a"))
    page = look(shown=snapshot._replace(hosts=hosts, gpus=(), processes=()))
    assert page.texts("#hosts h2") == ["a", "GPU1", "gpu2", "gpu3b", "gpu10"]


@pytest.mark.parametrize("width", [1200, 360])
def test_what_needs_javascript_is_not_there(look, width):
    """No filter, no switch, no button that does nothing; what is left is in one view, and fits."""
    page = look(width=width)
    hidden = ("#tools", "#theme", "#list", "#none", "#lost", "#stale", "#details", ".copy", "select", "input")
    assert {selector: page.count_visible(selector) for selector in hidden} == dict.fromkeys(hidden, 0)
    assert page.count_visible("button:enabled") == 0
    assert page.count_visible("li.gpu") == 8
    assert page.value("document.documentElement.scrollWidth") == width


def test_tiles_tell_and_do_nothing(look):
    """How many of each model are free; no click changes anything."""
    page = look()
    assert [text.split("\n")[0] for text in page.texts(".tile")] == [
        "2/4 A100 80GB",
        "1/3 RTX 3090",
        "1/1 RTX A6000",
    ]
    assert page.count_visible(".tile:disabled") == 3
    page.click(".tile")
    assert page.count_visible("li.gpu") == 8
    assert page.value("location.search") == ""


def test_times_are_in_full(look, snapshot):
    """Nobody works out an age; in Greenwich's time, and said so."""
    seen = snapshot.taken_at - timedelta(hours=3)
    hosts = [host._replace(last_seen=seen) if host.status == "down" else host for host in snapshot.hosts]
    page = look(shown=snapshot._replace(hosts=tuple(hosts)))
    moment = "%Y-%m-%d %H:%M UTC"
    assert page.text("#fresh") == f"updated {snapshot.taken_at.strftime(moment)}"
    before = seen.strftime(moment)
    assert f"Last seen {before}." in page.text("#host-gpu09 .why")
    assert "ago" not in page.value("document.body.innerText")


def test_old_data_is_said(browser, serve, make_site, snapshot):
    """By whoever renders it."""
    folder = make_site(snapshot, now=snapshot.taken_at + timedelta(hours=1))
    page = browser.open(serve(folder), script=False)
    assert snapshot.taken_at.strftime("it was taken %Y-%m-%d %H:%M UTC") in page.text("#stale")


@pytest.mark.parametrize("path", ["", "hosts/gpu07.html"], ids=["overview", "host"])
def test_it_loads_itself_anew(look, make_site, snapshot, path):
    """Every so many seconds, whole."""
    page = look(path, refresh=1)
    new = taken(taken(snapshot, "gpu07", 1), "gpu07", 2)
    make_site(new, now=new.taken_at, refresh=1)
    page.until("document.querySelector('main').innerText.includes('zoe')")
    # Or it would do so while the browser is being closed.
    make_site(later(new), now=new.taken_at, refresh=86400)
    page.until("document.querySelector('noscript').innerHTML.includes('86400')")


def test_the_page_of_a_host_is_complete(look, snapshot):
    """Every GPU with its readings and its processes, and the host's own readings."""
    page = look("hosts/gpu07.html")
    assert page.text("h1") == "gpu07"
    assert page.text(".status") == "up"
    assert page.count_visible(".sheet") == 4
    readings = dict(zip(page.texts("#gpu0 dt"), page.texts("#gpu0 dd"), strict=True))
    expected = {
        "temperature": "71\u202f°C",
        "power": "310 of 400\u202fW",
        "fan": "45\u202f%",
        "SM clock": "1410\u202fMHz",
        "driver": "550.54.15",
        "uuid": "GPU-70",
    }
    assert expected.items() <= readings.items()
    started = (snapshot.taken_at - timedelta(hours=50)).strftime("%Y-%m-%d %H:%M UTC")
    assert page.texts("#gpu0 tbody tr:first-child td") == [
        "alice",
        "train.py (python) in slurm-12",
        "58.6\u202fGB",
        "101",
        started,
    ]
    idle = (snapshot.taken_at - timedelta(minutes=200)).strftime("%Y-%m-%d %H:%M UTC")
    assert page.text("#gpu3 .idle") == f"Idle since {idle}."
    page.click("nav a")
    page.until("document.querySelector('#hosts') !== null")


def test_a_host_that_is_down_says_why(look):
    """And that nothing is known of its GPUs."""
    page = look("hosts/gpu09.html")
    assert page.text(".status") == "down"
    assert "no answer within 20 s" in page.text(".why")
    assert page.text(".empty") == "No GPU has been seen on this host."
    assert page.count_visible("button") == 0
