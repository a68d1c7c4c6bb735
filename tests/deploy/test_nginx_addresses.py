"""vesta's addresses, through the printed block in a real nginx; `webmon serve` gives the same answers."""

from __future__ import annotations

import http.client
import json
import re
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from servers.nginx import Answer, Nginx, with_past
from test_nginx import METRICS_TYPE, SECURITY, block

from webmon.availability import Rules
from webmon.config.settings import SiteSettings
from webmon.publish.render import render
from webmon.publish.serve import Server
from webmon.store import history
from webmon.store import snapshot as store

if TYPE_CHECKING:
    from collections.abc import Iterator

SNAPSHOT = Path(__file__).parents[1] / "site" / "snapshot"
TAKEN = datetime(2026, 11, 18, 8, 20, tzinfo=UTC)
JSON = "application/json; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
NOT_FOUND = {"status": "ERROR", "status_code": 404, "info": "not found"}

# What is asked for, and the file of the site that is meant, if it is one.
FILES = {
    "": "index.html",
    "index.html": "index.html",
    "?term=false": "index.html",
    "?term=": "index.html",
    "?term": "index.html",
    "?term=0": "index.html",
    "?detail=true": "index.html",
    "?term=false&term=true": "index.html",
    "?terminal=true": "index.html",
    "?term=true": "term.txt",
    "?term=True": "term.txt",
    "?TERM=1": "term.txt",
    "?x=y&term=yes": "term.txt",
    "?term=true&detail=false": "term.txt",
    "?term=true&detail=true": "detail.txt",
    "?detail=true&term=true": "detail.txt",
    "states/": "states/index.json",
    "states": "states/index.json",
    "states/?term=false": "states/index.json",
    "states/index.json": "states/index.json",
    "states/?term=true": "term.txt",
    "states?term=true&detail=true": "detail.txt",
    "states/index.json?term=true": "term.txt",
    "states/gpu2.lab/": "states/gpu2.lab/index.json",
    "states/gpu2.lab": "states/gpu2.lab/index.json",
    "states/gpu2.lab/index.json": "states/gpu2.lab/index.json",
    "states/gpu2.lab/index.json?term=true": "hosts/gpu2.lab.txt",
    "states//gpu2.lab/": "states/gpu2.lab/index.json",
    "%73tates/gpu2%2elab/": "states/gpu2.lab/index.json",
    "states/gpu2.lab/?fetch_num=": "states/gpu2.lab/index.json",
    "states/gpu2.lab/?term=true": "hosts/gpu2.lab.txt",
    "states/gpu2.lab?term=true": "hosts/gpu2.lab.txt",
    "states/gpu2.lab/?term=true&detail=true": "hosts/gpu2.lab.txt",
    "states/mixed:2222/": "states/mixed_2222/index.json",
    "states/mixed:2222": "states/mixed_2222/index.json",
    "states/mixed%3A2222/": "states/mixed_2222/index.json",
    "states/mixed:2222/?term=true": "hosts/mixed_2222.txt",
    "states/mixed_2222/": "states/mixed_2222/index.json",
    "states/never.lab/": "states/never.lab/index.json",
    "hosts/gpu2.lab.html": "hosts/gpu2.lab.html",
    "hosts/gpu2.lab.html?term=true": "hosts/gpu2.lab.html",
    "hosts/gpu2.lab.txt": "hosts/gpu2.lab.txt",
    "hosts/gpu2.lab.metrics": "hosts/gpu2.lab.metrics",
    **{name: name for name in ("term.txt", "term.ansi", "detail.txt", "metrics", "metrics-dcgm", "gpus.csv")},
    **{name: name for name in ("snapshot.json", "snapshot.schema.json", "processes.csv", "404.json")},
}
NO_STATES = (
    "states/left.lab/",
    "states/left.lab",
    "states/nope/",
    "states/nope",
    "states/nope/index.json",
    "states/nope/?term=true",
    "states/nope/?term=true&detail=true",
    "states/nope:22/",
    "states/nope:22/?term=true",
    "states/gpu2.lab/more/",
    "states/index.json/",
    "states/a%0d%0aX-Made:up/",
)
NO_FILES = (
    "nope",
    "nope/",
    "nope?term=true",
    "hosts/nope.txt",
    "statesmen/",
    ".manifest",
    "%2emanifest?term=true",
)


class Both(NamedTuple):
    nginx: Nginx
    path: str
    site: Path
    server: Server

    def get(self, target: str, method: str = "GET", **headers: str) -> Answer:
        return self.nginx.get(self.path + target, method, **headers)

    def get_served(self, target: str, method: str = "GET") -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_port, timeout=10)
        try:
            connection.request(method, f"/{target}")
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, headers, response.read())
        finally:
            connection.close()


@pytest.fixture(scope="module", params=["/", "/gpus/"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """A site in nginx as printed, and in `webmon serve`."""
    yield from _both(request.param, tmp_path_factory.mktemp("nginx"), is_proxied=False)


@pytest.fixture(scope="module", params=["/", "/gpus/"])
def proxied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """The same, and nginx asks `webmon serve` for the past."""
    yield from _both(request.param, tmp_path_factory.mktemp("nginx"), is_proxied=True)


def _both(path: str, folder: Path, *, is_proxied: bool) -> Iterator[Both]:
    site, data = folder / "site", folder / "data"
    snapshot = store.read(SNAPSHOT)
    for number in range(5):
        poll = snapshot._replace(taken_at=TAKEN + timedelta(minutes=5 * (number - 4)))
        poll = poll._replace(hosts=tuple(host._replace(checked_at=poll.taken_at) for host in poll.hosts))
        store.save(data, poll, 3)
        history.append(data, poll, Rules())
    look = SiteSettings(dir=site, title="GPU monitor", refresh=60, templates=None)
    render(snapshot, look, site, now=TAKEN, period=None)
    (site / "states" / "left.lab").mkdir()
    with Server(site, "127.0.0.1", 0, data) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        text = block(folder, site, "--path", path)
        if is_proxied:
            text = with_past(text, server.server_port)
        with Nginx(folder / "nginx", text) as nginx:
            yield Both(nginx, path, site, server)
            assert not re.search(r"\[(warn|alert|crit|emerg)\]", nginx.log())
        server.shutdown()


def _kind(file: str) -> str:
    if "metrics" in file:
        return METRICS_TYPE
    kinds = {"html": "text/html; charset=utf-8", "json": JSON, "csv": "text/csv; charset=utf-8"}
    return kinds.get(file.rpartition(".")[2], TEXT)


@pytest.mark.parametrize("target", FILES)
def test_every_address_is_a_file(both: Both, target: str):
    """The same one from nginx and from `webmon serve`, with its type and all headers; for HEAD, too."""
    file = FILES[target]
    for answer in (both.get(target), both.get_served(target)):
        assert answer.status == 200
        assert answer.body == (both.site / file).read_bytes()
        assert answer.headers["content-type"] == _kind(file)
        assert answer.headers["cache-control"] == "no-cache"
        assert {name: answer.headers.get(name) for name in SECURITY} == SECURITY
        length = int(answer.headers["content-length"])
        assert length == len(answer.body)
    for head in (both.get(target, "HEAD"), both.get_served(target, "HEAD")):
        assert (head.status, head.body, int(head.headers["content-length"])) == (200, b"", length)


@pytest.mark.parametrize("target", NO_STATES)
def test_an_unknown_host_is_a_404_for_programs(both: Both, target: str):
    """With a JSON body, for a terminal's address as well; nothing of it is kept."""
    for answer in (both.get(target), both.get_served(target)):
        assert (answer.status, answer.headers["content-type"]) == (404, JSON)
        assert json.loads(answer.body) == NOT_FOUND
        assert {name: answer.headers.get(name) for name in SECURITY} == SECURITY
        assert "max-age" not in answer.headers.get("cache-control", "")
        assert "x-made" not in answer.headers
    for head in (both.get(target, "HEAD"), both.get_served(target, "HEAD")):
        assert (head.status, head.headers["content-type"], head.body) == (404, JSON, b"")


@pytest.mark.parametrize("target", NO_FILES)
def test_any_other_address_is_a_404_for_people(both: Both, target: str):
    """It is none that a program asks for."""
    for answer in (both.get(target), both.get_served(target)):
        assert answer.status == 404
        assert answer.headers["content-type"].startswith("text/")
        assert {name: answer.headers.get(name) for name in SECURITY} == SECURITY


def test_text_is_as_it_is_called(both: Both):
    """What the addresses give is what a person expects there."""
    assert both.get("?term=true").body.decode().startswith("+---")
    assert "gpu2.lab" in both.get("?term=true&detail=true").body.decode()
    only = both.get("states/gpu2.lab/?term=true").body.decode()
    assert "gpu2.lab" in only
    assert "gpu10.lab" not in only
    assert list(json.loads(both.get("states/mixed:2222/").body)) == ["mixed:2222"]
    assert both.get("").body.startswith(b"<!doctype html>")


@pytest.mark.parametrize("target", ["?term=true", "states/", "states/gpu2.lab/", "states/nope/"])
def test_nothing_can_be_sent_there(both: Both, target: str):
    """These addresses are for reading, like all others."""
    assert both.get(target, "POST").status == 405
    assert both.get_served(target, "POST").status in (405, 501)


@pytest.mark.parametrize("target", ["?term=true", "states/", "states/gpu2.lab/"])
def test_a_second_look_costs_nothing(both: Both, target: str):
    """These are files, with what belongs to them."""
    assert both.get(target, if_none_match=both.get(target).headers["etag"]).status == 304


@pytest.mark.parametrize("host", ["gpu2.lab", "mixed:2222"])
@pytest.mark.parametrize("slash", ["/", ""])
def test_the_past_comes_through_nginx(proxied: Both, host: str, slash: str):
    """The newest samples of a host, the oldest of them first, from the snapshots and the history."""
    for count in (1, 2, 4, 9):
        answer = proxied.get(f"states/{host}{slash}?fetch_num={count}")
        assert (answer.status, answer.headers["content-type"]) == (200, JSON)
        (samples,) = [one["data"] for one in json.loads(answer.body).values()]
        minutes = [one["timestamp"] // 100 % 100 for one in samples]
        assert minutes == [0, 5, 10, 15, 20][-count:]
        assert {name: answer.headers.get(name) for name in SECURITY} == SECURITY
        assert answer.headers["cache-control"] == "no-cache"
    assert answer.body == proxied.get_served(f"states/{host}/?fetch_num=9").body


def test_the_past_of_all_hosts_comes_through_nginx(proxied: Both):
    """With the newest sample of hosts that have no cards."""
    hosts = json.loads(proxied.get("states/?fetch_num=2").body)
    assert {host: len(one["data"]) for host, one in hosts.items()} == dict.fromkeys(hosts, 2)
    assert len(hosts) == 5


@pytest.mark.parametrize("number", ["0", "-1", "abc", "1.5", "1e3", "1&fetch_num=2", "9" * 3000])
def test_a_wrong_number_is_a_400(proxied: Both, number: str):
    """With a JSON body that says what is right, and so for an unknown host's 404."""
    answer = proxied.get(f"states/gpu2.lab/?fetch_num={number}")
    assert (answer.status, answer.headers["content-type"]) == (400, JSON)
    assert json.loads(answer.body)["info"] == "fetch_num is a whole number from 1 to 999999"
    many = proxied.get("states/?fetch_num=999999")
    assert (many.status, json.loads(many.body)["info"]) == (400, "fetch_num is 6000 at most for 5 hosts")
    missing = proxied.get("states/nope/?fetch_num=3")
    assert (missing.status, json.loads(missing.body)) == (404, NOT_FOUND)


def test_the_rest_does_not_need_the_server(proxied: Both):
    """Behind the proxy_pass or not, all other addresses are nginx's own."""
    for target in (
        "",
        "?fetch_num=3",
        "states/",
        "states/gpu2.lab/",
        "states/gpu2.lab/?term=true",
        "metrics",
    ):
        answer = proxied.get(target)
        assert answer.status == 200
        assert {name: answer.headers.get(name) for name in SECURITY} == SECURITY
    assert proxied.get("states/gpu2.lab/?fetch_num=3", "POST").status == 405
