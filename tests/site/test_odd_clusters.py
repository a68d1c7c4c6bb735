"""Names that nobody would choose, and clusters of nothing, of one host, of none that is up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from servers import axe

from webmon.model import Gpu, Host, Process, Snapshot

NOW = datetime.now(UTC).replace(microsecond=0)
USERS = (
    "<img src=x onerror=document.title='hacked'>",
    "x" * 200,
    "مستخدم-طويل",
    "👩‍🔬🚀🔥",
    None,
    "数据科学家",
    "a  b\tc",
    "a&amp;b\"'",
)
STATES = ("free", "busy", "held", "faulty", "unknown")


def gpu(host, index, **changes):
    uuid = f"GPU-{host[:3]}-{index}"
    readings = (97, 5, 78000, 81920, 103, 1000.4, 400.0)
    return Gpu(host, index, uuid, "NVIDIA A100-SXM4-80GB", "busy", *readings)._replace(**changes)


def process(host, index, number=0, **changes):
    uuid = f"GPU-{host[:3]}-{index}"
    known = Process(host, index, uuid, 1000 + number, "alice", "python", "train.py", 5000, NOW)
    return known._replace(**changes)


def host(name, **changes):
    return Host(name, None, None, "up", None, None, NOW, NOW, 20, "550.54.15", 1)._replace(**changes)


def strangers():
    """Users, programs, labels, groups, models and hosts as strangers would name them."""
    tags, long, empty = "gpu<b>1</b>", "h" * 200 + ".lab", "مضيف"
    hosts = (
        host(
            tags, label="<script>document.title='hacked'</script>", group="grp" * 60, load1=999.9, cpus=4096
        ),
        host(
            long,
            label="label " * 40,
            status="degraded",
            reason="lost-gpu",
            error="E" * 300 + " and so on" * 40,
        ),
        host(empty, label="العربية"),
    )
    gpus = [gpu(tags, index, users=(user,) if user else ()) for index, user in enumerate(USERS)]
    gpus += [gpu(long, index, name="NVIDIA " + "Very Long Model " * 12) for index in (0, 1)]
    processes = [
        process(tags, n, user=user, command=(user or "") * 2 or None) for n, user in enumerate(USERS)
    ]
    processes += [process(long, n, user="averylongusername" * 12, command="p" * 300) for n in (0, 1)]
    return Snapshot(NOW, hosts, (*gpus, gpu(empty, 0, state="held")), tuple(processes))


def crowded():
    """17 processes on one GPU, 16 GPUs of two models in one host, every state, one card split by MIG."""
    hosts = (host("many17"), host("sixteen", group="v"))
    gpus = [gpu("many17", 0, users=tuple(f"user{n}" for n in range(17)))]
    for n in range(16):
        name = ("NVIDIA H100 80GB HBM3", "NVIDIA A100-PCIE-40GB")[n % 2]
        gpus.append(
            gpu("sixteen", n, state=STATES[n % 5], name=name, mig_mode="Enabled" if n == 6 else "Disabled")
        )
    processes = [
        process(
            "many17", 0, n, user=f"user{n}", memory_mib=100 + n, container="slurm-1234" if n % 2 else None
        )
        for n in range(17)
    ]
    return Snapshot(NOW, hosts, tuple(gpus), tuple(processes))


def all_down():
    """Six hosts that don't answer, some with GPUs that they had, one never seen."""
    hosts = tuple(
        host(
            f"gpu{n}",
            status="down",
            reason="timeout",
            error="no answer within 20 s. Is the host overloaded?",
            last_seen=NOW - timedelta(hours=n) if n else None,
        )
        for n in range(6)
    )
    unread = {"state": "unknown", "utilization_pct": None, "memory_used_mib": None, "power_w": None}
    return Snapshot(NOW, hosts, tuple(gpu(f"gpu{n}", m, **unread) for n in range(3) for m in range(4)))


CLUSTERS = {
    "strangers": strangers(),
    "crowded": crowded(),
    "all down": all_down(),
    "one host": Snapshot(NOW, (host("gpu1"),), (gpu("gpu1", 0, state="free"),)),
    "no host": Snapshot(NOW),
}
STICKING_OUT = """[...document.querySelectorAll('main *, header *')].filter(e => {
  const box = e.getBoundingClientRect();
  const clipped = e.closest('.hide, .what, .group, .who, h2, .gpu > a, td, #list, .scroll');
  return e.checkVisibility() && box.width && !clipped && (box.right > innerWidth + 1 || box.left < -1);
}).map(e => e.outerHTML.slice(0, 80)).join('\\n')"""
OUT_OF_CELL = """[...document.querySelectorAll('li.gpu > *')].filter(e => e.checkVisibility() &&
  e.getBoundingClientRect().right > e.parentNode.getBoundingClientRect().right + 1).length"""


@pytest.mark.parametrize("name", CLUSTERS)
@pytest.mark.parametrize(("width", "dark"), [(360, True), (1300, False)])
def test_nothing_breaks_or_sticks_out(browser, serve, make_site, name, width, dark):
    """In no view and on no page, narrow or wide; and axe finds nothing."""
    folder = make_site(CLUSTERS[name], now=NOW)
    url = serve(folder)
    paths = ["index.html", "index.html?view=compact", "index.html?view=table"]
    paths += [f"hosts/{path.name}" for path in sorted((folder / "hosts").glob("*.html"))][:3]
    page = browser.open(url, width=width, dark=dark)
    for path in paths:
        page.go(url + path)
        page.until("document.documentElement.classList.contains('js')")
        assert page.value("document.documentElement.scrollWidth") <= width, path
        assert page.value(STICKING_OUT) == "", path
        assert page.value(OUT_OF_CELL) == 0, path
        assert "hacked" not in page.value("document.title")
        if (
            "compact" not in path
        ):  # a square is smaller than axe wants targets to be: cards and table have others
            assert axe.violations(page) == [], path
    assert page.messages == []
    assert all(request.startswith(url) for request in page.requests)


def test_a_stranger_s_name_is_shown_as_it_is(browser, serve, make_site):
    """Tags as text, and in the details too."""
    page = browser.open(serve(make_site(CLUSTERS["strangers"], now=NOW)))
    assert page.text("#host-gpu_b_1__b_ h2") == "gpu<b>1</b>"
    page.click("#host-gpu_b_1__b_ li.gpu")
    page.until("!!document.querySelector('#details table')")
    assert USERS[0] in page.text("#details table")
    assert page.value("document.querySelectorAll('img, main script').length") == 0


def test_a_name_written_from_right_to_left_turns_nothing_else_round(browser, serve, make_site):
    """The program stands right of its user, whatever the user is called."""
    page = browser.open(serve(make_site(CLUSTERS["strangers"], now=NOW)), width=1300)
    left = "document.querySelectorAll('li.gpu')[2].querySelector('%s').getBoundingClientRect().left"
    assert page.value(f"{left % '.who b'} < {left % '.who bdi'}")


def test_seventeen_processes_are_all_there(browser, serve, make_site):
    """On the host's page each has a row; the cell has the owner of the largest first."""
    url = serve(make_site(CLUSTERS["crowded"], now=NOW))
    page = browser.open(url)
    assert page.text("#host-many17 .who").startswith("user16, user0, user1, ")
    page.go(url + "hosts/many17.html")
    assert len(page.texts("#gpu0 tbody tr")) == 17


def test_no_host_and_none_that_is_up_are_said(browser, serve, make_site, tmp_path):
    """In words, with zero free."""
    page = browser.open(serve(make_site(CLUSTERS["no host"], now=NOW)))
    assert page.text("main .empty") == "No host has been asked yet."
    page.go(serve(make_site(CLUSTERS["all down"], now=NOW, folder=tmp_path / "down")))
    assert page.text("h1") == "0 of 12 GPUs free"
    assert page.text(".line") == "0 of 6 hosts up · 6 down"
    assert page.texts(".count") == ["down"] * 6
