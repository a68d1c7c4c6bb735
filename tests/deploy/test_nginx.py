"""The location for nginx, in a real nginx: at the top of a server, in a folder, in a nested one."""

from __future__ import annotations

import gzip
import os
from typing import TYPE_CHECKING, NamedTuple

import pytest
from servers.command import webmon
from servers.nginx import Answer, Nginx
from servers.settings import write_config

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
TYPES = {
    "": "text/html; charset=utf-8",
    "index.html": "text/html; charset=utf-8",
    "users.html": "text/html; charset=utf-8",
    "hosts/gpu01.html": "text/html; charset=utf-8",
    "hosts/gpu01.txt": "text/plain; charset=utf-8",
    "term.txt": "text/plain; charset=utf-8",
    "term.ansi": "text/plain; charset=utf-8",
    "snapshot.json": "application/json; charset=utf-8",
    "states/index.json": "application/json; charset=utf-8",
    "states/gpu01/index.json": "application/json; charset=utf-8",
    "gpus.csv": "text/csv; charset=utf-8",
    "metrics": METRICS_TYPE,
    "assets/style.0123abcd.css": "text/css; charset=utf-8",
    "assets/site.0123456789ab.js": "text/javascript; charset=utf-8",
    "assets/favicon.0123abcd.svg": "image/svg+xml; charset=utf-8",
    "assets/favicon.ico": "image/x-icon",
    "assets/mark.0123abcd.png": "image/png",
}
IMMUTABLE = [name for name in TYPES if "0123" in name]
REVALIDATED = [name for name in TYPES if "0123" not in name]
SECURITY = {
    "content-security-policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
}
SECRET = b"not on the site"

# What others have in their servers, all of it in the way.
SURROUNDINGS = """
    types { text/x-wrong html css js json csv txt; }
    default_type application/octet-stream;
    open_file_cache max=100 inactive=60s;
    open_file_cache_min_uses 1;
"""
NEIGHBOURS = r"""
    autoindex on;
    index nothing.php;
    charset koi8-r;
    expires 30d;
    etag off;
    gzip off;
    add_header Cache-Control "max-age=3600" always;
    location ~ \.(html|css|js|json|csv|txt|php)$ { return 418; }
    location ~ metrics$ { return 418; }
"""


class Served(NamedTuple):
    nginx: Nginx
    path: str
    site: Path

    def get(self, name: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
        return self.nginx.get(self.path + name, method, body, **headers)


def make_site(folder: Path) -> None:
    names = [name for name in TYPES if name]
    for name in [*names, ".manifest", "hosts/.hidden.html", ".git/config"]:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content(name))


def content(name: str) -> bytes:
    return f"{name or 'index.html'} ü\n".encode() * 100


def block(folder: Path, site: Path, *arguments: str) -> str:
    config = write_config(folder, {"hosts": ["gpu01"]}, site={"dir": str(site)})
    result = webmon("deploy", "nginx", "-c", config, *arguments)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout


@pytest.fixture(scope="module", params=["/", "/gpus/", "/lab/gpus/", "/gpus/ among others"])
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A site in a folder with a space in its name."""
    path, _, others = request.param.partition(" ")
    folder = tmp_path_factory.mktemp("nginx")
    site = folder / "the site; of {a lab}"
    make_site(site)
    (folder / "secret.txt").write_bytes(SECRET)
    server = block(folder, site, "--path", path)
    if others:
        snippet = folder / "webmon.conf"
        snippet.write_text(server)
        server = f"{NEIGHBOURS}\n include {snippet};"
    with Nginx(folder / "nginx", server, SURROUNDINGS if others else "") as nginx:
        yield Served(nginx, path, site)
        assert "[warn]" not in nginx.log()
        assert "[emerg]" not in nginx.log()


@pytest.mark.parametrize("name", TYPES)
def test_every_file_has_its_type(served: Served, name: str):
    """Every kind of file is there, with its own content type, and text is UTF-8."""
    answer = served.get(name)
    assert answer.status == 200
    assert answer.headers["content-type"] == TYPES[name]
    assert answer.body == content(name)


@pytest.mark.parametrize("name", REVALIDATED)
def test_what_changes_is_asked_for_again(served: Served, name: str):
    """A page is never taken from a cache unasked."""
    headers = served.get(name).headers
    assert headers["cache-control"] == "no-cache"
    assert "expires" not in headers


@pytest.mark.parametrize("name", IMMUTABLE)
def test_what_is_named_by_its_content_is_kept(served: Served, name: str):
    """An asset with a hash in its name is never asked for again."""
    headers = served.get(name).headers
    assert headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "expires" not in headers


def test_a_missing_asset_is_not_kept(served: Served):
    """That an asset is not there is not remembered for a year."""
    answer = served.get("assets/style.99999999.css")
    assert answer.status == 404
    assert "immutable" not in answer.headers.get("cache-control", "")
    assert "max-age" not in answer.headers.get("cache-control", "")


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("encoding", ["identity", "gzip"])
def test_a_reload_costs_nothing(served: Served, name: str, encoding: str):
    """With the ETag or the time that came with it, an unchanged file is answered with 304 and no body."""
    first = served.get(name, accept_encoding=encoding)
    for condition in (
        {"if_none_match": first.headers["etag"]},
        {"if_modified_since": first.headers["last-modified"]},
    ):
        again = served.get(name, accept_encoding=encoding, **condition)
        assert (again.status, again.body) == (304, b"")
        assert again.headers["cache-control"] == first.headers["cache-control"]


def test_a_new_version_is_there_at_once(served: Served):
    """A file that was replaced is sent, whatever the browser and nginx have kept of the old one."""
    page = served.site / "changing.html"
    page.write_bytes(b"old")
    old = served.get(page.name)
    fresh = served.site / ".changing.html.new"
    fresh.write_bytes(b"newer")
    fresh.replace(page)
    new = served.get(page.name, if_none_match=old.headers["etag"])
    assert (old.body, new.status, new.body) == (b"old", 200, b"newer")


@pytest.mark.parametrize("name", [name for name, kind in TYPES.items() if "charset" in kind])
def test_text_is_compressed(served: Served, name: str):
    """Text is compressed for those who can take it, behind a proxy too, and caches are told so."""
    answer = served.get(name, accept_encoding="gzip", via="1.1 proxy.example")
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.headers["vary"] == "Accept-Encoding"
    assert answer.headers["content-type"] == TYPES[name]
    assert gzip.decompress(answer.body) == content(name)
    assert "content-encoding" not in served.get(name).headers


def test_pictures_are_not_compressed_twice(served: Served):
    """A PNG is sent as it is."""
    assert "content-encoding" not in served.get("assets/mark.0123abcd.png", accept_encoding="gzip").headers


@pytest.mark.parametrize(
    ("name", "method", "status"),
    [
        ("", "GET", 200),
        ("metrics", "GET", 200),
        ("assets/style.0123abcd.css", "GET", 200),
        ("term.txt", "HEAD", 200),
        ("nothing.html", "GET", 404),
        ("assets/nothing.0123abcd.css", "GET", 404),
        (".manifest", "GET", 404),
        ("index.html", "POST", 405),
        ("assets/", "GET", 403),
        ("hosts", "GET", 301),
    ],
)
def test_security_headers_are_on_every_answer(served: Served, name: str, method: str, status: int):
    """Also an error comes with the policy that nothing is loaded from elsewhere."""
    answer = served.get(name, method)
    assert answer.status == status
    assert {header: answer.headers.get(header) for header in SECURITY} == SECURITY


def test_security_headers_are_on_304_too(served: Served):
    """A browser replaces the stored headers by those of a 304: they must not go missing there."""
    answer = served.get("", if_none_match=served.get("").headers["etag"])
    assert answer.status == 304
    assert {header: answer.headers.get(header) for header in SECURITY} == SECURITY


@pytest.mark.parametrize(
    "name",
    [".manifest", "%2emanifest", "./.manifest", "hosts/.hidden.html", ".git/config", ".git/", ".git",
     "hosts/../.manifest", "//.manifest"],
)  # fmt: skip
def test_dotfiles_are_not_there(served: Served, name: str):
    """webmon's own files are not served, nor is it told that they are there."""
    assert served.get(name).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"])
@pytest.mark.parametrize("name", ["", "index.html", "metrics", "assets/style.0123abcd.css", "new.html"])
def test_nothing_can_be_sent(served: Served, name: str, method: str):
    """Only GET and HEAD are answered."""
    assert served.get(name, method, b"x").status == 405
    assert not (served.site / "new.html").exists()


def test_head_has_no_body(served: Served):
    """HEAD tells of a file as GET does."""
    got, head = served.get("gpus.csv"), served.get("gpus.csv", "HEAD")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["etag"] == got.headers["etag"]
    assert head.headers["content-length"] == got.headers["content-length"]


@pytest.mark.parametrize(
    "way",
    ["../secret.txt", "%2e%2e/secret.txt", "..%2fsecret.txt", "hosts/../../secret.txt", "..;/secret.txt",
     "hosts/%2e%2e%2f%2e%2e%2fsecret.txt", "..%5csecret.txt", "/../secret.txt", "..//secret.txt"],
)  # fmt: skip
def test_no_way_leads_out(served: Served, way: str):
    """Files beside the site folder are out of reach."""
    for target in (served.path + way, served.path.rstrip("/") + way, served.path.rstrip("/") + "/" + way):
        answer = served.nginx.get(target if target.startswith("/") else f"/{target}")
        assert SECRET not in answer.body
        assert answer.status in (400, 404, 418)


def test_folders_are_not_listed(served: Served):
    """A folder without a page says nothing of what is in it."""
    for name in ("assets/", "hosts/"):
        answer = served.get(name)
        assert answer.status == 403
        assert b"gpu01" not in answer.body


def test_the_slash_may_be_left_out(served: Served):
    """A path without its slash is sent on, by a way that is right behind any other host and port."""
    names = ["hosts"] + ([""] if served.path != "/" else [])
    for name in names:
        target = (served.path + name).rstrip("/")
        answer = served.nginx.get(target, host="behind.example:8443")
        assert (answer.status, answer.headers["location"]) == (301, f"{target}/")


@pytest.mark.parametrize("served", ["/gpus/", "/lab/gpus/", "/gpus/ among others"], indirect=True)
def test_the_rest_of_the_server_stays_as_it_is(served: Served):
    """Other paths are none of the site's business, names that start like it included."""
    (served.nginx.folder / "root" / "hello").write_text("hello")
    assert served.nginx.get("/hello").body == b"hello"
    assert "content-security-policy" not in served.nginx.get("/hello").headers
    assert served.nginx.get(served.path.rstrip("/") + "x/index.html").status in (404, 418)
    assert served.nginx.get("/").body != content("index.html")


@pytest.mark.parametrize("path", ["gpus", "/gpus", "gpus/", "/gpus/"])
def test_slashes_of_the_path_do_not_matter(tmp_path: Path, path: str):
    """--path is the same with and without its slashes."""
    assert block(tmp_path, tmp_path / "site", "--path", path) == block(tmp_path, tmp_path / "site")


@pytest.mark.parametrize(
    "path", ["/a b/", "/a;b/", "/{}/", "/a//b/", "/../", "/.hidden/", '/"/', "/$x/", "/ü/"]
)
def test_a_path_that_nginx_would_misread_is_refused(refused: Callable[..., str], path: str):
    """What could end the line, or be a variable, is an error that says what is allowed."""
    assert "/lab/gpus/" in refused("nginx", "--path", path)


@pytest.mark.parametrize("name", ["a$b", 'a"b', "a\\b"])
def test_a_folder_that_nginx_could_not_name_is_refused(
    refused: Callable[..., str], tmp_path: Path, name: str
):
    """nginx has no way to write some names; better no text than a wrong one."""
    assert "another" in refused("nginx", site={"dir": str(tmp_path / name)})


def test_the_site_is_named_by_its_real_place(tmp_path: Path):
    """A relative folder is relative to the configuration, wherever the command is run."""
    text = block(tmp_path, "../elsewhere/site")
    assert f'alias "{os.path.realpath(tmp_path.parent)}/elsewhere/site/";' in text
