"""A site that can't be read is one line with the remedy, exit 1, and nothing on standard output."""

from __future__ import annotations

import gzip
import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from answers import Answering, answer
from clusters_seen import cluster
from screen import can_do_harm, on_a_screen
from servers.command import WEBMON, webmon
from servers.hostile import Hostile
from servers.nginx import Nginx

from webmon.errors import SiteError
from webmon.pick.site import snapshot_of
from webmon.store import document

WHOLE = document.to_json(cluster()).encode()
COMMANDS = (["list"], ["available"], ["select"], ["select", "--", "true"], ["wait"])


def refused(done, *told):
    """Check that it was refused, and how; return the line."""
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("webmon: ")
    for text in told:
        assert text in line
    return line


def changed(**changes):
    return json.dumps(json.loads(WHOLE) | changes).encode()


def row(kind, **changes):
    rows = json.loads(WHOLE)[kind]
    return changed(**{kind: [rows[0] | changes, *rows[1:]]})


@pytest.fixture(scope="module", autouse=True)
def asked_in_vain():
    """`list` of a server that never answers, and how long that took: it waits while the other tests run."""

    def ask():
        started = time.monotonic()
        return webmon("list", "--from", server.url), time.monotonic() - started

    # Leaving the server closes the connection, so nobody waits for a test that is not run.
    with ThreadPoolExecutor(1) as waiting, Answering(hangs=True) as server:
        yield waiting.submit(ask)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_port_that_is_closed(command):
    """All commands say the same."""
    with Hostile(down="refuse") as servers:
        url = f"http://127.0.0.1:{servers.port['down']}/gpus/"
        refused(
            webmon(*command[:1], "--from", url, *command[1:]),
            url,
            "Connection refused",
            "Is the address right?",
        )


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://no-such-host.invalid/", "http://no-such-host.invalid/snapshot.json can't be read: "),
        ("http://a..b/", "can't be read"),
        ("http://[::1]:1/", "can't be read"),
    ],
)
def test_a_name_that_leads_nowhere(url, told):
    """It says which."""
    refused(webmon("list", "--from", url), told)


@pytest.mark.parametrize(
    "url",
    ["mon/gpus", "", "gpu07", "ftp://mon/", "file:///etc/passwd", "http://", "http:///x", "http://mon:x/",
     "http://mon:70000/", "http://mon/\x1b[2J", "http://mon/ x", "http://[::1/", "javascript:alert(1)",
     "http://me:secret@mon/"],
)  # fmt: skip
def test_what_is_no_address_is_a_mistake(url):
    """Exit 2; whatever it was, it is shown harmlessly."""
    for done in (webmon("list", "--from", url), webmon("list", "--cluster", env={"WEBMON_SITE": url or " "})):
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert "is no address of a site. It starts with http:// or https://" in line
        assert not can_do_harm(line)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (answer(b"no", status="404 Not Found"), ["404 Not Found", "`webmon render`"]),
        (answer(b"no", status="403 Forbidden"), ["403 Forbidden", "login"]),
        (answer(b"no", status="401 Unauthorized"), ["401 Unauthorized", "login"]),
        (answer(b"no", status="500 Internal Server Error"), ["500 Internal Server Error"]),
        (answer(b"", "Location: file:///etc/passwd", status="302 Found"), ["302"]),
        (answer(b"", "Location: /gpus/snapshot.json", status="302 Found"), ["302"]),
        (answer(b"<!doctype html><title>x</title>"), ["not a whole snapshot of webmon"]),
        (answer(b""), ["not a whole snapshot"]),
        (answer(WHOLE[: len(WHOLE) // 2]), ["not a whole snapshot"]),
        (answer(WHOLE)[:-100], ["not a whole snapshot"]),
        (answer(b"[]"), ["no snapshot with schema 1"]),
        (answer(b'{"schema": 1}'), ["it has no list of hosts"]),
        (answer(changed(schema=2)), ["no snapshot with schema 1", "webmon as new as this one"]),
        (answer(changed(taken_at=None)), ["not a whole snapshot"]),
        (answer(changed(gpus={})), ["it has no list of gpus"]),
        (answer(changed(gpus=[[]])), ["'[]' is no row"]),
        (answer(row("gpus", index="0")), ["'0' is no index"]),
        (answer(row("gpus", index=None)), ["'None' is no index"]),
        (answer(row("gpus", memory_used_mib=True)), ["'True' is no memory_used_mib"]),
        (answer(row("gpus", state="idle")), ["'idle' is no state"]),
        (answer(row("gpus", state=["free"])), ["is no state"]),
        (answer(row("gpus", users="alice")), ["'alice' is no users"]),
        (answer(row("gpus", power_w="\x1b[2J")), ["is no power_w"]),
        (answer(row("hosts", checked_at="yesterday")), ["not a whole snapshot"]),
        (answer(row("hosts", host="gpu08")), ["not a whole snapshot", "host 'gpu08' is there twice"]),
        (answer(b"\xff\xfe\x00"), ["not a whole snapshot"]),
        (answer(b"[" * 1_000_000), ["not a whole snapshot"]),
        (answer(b'{"schema": ' + b"9" * 5000 + b"}"), ["not a whole snapshot"]),
        (answer(WHOLE, "Content-Encoding: gzip"), ["can't be read", "incorrect header check"]),
        (answer(gzip.compress(WHOLE)[:-500], "Content-Encoding: gzip"), ["not a whole snapshot"]),
        (b"", ["can't be read"]),
        (b"SSH-2.0-OpenSSH_9.2\r\n", ["can't be read"]),
        (b"HTTP/1.1 200 \x1b]0;owned\x07\r\nX\r\n\r\n", ["not a whole snapshot"]),
        (b"\x1b]0;owned\x07\x1b[2J\r\n\r\n", ["can't be read"]),
        (b"HTTP/1.1 404 \x1b]0;owned\x07\r\n\r\n", ["404"]),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", ["can't be read"]),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n", ["can't be read"]),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", ["can't be read"]),
    ],
)
def test_an_answer_that_is_no_snapshot(said, told):
    """Whatever it is, it is one line, and does nothing to the terminal."""
    with Answering(said) as server:
        line = refused(webmon("list", "--from", server.url), *told)
        assert server.asked[0].startswith("GET /gpus/snapshot.json HTTP/1.1\r\n")
    assert not can_do_harm(line)


@pytest.mark.parametrize("proxy", [False, True])
def test_a_redirect_leads_to_no_other_protocol(proxy):
    """Neither a server of ftp is asked, nor a proxy for it."""
    with Answering(answer(WHOLE)) as other:
        place = f"Location: {other.url.replace('http', 'ftp')}snapshot.json"
        with Answering(answer(b"", place, status="302 Found")) as server:
            env = {"ftp_proxy": other.url} if proxy else {}
            refused(webmon("list", "--from", server.url, env=env), "can't be read: unknown url type: ftp")
        assert other.asked == []


def test_a_proxy_is_asked_where_there_is_one():
    """For http, as $http_proxy says."""
    with Answering(answer(WHOLE)) as proxy:
        done = webmon("list", "--from", "http://mon.invalid/gpus/", env={"http_proxy": proxy.url})
        assert (done.returncode, proxy.asked[0].splitlines()[0]) == (
            0,
            "GET http://mon.invalid/gpus/snapshot.json HTTP/1.1",
        )


def test_a_bomb_does_not_fill_the_memory(tmp_path):
    """What a few kilobytes unpack to is bounded."""
    bomb = gzip.compress(b"[" + b" " * 200 * 2**20)
    with Answering(answer(bomb, "Content-Encoding: gzip")) as server:
        limited = 'ulimit -v 1500000; exec "$0" "$@"'
        seen = on_a_screen("list", "--from", server.url, program=["bash", "-c", limited, *WEBMON])
    assert seen.code == 1
    (line,) = seen.lines
    assert line.startswith(f"webmon: {server.url}snapshot.json can't be read: it is larger than 64 MiB. ")


def test_a_flood_is_cut_off():
    """A server that never stops is not read to the end."""
    chunk = b" " * 2**20
    with Answering(b"HTTP/1.1 200 OK\r\n\r\n", *[chunk] * 80) as server:
        refused(webmon("list", "--from", server.url), "larger than 64 MiB")


def test_https_to_a_port_that_speaks_http(tmp_path):
    """The address says one thing, the server does another."""
    with Nginx(tmp_path, "") as nginx:
        refused(webmon("list", "--from", f"https://127.0.0.1:{nginx.port}/"), "can't be read", "SSL")


def test_a_server_that_never_answers_is_given_up(asked_in_vain):
    """After fifteen seconds, not after minutes."""
    done, seconds = asked_in_vain.result()
    refused(done, "timed out")
    assert 14 < seconds < 20


@pytest.mark.parametrize(
    "at_once", [b"HTTP/1.1 200 OK\r\nX-Slow: ", answer(WHOLE)[:400]], ids=["head", "body"]
)
def test_a_server_that_drips_is_given_up(at_once):
    """It is never silent for long, and would go on for ever: one limit is for all of it."""
    with Answering(at_once, *[b" "] * 10, pause=0.2) as server:
        started = time.monotonic()
        with pytest.raises(SiteError) as raised:
            snapshot_of(server.url, within=1)
        assert 0.9 < time.monotonic() - started < 1.8
    assert raised.value.problem == f"{server.url}snapshot.json can't be read: it takes longer than 1 s"


def test_a_page_that_is_whole_is_read():
    """The same server, with a snapshot: what was refused above was refused for what it is."""
    for said in (
        answer(WHOLE),
        answer(gzip.compress(WHOLE), "Content-Encoding: gzip"),
        answer(row("gpus", new=[1])),
    ):
        with Answering(said) as server:
            done = webmon("list", "--from", server.url, "-q")
        assert (done.returncode, done.stderr) == (0, "")
        assert len(done.stdout.splitlines()) == 10
