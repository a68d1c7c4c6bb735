"""Snapshots of pretended labs for the tests of the overview, and what a page shows of them."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from webmon.config.settings import SiteSettings
from webmon.model import Gpu, Host, Process, Snapshot
from webmon.publish.render import render
from webmon.publish.serve import Server

# The pages tell how old they are: a fixed time would soon be old.
NOW = datetime.now(UTC).replace(microsecond=0)

A100 = ("NVIDIA A100-SXM4-80GB", 81920)
H100 = ("NVIDIA H100 80GB HBM3", 81559)
A6000 = ("NVIDIA RTX A6000", 49140)
RTX3090 = ("NVIDIA GeForce RTX 3090", 24576)
NAMELESS = (None, None)
MODELS = (
    *(A100, H100, A6000, RTX3090),
    *(("NVIDIA H200", 143771), ("NVIDIA L40S", 46068), ("Tesla V100-SXM2-32GB", 32768)),
    *(("NVIDIA GeForce GTX 1080 Ti", 11264), ("NVIDIA A100-SXM4-40GB", 40960)),
)


def host(name, status="up", **known):
    """Return a host that was asked just now."""
    seen = None if status == "down" else NOW
    return Host(name, status=status, checked_at=NOW, last_seen=seen)._replace(**known)


def gpu(where, index, card=A100, state="free", **readings):
    """Return a card; an idle one, if nothing else is said."""
    idle = {"utilization_pct": 0, "memory_used_mib": 4, "temperature_c": 30, "power_w": 50.0}
    known = idle if state == "free" else {}
    name, memory = card
    return Gpu(where, index, f"GPU-{where}-{index}", name, state, memory_total_mib=memory, **known | readings)


def process(on, user, command="train.py", **known):
    """Return a process on a card; nobody knows since when."""
    return Process(on.host, on.index, on.uuid, 4711, user, "python", command, 1024)._replace(**known)


def lab():
    """Six hosts with all states, and most of what can be looked for.

    vision    gpu2    A100: free; alice, bob second; held by carol       Rack-B
              gpu10   RTX 3090: dave; free; bob; held by carol
    robotics  gpu11   RTX 3090: unknown, as the host is down
              split   H100 with MIG: erin; Frank
              wild    A100: free, free; A6000: alice; a card that is lost
              zero    down, and never seen
    """
    hosts = (
        host("gpu10", group="vision"),
        host("zero", "down", reason="dns", error="the name zero could not be resolved"),
        host("gpu2", group="vision", label="Rack-B"),
        host("split"),
        host("wild", "degraded", reason="lost-gpu", error="1 of 4 GPUs lost or in error"),
        host("gpu11", "down", group="robotics", reason="timeout", error="no answer", last_seen=NOW),
    )
    shared = gpu("gpu2", 1, state="busy", utilization_pct=97, users=("alice", "bob"))
    carols = gpu("gpu2", 2, state="held", utilization_pct=1, users=("carol",))
    daves = gpu("gpu10", 0, RTX3090, "busy", utilization_pct=80, users=("dave",))
    bobs = gpu("gpu10", 2, RTX3090, "busy", utilization_pct=100, users=("bob",))
    idle = gpu("gpu10", 3, RTX3090, "held", utilization_pct=0, users=("carol",))
    erins = gpu("split", 0, H100, "busy", mig_mode="Enabled", users=("erin",))
    franks = gpu("split", 1, H100, "busy", mig_mode="Enabled", users=("Frank",))
    alices = gpu("wild", 2, A6000, "busy", utilization_pct=9, users=("alice",))
    gpus = (
        *(gpu("gpu2", 0), shared, carols),
        *(daves, gpu("gpu10", 1, RTX3090), bobs, idle),
        *(gpu("gpu11", index, RTX3090, "unknown") for index in range(2)),
        *(erins, franks),
        *(gpu("wild", 0), gpu("wild", 1), alices, gpu("wild", 3, NAMELESS, "faulty")),
    )
    processes = (
        process(shared, "alice", memory_mib=60000),
        process(shared, "bob", "eval.py", memory_mib=9000),
        process(carols, "carol", "jupyter"),
        process(daves, "dave"),
        process(bobs, "bob", "ollama"),
        process(idle, "carol", "jupyter"),
        process(erins, "erin"),
        process(franks, "Frank", "gmx_mpi"),
        process(alices, "alice", "eval.py"),
    )
    return Snapshot(NOW, hosts, gpus, processes)


def uneven():
    """Return cards that differ in every column of the table; of some there is not much to know.

    gpu2 has lost its card 1, gpu9 is down, and nobody may know what Carol runs.
    """
    hosts = (host("gpu10"), host("gpu2"), host("gpu1"), host("gpu9", "down", gpus=1))
    gpus = (
        _card("gpu1", 0, "RTX A6000", 49140, "busy", 10, 9, 100, 310.0),
        _card("gpu1", 1, "GeForce RTX 3090", 24576, "free", 9, 0.5, 35, 9.0),
        _card("gpu2", 0, "GeForce GTX 1080", 8192, "busy", 100, 10, 62, 60.0),
        _card("gpu2", 2, "GeForce RTX 3090", 24576, "held", 0, 11.5, None, None),
        _card("gpu9", 0, None, None, "unknown"),
        _card("gpu10", 0, "A100-SXM4-80GB", 81920, "busy", None, 78, 9, 1000.0),
        _card("gpu10", 1, "A100-SXM4-40GB", 40960, "faulty"),
    )
    processes = (
        process(gpus[0], "bob", "train10.py", started_at=NOW - timedelta(hours=3)),
        process(gpus[2], "Alice", "train9.py", started_at=NOW - timedelta(minutes=12)),
        process(gpus[3], "carol", None, name=None, started_at=NOW - timedelta(days=2)),
        process(gpus[5], "user10", "Ollama", started_at=NOW - timedelta(seconds=30)),
    )
    return Snapshot(NOW, hosts, gpus, processes)


def _card(where, index, model, memory, state, *readings):
    use, used, temperature, power = readings or (None,) * 4
    return Gpu(
        where,
        index,
        f"GPU-{where}-{index}",
        model,
        state,
        utilization_pct=use,
        memory_used_mib=None if used is None else int(used * 1024),
        memory_total_mib=memory,
        temperature_c=temperature,
        power_w=power,
    )


def large(hosts, gpus, name="gpu{:03}.lab", models=4):
    """Return so many hosts with so many cards each, in all states."""
    states = ("free", "busy", "busy", "held", "busy", "faulty", "free", "unknown")
    names = [name.format(number) for number in range(1, hosts + 1)]
    return Snapshot(
        NOW,
        tuple(host(where, group="vision") for where in names),
        tuple(
            gpu(where, index, MODELS[place % models], states[(place + index) % 8])
            for place, where in enumerate(names)
            for index in range(gpus)
        ),
    )


def called(*names):
    """Return hosts of these names, with one card each."""
    return Snapshot(NOW, tuple(map(host, names)), tuple(gpu(name, 0) for name in names))


def wordy():
    """Return a lab whose people like long names, for whatever it is."""
    where = "a-host-with-a-name-that-is-rather-long.cluster.institute.university.example"
    hosts = (
        host(where, group="a group " * 8, label="label" * 20),
        host("down" * 16, "down", error="why" * 80),
    )
    card = gpu(where, 0, ("NVIDIA Quadro " + "Extraordinary " * 4, 49140), "busy", users=("u" * 32, "v" * 32))
    processes = (
        process(card, "u" * 32, "program_" * 10, started_at=NOW - timedelta(days=400)),
        process(card, "v" * 32),
    )
    return Snapshot(NOW, hosts, (card, gpu(where, 1)), processes)


@contextmanager
def served(snapshot, folder):
    """Render a snapshot into a folder, and serve it: `with served(lab(), tmp_path) as url`."""
    # A page that refreshes itself has tests of its own.
    site = SiteSettings(dir=folder, title="GPU monitor", refresh=3600, templates=None)
    render(snapshot, site, folder, now=NOW, period=None)
    server = Server(folder, "127.0.0.1", 0)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server.url
    server.shutdown()
    server.server_close()


@contextmanager
def looking(browser, url):
    """Open pages: `with looking(browser, url) as look: page = look("?q=bob", width=360)`.

    In the end, none of them has complained or asked anybody else.
    """
    pages = []

    def look(query="", **options):
        pages.append(browser.open(url + query, **options))
        return pages[-1]

    yield look
    for page in pages:
        assert page.messages == []
        assert [request for request in page.requests if not request.startswith(url)] == []


def shown(page):
    """Return the cards that are seen, in their order: `["gpu2 0", "gpu2 1"]`."""
    return page.value(
        "[...document.querySelectorAll('#hosts li.gpu')].filter(cell => cell.checkVisibility())"
        ".map(cell => [cell.closest('.host').querySelector('h2'), cell.querySelector('b')])"
        ".map(parts => parts.map(part => part.textContent).join(' '))"
    )


def rows(page):
    """Return the same of the rows of the table."""
    return page.value(
        "[...document.querySelectorAll('#table tbody tr')].filter(row => row.checkVisibility())"
        ".map(row => `${row.cells[0].innerText} ${row.cells[1].innerText}`)"
    )


def shown_hosts(page):
    """Return the hosts that are seen, in their order."""
    return page.texts("#hosts h2")


def search(page, text):
    """Put a text into the filter, in place of what is there, all at once."""
    page.value("document.querySelector('#q').focus()")
    page.press("Control+a")
    page.press("Backspace")
    page.call("Input.insertText", text=text)


def choose(page, selector, text):
    """Choose from a list, with the keyboard."""
    choices = page.value(f"[...document.querySelector('{selector}').options].map(choice => choice.text)")
    page.value(f"document.querySelector('{selector}').focus()")
    page.press("Home")
    for _ in range(choices.index(text)):
        page.press("ArrowDown")


def switch(page, view):
    """Click on the name of a view."""
    page.click(f"#view-{view} + span")


def query(page):
    """Return the part of the address that says the view."""
    return page.value("location.search")
