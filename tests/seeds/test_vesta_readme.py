"""The curl examples of vesta's README, one by one: its hosts, real curl, real nginx, and `webmon serve`."""

from __future__ import annotations

import json
import re
import subprocess
import threading
from datetime import UTC, datetime, timedelta

import pytest
from servers.command import webmon
from servers.nginx import Nginx, with_past
from servers.programs import need
from servers.settings import write_config

from webmon.availability import Rules
from webmon.config.settings import SiteSettings
from webmon.model import Gpu, Host, Process, Snapshot
from webmon.publish.render import render
from webmon.publish.serve import Server
from webmon.store import history
from webmon.store import snapshot as store

TAKEN = datetime(2019, 3, 24, 20, 0, tzinfo=UTC)
HOSTS = ("mau_local", "mau_local_11a7c5eb", "mau_local_ac993634")
NAME = "GeForce GTX 1080 Ti"

# Lines of the README's table; a dot is where ours has a mark if the card is free.
TABLE = """\
+------------------+------------------------+-----------------+--------+-------+
| host             | gpu                    | memory usage    | volat. | temp. |
+------------------+------------------------+-----------------+--------+-------+
|mau_local         |.0:GeForce GTX 1080 Ti  |   8018 /  11169 |     0 %|  80 °C|
|                  |.1:GeForce GTX 1080 Ti  |      2 /  11172 |     0 %|  38 °C|
+------------------+------------------------+-----------------+--------+-------+
|mau_local_11a7c5eb|.0:GeForce GTX 1080 Ti  |   8018 /  11169 |    92 %|  80 °C|
|                  |.1:GeForce GTX 1080 Ti  |      2 /  11172 |     0 %|  38 °C|
+------------------+------------------------+-----------------+--------+-------+
|mau_local_ac993634|.0:GeForce GTX 1080 Ti  |   8018 /  11169 |    92 %|  80 °C|
|                  |.1:GeForce GTX 1080 Ti  |      2 /  11172 |     0 %|  38 °C|
|                  |.1:GeForce GTX 1080 Ti  |      2 /  11172 |     0 %|  38 °C|
|                  |.1:GeForce GTX 1080 Ti  |      2 /  11172 |     0 %|  38 °C|
+------------------+------------------------+-----------------+--------+-------+
"""

# The keys as the README spells them; its values are partly texts, ours are all numbers.
GPU_KEYS = {
    "available_memory", "device_num", "gpu_name", "gpu_volatile", "processes", "temperature", "timestamp",
    "total_memory", "used_memory", "uuid",
}  # fmt: skip


def _poll(time, utilization=92):
    """Return the README's hosts; the first one's first card is idle in its first example."""
    gpus, processes = [], []
    for host, cards in zip(HOSTS, (2, 2, 4), strict=True):
        volatile = 0 if host == "mau_local" else utilization
        first = Gpu(host, 0, f"GPU-{host}-0", NAME, "busy", volatile, 40, 8018, 11169, 80)
        gpus.append(first._replace(users=("root", "user1")))
        gpus += [
            Gpu(host, 1, f"GPU-{host}-{card}", NAME, "free", 0, 0, 2, 11172, 38) for card in range(1, cards)
        ]
        processes += [
            Process(host, 0, first.uuid, 31415, "root", "train1", "train1", 6400),
            Process(host, 0, first.uuid, 27182, "user1", "train2", "train2", 1618),
        ]
    hosts = tuple(Host(host, status="up", checked_at=time, last_seen=time) for host in HOSTS)
    return Snapshot(time, hosts, tuple(gpus), tuple(processes))


@pytest.fixture(scope="module", params=["/", "/gpus/"])
def curl(request, tmp_path_factory):
    """Return what asks the server for an address as the README does, and gives what curl prints."""
    program = need("curl", "curl")
    folder = tmp_path_factory.mktemp("vesta")
    site, data = folder / "site", folder / "data"
    for number in range(4):
        poll = _poll(TAKEN - timedelta(minutes=5 * (3 - number)), 89 + number)
        store.save(data, poll, 2)
        history.append(data, poll, Rules())
    look = SiteSettings(dir=site, title="vesta ver. 1.0.0", refresh=60, templates=None)
    addresses = dict.fromkeys(HOSTS, "127.0.0.1")
    render(_poll(TAKEN), look, site, now=TAKEN, period=None, addresses=addresses)
    config = write_config(folder, {"hosts": ["gpu01"]}, site={"dir": str(site)})
    block = webmon("deploy", "nginx", "-c", config, "--path", request.param).stdout
    with Server(site, "127.0.0.1", 0, data) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        with Nginx(folder / "nginx", with_past(block, server.server_port)) as nginx:

            def ask(target, *options):
                address = f"http://127.0.0.1:{nginx.port}{request.param}{target}"
                done = subprocess.run(
                    [program, "-s", *options, address], capture_output=True, text=True, check=True, timeout=20
                )
                return done.stdout

            yield ask
        server.shutdown()


def test_the_table(curl):
    r"""`curl "http://0.0.0.0:8080/?term=true"` shows every card, its memory, utilization and temperature."""
    lines = curl("?term=true").splitlines()
    assert re.fullmatch(r"\| vesta ver\. 1\.0\.0.* \|", lines[1])
    assert {len(line) for line in lines} == {80}
    wanted = TABLE.splitlines()
    assert [re.sub(r"\|[* ](\d:)", r"|.\1", line) for line in lines[2 : 2 + len(wanted)]] == wanted


def test_in_detail(curl):
    """`curl "http://0.0.0.0:8080/?term=true&detail=true"`: a box for each card, with its processes."""
    text = curl("?term=true&detail=true")
    for pattern in (
        r"^vesta ver\. 1\.0\.0",
        r"^#### mau_local_11a7c5eb :: 127\.0\.0\.1 #+$",
        r"^  last update: .*2019.03.24 20:00",
        r"^-{80}$",
        r"^  ┌\[ gpu:0 GeForce GTX 1080 Ti",
        r"memory used  memory available  gpu volatile  temperature",
        r"8018 / 11169MiB           3151MiB           92%         80°C",
        r"2 / 11172MiB          11170MiB            0%         38°C",
        r"mem \[/{40,46} +\]  71% │$",
        r"├── train1 +6400MiB root ",
        r"└── train2 +1618MiB user1 ",
        r"^  └─{74}┘$",
    ):
        assert re.search(pattern, text, re.MULTILINE), pattern


def test_the_states(curl):
    """`http://<server_address>/states/`: each host's newest sample, with the README's keys."""
    states = json.loads(curl("states/"))
    assert list(states) == list(HOSTS)
    for host, one in states.items():
        assert {"data", "ip_address"} <= set(one)
        assert one["ip_address"] == "127.0.0.1"
        (sample,) = one["data"]
        assert set(sample) == {"gpu_data", "timestamp"}
        assert sample["timestamp"] == 20190324200000
        assert list(sample["gpu_data"])[:2] == ["gpu:0", "gpu:1"]
        assert len(sample["gpu_data"]) == (4 if host == HOSTS[2] else 2)
        assert all(set(gpu) >= GPU_KEYS for gpu in sample["gpu_data"].values())


def test_a_card(curl):
    """The very card that the README shows; numbers are numbers, all of them."""
    card = json.loads(curl("states/mau_local_11a7c5eb/"))["mau_local_11a7c5eb"]["data"][0]["gpu_data"][
        "gpu:0"
    ]
    assert {key: card[key] for key in GPU_KEYS} == {
        "available_memory": 3151,  # the README's 10934 is not what 11169 and 8018 leave
        "device_num": 0,
        "gpu_name": NAME,
        "gpu_volatile": 92,
        "processes": [
            {"name": "train1", "pid": 31415, "used_memory": 6400, "user": "root"},
            {"name": "train2", "pid": 27182, "used_memory": 1618, "user": "user1"},
        ],
        "temperature": 80,
        "timestamp": "2019/03/24 20:00:00.000",
        "total_memory": 11169,
        "used_memory": 8018,
        "uuid": "GPU-mau_local_11a7c5eb-0",
    }


@pytest.mark.parametrize("host", HOSTS)
def test_one_host(curl, host):
    """`http://<server_address>/states/<host_name>/` is that host; with ?term=true, in detail."""
    assert json.loads(curl(f"states/{host}/")) == {host: json.loads(curl("states/"))[host]}
    text = curl(f"states/{host}/?term=true")
    assert re.findall(r"^#### (\S+) ", text, re.MULTILINE) == [host]
    assert "train1" in text


def test_fetch_num(curl):
    """`fetch_num=<# you want>` are so many, "ascending in time": two are kept whole, the rest is history."""
    (one,) = json.loads(curl("states/mau_local_11a7c5eb/?fetch_num=3")).values()
    assert [sample["timestamp"] for sample in one["data"]] == [
        20190324195000, 20190324195500, 20190324200000
    ]  # fmt: skip
    assert [sample["gpu_data"]["gpu:0"]["gpu_volatile"] for sample in one["data"]] == [90, 91, 92]
    assert len(json.loads(curl("states/mau_local/?fetch_num=100"))["mau_local"]["data"]) == 4
    assert {len(host["data"]) for host in json.loads(curl("states/?fetch_num=4")).values()} == {4}


def test_a_browser(curl):
    """`http://<server_address>/` is the page; for curl without parameters, too."""
    for target in ("", "?term=false"):
        assert curl(target).startswith("<!doctype html>")


def test_an_unknown_host(curl):
    """An error object, and a status that a script can tell."""
    for target in ("states/nope/", "states/nope/?term=true", "states/nope/?fetch_num=3"):
        body, _, status = curl(target, "-w", "%{http_code}").rpartition("\n")
        assert status == "404"
        assert json.loads(body)["status_code"] == 404
