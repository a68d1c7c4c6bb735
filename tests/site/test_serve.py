"""`webmon serve`: the small server for a look without nginx."""

from __future__ import annotations

import http.client
import socket
from urllib.parse import urlsplit

import pytest

from webmon.errors import ConfigError
from webmon.publish.serve import Server


@pytest.fixture
def site(tmp_path):
    """A site folder with every kind of file, and something beside it."""
    folder = tmp_path / "site"
    (folder / "hosts").mkdir(parents=True)
    (folder / "assets").mkdir()
    for name in (
        "index.html",
        "hosts/index.html",
        "assets/a.0123.css",
        "term.txt",
        "snapshot.json",
        "metrics",
        "x.bin",
    ):
        (folder / name).write_text(f"this is {name}")
    (folder / ".manifest").write_text("secret")
    (tmp_path / "outside.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    return folder


def ask(url, target, method="GET", **headers):
    """Return the answer and its body; the target goes out as it is, dots and all."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=10)
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers.items():
        connection.putheader(name.replace("_", "-"), value)
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


@pytest.mark.parametrize(
    ("target", "name", "kind"),
    [
        ("/", "index.html", "text/html; charset=utf-8"),
        ("/?term=false", "index.html", "text/html; charset=utf-8"),
        ("/hosts/", "hosts/index.html", "text/html; charset=utf-8"),
        ("/term.txt", "term.txt", "text/plain; charset=utf-8"),
        ("/snapshot.json", "snapshot.json", "application/json; charset=utf-8"),
        ("/metrics", "metrics", "text/plain; version=0.0.4; charset=utf-8"),
        ("/x.bin", "x.bin", "application/octet-stream"),
    ],
)
def test_a_file_of_the_site_is_sent_with_its_type(serve, site, target, name, kind):
    """With the headers that nginx would send."""
    answer, body = ask(serve(site), target)
    assert (answer.status, body.decode()) == (200, f"this is {name}")
    assert answer.headers["Content-Type"] == kind
    assert answer.headers["Cache-Control"] == "no-cache"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize(
    "target",
    [
        "/nothing", "/hosts", "/.manifest", "/%2emanifest", "/../outside.txt", "/hosts/../../outside.txt",
        "/%2e%2e/outside.txt", "/..%2foutside.txt", "//etc/hostname", "/link.txt", "/index.html%00.txt",
        "/" + "a" * 5000, "/%ff%fe",
    ],
)  # fmt: skip
def test_nothing_else_is_sent(serve, site, target):
    """Nothing outside of the folder, no dotfile, no link out of it."""
    answer, body = ask(serve(site), target)
    assert (answer.status, b"secret" in body) == (404, False)
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_a_reload_is_cheap(serve, site):
    """What has not changed is not sent again."""
    url = serve(site)
    etag = ask(url, "/")[0].headers["ETag"]
    answer, body = ask(url, "/", If_None_Match=etag)
    assert (answer.status, body) == (304, b"")
    (site / "index.html").write_text("changed")
    assert ask(url, "/", If_None_Match=etag)[1] == b"changed"


def test_assets_are_kept_for_good(serve, site):
    """Their names change with their content."""
    assert "immutable" in ask(serve(site), "/assets/a.0123.css")[0].headers["Cache-Control"]


def test_only_the_head_is_sent_for_head(serve, site):
    """HEAD gives the length and no body."""
    answer, body = ask(serve(site), "/", "HEAD")
    assert (answer.status, answer.headers["Content-Length"], body) == (200, "18", b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "X"])
def test_it_only_reads(serve, site, method):
    """Every other method is refused."""
    assert ask(serve(site), "/", method)[0].status in (405, 501)


@pytest.mark.parametrize(
    "raw", [b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01\x00", b"GET / HTTP/9.9\r\n\r\n", b"x" * 70000]
)
def test_garbage_is_survived(serve, site, raw):
    """A malformed request ends its own connection and nothing else."""
    url = serve(site)
    with socket.create_connection(("127.0.0.1", urlsplit(url).port), timeout=5) as connection:
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass
    assert ask(url, "/")[0].status == 200


def test_a_port_that_is_taken_is_named(serve, site):
    """The remedy is a free one."""
    port = urlsplit(serve(site)).port
    with pytest.raises(ConfigError, match=f"can't listen on 127.0.0.1 port {port}.*--port 0"):
        Server(site, "127.0.0.1", port)
