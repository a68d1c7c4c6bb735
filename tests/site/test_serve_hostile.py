"""`webmon serve` and clients that mean harm, or have no manners: they get little, and the others all."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import socket
import subprocess
import threading
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from polls import at, poll, save
from servers.programs import need
from test_serve import ask

from webmon.config.settings import SiteSettings
from webmon.publish import handler
from webmon.publish import serve as serving
from webmon.publish.render import render


@pytest.fixture(scope="module")
def rendered(tmp_path_factory):
    """Six polls of two hosts, and the site of the last one."""
    folder = tmp_path_factory.mktemp("rendered")
    save(folder / "data", *map(poll, range(6)), keep=3)
    look = SiteSettings(dir=folder / "site", title="GPU monitor", refresh=60, templates=None)
    render(poll(5), look, folder / "site", now=at(5), period=None)
    return folder


@pytest.fixture
def site(rendered, tmp_path):
    """A site of the test's own."""
    return shutil.copytree(rendered / "site", tmp_path / "site")


@pytest.fixture
def data(rendered):
    """The polls."""
    return rendered / "data"


@pytest.fixture(scope="module")
def url(rendered):
    """A server for all tests that leave the site as it is."""
    with serving.Server(rendered / "site", "127.0.0.1", 0, rendered / "data") as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield server.url
        server.shutdown()


@pytest.fixture(autouse=True)
def _quiet():
    """Let the clients of the test before go, as threads and descriptors are counted."""
    deadline = time.monotonic() + 5
    while any("process_request" in thread.name for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def connect(url, buffer=None):
    """Return a connection, with a small receive buffer for clients that don't read."""
    connection = socket.socket()
    if buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.settimeout(10)
    connection.connect(("127.0.0.1", urlsplit(url).port))
    return connection


def talk(url, raw, *, end=True):
    """Send bytes; return all that comes back until the server ends the connection."""
    with connect(url) as connection:
        connection.sendall(raw)
        if end:
            connection.shutdown(socket.SHUT_WR)
        return rest_of(connection)


def rest_of(connection):
    received = b""
    try:
        while piece := connection.recv(65536):
            received += piece
    except ConnectionResetError:
        pass  # it has not read all that was sent
    return received


def statuses(received):
    """Return the status of each answer in it."""
    return [int(number) for number in re.findall(rb"^HTTP/1\.[01] (\d{3}) ", received, re.MULTILINE)]


def in_use():
    """Return the number of threads, and of descriptors."""
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


def settled(before):
    """Tell whether no more threads and descriptors are in use than before, in a moment."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        now = in_use()
        if now[0] <= before[0] and now[1] <= before[1]:
            return True
        time.sleep(0.01)
    return False


def test_it_survives_a_crowd(serve, site, data):
    """wrk with 200 connections: no error, no thread and no descriptor left; a page, states, the past."""
    wrk = need("wrk", "wrk")
    url = serve(site, data)
    before = in_use()
    for target in ("", "states/", "states/gpu01/?fetch_num=5"):
        done = subprocess.run(
            [wrk, "-t1", "-c200", "-d1s", "--timeout", "10s", url + target],
            capture_output=True, text=True, check=True, timeout=30,
        )  # fmt: skip
        assert int(re.search(r"(\d+) requests in", done.stdout)[1]) > 200
        assert "Non-2xx" not in done.stdout
        errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+)", done.stdout)
        assert errors is None or errors.groups() == ("0", "0", "0")
        assert ask(url, "/")[0].status == 200
    assert settled(before)


def test_a_request_that_trickles_in_is_ended(serve, site, monkeypatch):
    """The deadline is for the request, not for each of its bytes; half a line, or half of the headers."""
    monkeypatch.setattr(handler, "_REQUEST_S", 0.5)
    url = serve(site)
    before = in_use()
    started = time.monotonic()
    with connect(url) as slow:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        with pytest.raises(OSError, match=r"reset|pipe"):  # noqa: PT012 - any of them may be the first
            while time.monotonic() < started + 5:
                slow.sendall(b"X")
                time.sleep(0.05)
    assert 0.4 < time.monotonic() - started < 2
    assert talk(url, b"GET", end=False) == b""
    assert settled(before)


def test_a_connection_may_be_used_again_until_it_is_idle(serve, site, monkeypatch):
    """Each request has a deadline of its own."""
    monkeypatch.setattr(handler, "_REQUEST_S", 0.4)
    url = serve(site)
    with connect(url) as connection:
        received = b""
        for _ in range(4):
            connection.sendall(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
            received += connection.recv(65536)
            time.sleep(0.2)
        assert statuses(received) == [200] * 4
        assert rest_of(connection) == b""


def test_a_client_that_does_not_read_is_left(serve, site, data, monkeypatch):
    """A large file and a deadline: it has a part of it; no memory is spent on the rest, others are served."""
    monkeypatch.setattr(handler, "_ANSWER_S", 0.5)
    with open(site / "large.txt", "wb") as file:
        file.truncate(300_000_000)
    url = serve(site, data)
    before = in_use()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(connect(url, 4096)).sendall(b"GET /large.txt HTTP/1.1\r\n\r\n")
        time.sleep(0.1)
        assert ask(url, "/")[0].status == 200
        assert settled((before[0], before[1] + 20))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 50_000


def test_those_who_do_not_read_the_past_leave_room_for_others(serve, site, data, monkeypatch):
    """Few answers are in memory at once; whoever comes too late is told so, and the site is served."""
    monkeypatch.setattr(handler, "_REQUEST_S", 0.5)
    one = {"data": ["x" * 3000] * 90, "status": "up", "ip_address": None}
    document = {f"host{number}": one for number in range(90)}
    (site / "states" / "gpu01" / "index.json").write_text(json.dumps(document))
    url = serve(site, data)
    request = b"GET /states/gpu01/?fetch_num=1 HTTP/1.1\r\n\r\n"
    with ExitStack() as stack:
        for _ in range(serving._MOST_OF_THE_PAST):
            slow = stack.enter_context(connect(url, 4096))
            slow.sendall(request)
            slow.recv(10)  # by now its answer is being sent
        answer, body = ask(url, "/states/gpu02/?fetch_num=1")
        assert (answer.status, json.loads(body)["status_code"]) == (503, 503)
        assert ask(url, "/states/gpu02/")[0].status == 200
    deadline = time.monotonic() + 5
    while ask(url, "/states/gpu02/?fetch_num=1")[0].status == 503:
        assert time.monotonic() < deadline


def test_idle_connections_do_not_keep_others_out_for_good(serve, site, monkeypatch):
    """There are places for so many; newcomers are turned away or wait, and are served when one is free."""
    monkeypatch.setattr(serving, "_MOST_CLIENTS", 40)
    monkeypatch.setattr(handler, "_REQUEST_S", 1.0)
    url = serve(site)
    before = in_use()
    with ExitStack() as stack:
        for _ in range(60):
            stack.enter_context(connect(url))
        time.sleep(0.2)
        assert threading.active_count() - before[0] == 40
        deadline = time.monotonic() + 8
        while True:
            try:
                assert statuses(talk(url, b"HEAD / HTTP/1.0\r\n\r\n")) == [200]
                break
            except (OSError, AssertionError):
                assert time.monotonic() < deadline
    assert settled(before)
    assert ask(url, "/")[0].status == 200


def test_more_connections_than_places_are_within_its_means(serve, site):
    """The cap is where it is said to be, and all is as before when they have gone."""
    url = serve(site)
    before = in_use()
    with ExitStack() as stack:
        connections = [stack.enter_context(connect(url)) for _ in range(520)]
        deadline = time.monotonic() + 5
        while threading.active_count() - before[0] < 500:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert threading.active_count() - before[0] == 500
        for connection in connections[:300]:
            connection.close()
        assert ask(url, "/")[0].status == 200
    assert settled(before)


@pytest.mark.parametrize(
    ("raw", "status"),
    [
        (b"GET\r\n\r\n", 400),
        (b"GET / HTTP/1.1 x\r\n\r\n", 400),
        (b"GET / HTTX/1.1\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\n\r\n", 505),
        (b"GET / HTTP/1.1.1\r\n\r\n", 400),
        (b"POST /\r\n\r\n", 400),
        (b"\x00\x00\x00 / HTTP/1.1\r\n\r\n", 501),
        (b"get / HTTP/1.1\r\n\r\n", 501),
        (b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 150 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 20_000, 431),
        (b"GET / HTTP/1.1\r\nno header\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length : 5\r\n\r\nabcde", 400),
        (b"GET /\x00 HTTP/1.1\r\n\r\n", 404),
        (b"GET /index.html%00.txt HTTP/1.1\r\n\r\n", 404),
        (b"GET /%0d%0aSet-Cookie:x HTTP/1.1\r\n\r\n", 404),
        (b"GET /states/%0d%0aSet-Cookie:x/ HTTP/1.1\r\n\r\n", 404),
        (b"GET /?fetch_num=%0d%0aSet-Cookie:x HTTP/1.1\r\n\r\n", 200),
        (b"GET /states/?fetch_num=%0d%0aSet-Cookie:x HTTP/1.1\r\n\r\n", 400),
        (b"GET http://[/ HTTP/1.1\r\n\r\n", 200),
        (b"GET http://elsewhere/metrics HTTP/1.1\r\n\r\n", 200),
        (b"GET http://elsewhere/../../etc/hostname HTTP/1.1\r\n\r\n", 404),
        (b"GET //elsewhere/../../etc/hostname HTTP/1.1\r\n\r\n", 404),
        (b"GET \xff\xfe HTTP/1.1\r\n\r\n", 404),
        (b"GET * HTTP/1.1\r\n\r\n", 404),
        (b"CONNECT elsewhere:80 HTTP/1.1\r\n\r\n", 501),
        (b"PUT /index.html HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 501),
        (b"POST /states/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501),
    ],
)  # fmt: skip
def test_a_malformed_request_has_one_answer(url, raw, status):
    """With a status, with the policy, and with nothing in it that the client has sent."""
    received = talk(url, raw)
    assert statuses(received) == [status]
    head, _, body = received.partition(b"\r\n\r\n")
    assert b"Content-Security-Policy: default-src 'none'" in head
    assert b"Set-Cookie" not in received
    if status >= 400:
        assert b"\r\nConnection: close" in head
        assert len(body) < 200
    assert ask(url, "/")[0].status == 200


def test_whoever_sends_much_and_is_refused_can_read_why(url):
    """The server takes what is on its way, for a moment: else its answer would be lost."""
    body = b"x" * 5_000_000
    received = talk(url, b"POST / HTTP/1.1\r\nContent-Length: 5000000\r\n\r\n" + body)
    assert statuses(received) == [501]


def test_the_first_http_is_answered_with_the_page_alone(url, rendered):
    """Two words in a line; there were no headers then."""
    assert talk(url, b"GET /metrics\r\n\r\n") == (rendered / "site" / "metrics").read_bytes()


def test_requests_may_follow_each_other_at_once(url, rendered):
    """Each has its answer, in their order."""
    targets = (b"/metrics", b"/term.txt", b"/metrics-dcgm")
    received = talk(url, b"".join(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % target for target in targets))
    assert statuses(received) == [200] * 3
    files = [(rendered / "site" / target[1:].decode()).read_bytes() for target in targets]
    places = [received.index(b"\r\n\r\n" + file) for file in files]
    assert places == sorted(places)


@pytest.mark.parametrize(
    "header",
    [b"Content-Length: 44", b"Transfer-Encoding: chunked", b"content-length: 0", b"Content-Length: x",
     b"Transfer-Encoding : chunked", b"Content-Length: 1\r\nContent-Length: 44",
     b"X: y\r\n Content-Length: 44\r\nz"],
)  # fmt: skip
def test_what_is_in_a_body_is_no_request(url, header):
    """A proxy in front may take for a body what looks like a request to us: the connection ends there."""
    inner = b"GET /metrics HTTP/1.1\r\nHost: smuggled\r\n\r\n"
    received = talk(url, b"GET / HTTP/1.1\r\nHost: x\r\n" + header + b"\r\n\r\n" + inner, end=False)
    assert len(statuses(received)) == 1
    assert b"webmon_" not in received


def test_what_is_no_file_is_not_opened_for_long(serve, site, tmp_path):
    """Folders, pipes, sockets, devices, links out: 404, at once, and without a descriptor left open."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    (site / "out").symlink_to(tmp_path / "outside")
    (site / "secret.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (site / "zero").symlink_to("/dev/zero")
    (site / "loop").symlink_to("loop")
    (site / "gone").symlink_to(tmp_path / "nothing")
    os.mkfifo(site / "pipe")
    url = serve(site)
    before = in_use()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(site / "socket"))
        for _ in range(5):
            for name in (
                "out/secret.txt",
                "secret.txt",
                "zero",
                "loop",
                "gone",
                "pipe",
                "socket",
                "hosts",
                "out",
            ):
                answer, body = ask(url, f"/{name}")
                assert (answer.status, b"secret" in body) == (404, False)
    assert settled(before)


def test_a_link_within_the_site_is_a_file_of_it(serve, site, tmp_path):
    """And the site's folder may be a link itself."""
    (site / "latest.json").symlink_to("snapshot.json")
    (tmp_path / "www").symlink_to(site)
    assert ask(serve(tmp_path / "www"), "/latest.json")[1] == (site / "snapshot.json").read_bytes()


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/metrics",
        "/states/",
        "/states/gpu01/?fetch_num=4",
        "/states/nope/",
        "/nope",
        "/states/?fetch_num=x",
    ],
)
def test_head_is_get_without_its_body(url, target):
    """The same status and the same headers, but for the time."""
    (got, body), (head, nothing) = ask(url, target), ask(url, target, "HEAD")
    assert nothing == b""
    assert int(got.headers["Content-Length"]) == len(body) > 0
    wanted, found = ({k: v for k, v in one.headers.items() if k != "Date"} for one in (got, head))
    assert (got.status, wanted) == (head.status, found)


@pytest.mark.parametrize("target", ["/", "/assets", "/metrics", "/states/", "/states/gpu01/?fetch_num=4"])
@pytest.mark.parametrize("form", ["{}", "W/{}", '"other", {}', "*"])
def test_what_a_client_has_is_not_sent_again(url, rendered, target, form):
    """Whatever kind of answer it is, and however it is asked."""
    if target == "/assets":
        target = f"/assets/{min(os.listdir(rendered / 'site' / 'assets'))}"
    first, _ = ask(url, target)
    again, body = ask(url, target, If_None_Match=form.format(first.headers["ETag"]))
    assert (again.status, body, again.headers["ETag"]) == (304, b"", first.headers["ETag"])
    assert again.headers["Cache-Control"] == first.headers["Cache-Control"]
    assert again.headers["Content-Security-Policy"] == first.headers["Content-Security-Policy"]
    assert ask(url, target, If_None_Match='"other"')[0].status == 200


def test_an_answer_is_of_one_version_of_a_file(serve, site):
    """While render replaces it, again and again; and its length is right."""
    url = serve(site)
    file = site / "versions.txt"
    stop = threading.Event()

    def replace():
        number = 0
        while not stop.is_set():
            number += 1
            (site / ".new").write_bytes(b"%d\n" % (number % 10) * (100_000 + number))
            (site / ".new").replace(file)

    file.write_bytes(b"0\n")
    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(100):
            answer, body = ask(url, "/versions.txt")
            assert answer.status == 200
            assert len(set(body.splitlines())) == 1
    finally:
        stop.set()
        thread.join()


def test_a_file_that_is_cut_off_while_it_is_sent_ends_the_connection(serve, site):
    """So that nobody takes the next answer for the rest of this one."""
    with open(site / "large.txt", "wb") as file:
        file.truncate(50_000_000)
    with connect(serve(site), 4096) as slow:
        slow.sendall(b"GET /large.txt HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n")
        slow.recv(1000)
        os.truncate(site / "large.txt", 0)
        received = rest_of(slow)
    assert b"webmon_" not in received
    assert len(received) < 50_000_000
