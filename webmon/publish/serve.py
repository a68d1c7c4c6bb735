"""A small read-only server of the site folder: for a look without nginx, and for the demo."""

from __future__ import annotations

import hashlib
import os
import stat
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from webmon.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".png": "image/png",
    ".csv": "text/csv; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".ansi": "text/plain; charset=utf-8",
}
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Server(ThreadingHTTPServer):
    """Serves one site folder."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, site: Path, address: str, port: int) -> None:
        """Bind to the address; ConfigError if that can't be done."""
        self.site = site
        if ":" in address:
            import socket

            self.address_family = socket.AF_INET6
        try:
            super().__init__((address, port), _Handler)
        except OSError as error:
            raise ConfigError(
                f"can't listen on {address} port {port}: {error.strerror or error}",
                "Take another one: --port 0 finds a free port",
            ) from None

    def server_bind(self) -> None:
        """Bind, without asking a name server what this machine is called."""
        import socketserver

        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over clients that go away in the middle."""

    @property
    def url(self) -> str:
        """Return where the site is."""
        address, port = self.server_address[:2]
        shown = f"[{address!s}]" if ":" in str(address) else str(address)
        return f"http://{shown}:{port}/"


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "webmon"
    sys_version = ""
    timeout = 15

    def do_GET(self) -> None:
        """Send a file."""
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        """Send a file's headers."""
        self._answer(with_body=False)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server gives it
        """Say nothing: requests are no news."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Send a short text; what was asked for is not repeated in it."""
        phrase = HTTPStatus(code).phrase
        self._send(
            code, f"{code} {phrase}\n".encode(), "text/plain; charset=utf-8", with_body=self.command != "HEAD"
        )

    def _answer(self, *, with_body: bool) -> None:
        found = _read(self.server.site, self.path)
        if found is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        name, content = found
        etag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
        immutable = name.parts[:1] == ("assets",)
        extra = {
            "ETag": etag,
            "Cache-Control": "public, max-age=31536000, immutable" if immutable else "no-cache",
        }
        if etag in (self.headers.get("If-None-Match") or ""):
            self._send(HTTPStatus.NOT_MODIFIED, b"", "", with_body=False, extra=extra)
            return
        kind = (
            _METRICS_TYPE if name.name == "metrics" else _TYPES.get(name.suffix, "application/octet-stream")
        )
        self._send(HTTPStatus.OK, content, kind, with_body=with_body, extra=extra)

    def _send(
        self, code: int, content: bytes, kind: str, *, with_body: bool, extra: dict[str, str] | None = None
    ) -> None:
        self.send_response(code)
        if code != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
        for name, value in {**_HEADERS, **(extra or {})}.items():
            self.send_header(name, value)
        if code >= HTTPStatus.BAD_REQUEST:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        if with_body:
            self.wfile.write(content)


def _read(site: Path, target: str) -> tuple[PurePosixPath, bytes] | None:
    """Return a file of the site; None for whatever is not one: dotfiles, links out of it, folders."""
    path = unquote(urlsplit(target).path, errors="replace")
    parts = [part for part in path.split("/") if part]
    if "\x00" in path or any(part.startswith(".") for part in parts):
        return None
    if path.endswith("/"):
        parts.append("index.html")
    name = PurePosixPath(*parts)
    real = os.path.realpath(site / name)
    if not real.startswith(os.path.realpath(site) + os.sep):
        return None
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            return name, file.read()
    except OSError:
        return None
