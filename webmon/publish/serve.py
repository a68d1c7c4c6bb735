"""A small read-only server of the site folder: for a look without nginx, the demo, and `fetch_num`."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from webmon.errors import ConfigError
from webmon.publish import past, states
from webmon.publish.requests import wanted

if TYPE_CHECKING:
    import socket
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
_BODY_HEADERS = ("Content-Length", "Transfer-Encoding")

_MOST_CLIENTS = 500
_REQUEST_S = 15.0  # a request has to be here by then, and a connection may wait so long for the next one
_ANSWER_S = 120.0  # an answer has to be taken by then

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

    def __init__(self, site: Path, address: str, port: int, data: Path | None = None) -> None:
        """Bind to the address; ConfigError if that can't be done. `fetch_num` needs the data folder."""
        self.site, self.data = site, data
        # The past is read by one request at a time: its memory is that of one answer.
        self.past_is_read = threading.Lock()
        self._places = threading.BoundedSemaphore(_MOST_CLIENTS)
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

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a client; with too many of them, turn it away."""
        if self._places.acquire(timeout=1):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer a client, and give its place to the next one."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

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

    def setup(self) -> None:
        """Read requests with a deadline for each as a whole, not for each of its bytes."""
        super().setup()
        self._requests = _Requests(self.connection)
        self.rfile = io.BufferedReader(self._requests)

    def handle_one_request(self) -> None:
        """Read a request and answer it."""
        self._requests.deadline = time.monotonic() + _REQUEST_S
        super().handle_one_request()

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
        try:
            asked = wanted(self.path)
            found = _read(self.server.site, asked.path) if asked else None
            if found is None:
                self._refuse(HTTPStatus.NOT_FOUND, "not found", with_body=with_body)
                return
            name, content = found
            if asked and asked.samples and self.server.data:
                with self.server.past_is_read:
                    content = past.with_samples(content, self.server.data, asked.samples).encode()
        except ValueError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error), with_body=with_body)
            return
        etag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
        immutable = name.parts[:1] == ("assets",)
        extra = {
            "ETag": etag,
            "Cache-Control": "public, max-age=31536000, immutable" if immutable else "no-cache",
        }
        if etag in (self.headers.get("If-None-Match") or ""):
            self._send(HTTPStatus.NOT_MODIFIED, b"", "", with_body=False, extra=extra)
            return
        self._send(HTTPStatus.OK, content, _type(name), with_body=with_body, extra=extra)

    def _refuse(self, code: HTTPStatus, info: str, *, with_body: bool) -> None:
        """Answer a program with JSON, anybody else with a line of text."""
        if self.path.startswith("/states"):
            self._send(code, states.error(code, info).encode(), _TYPES[".json"], with_body=with_body)
        else:
            self.send_error(code)

    def _send(
        self, code: int, content: bytes, kind: str, *, with_body: bool, extra: dict[str, str] | None = None
    ) -> None:
        self.send_response(code)
        if code != HTTPStatus.NOT_MODIFIED:
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
        for name, value in {**_HEADERS, **(extra or {})}.items():
            self.send_header(name, value)
        # A body, which nobody here reads, would be taken for the next request.
        has_body = any(name in (getattr(self, "headers", None) or ()) for name in _BODY_HEADERS)
        if code >= HTTPStatus.BAD_REQUEST or has_body:
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        self.connection.settimeout(_ANSWER_S)
        if with_body:
            self.wfile.write(content)


class _Requests(io.RawIOBase):
    """What a client sends, until the deadline."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.deadline = 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(max(0.001, self.deadline - time.monotonic()))
        return self._connection.recv_into(buffer)


def _type(name: PurePosixPath) -> str:
    """Return a file's content type; those without an ending, and of the hosts, are metrics."""
    if name.suffix == ".metrics" or name.name in ("metrics", "metrics-dcgm"):
        return _METRICS_TYPE
    return _TYPES.get(name.suffix, "application/octet-stream")


def _read(site: Path, path: str) -> tuple[PurePosixPath, bytes] | None:
    """Return a file of the site; None for whatever is not one: links out of it, folders."""
    name = PurePosixPath(*(part for part in path.split("/") if part))
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
