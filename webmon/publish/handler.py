"""How `webmon serve` answers a request: with a file of the site, or with samples of the past."""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import socket
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

from webmon.errors import DataError
from webmon.publish import past, states
from webmon.publish.requests import is_from_a_program, wanted
from webmon.publish.served import content_type, open_file

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

    from webmon.publish.requests import Wanted
    from webmon.publish.serve import Server

_BODY_HEADERS = ("Content-Length", "Transfer-Encoding")

_MOST_BYTES = 65536  # of a request
_REQUEST_S = 15.0  # a request has to be here by then, and a connection may wait so long for the next one
_ANSWER_S = 120.0  # an answer has to be taken by then
_LEAVE_S = 1.0  # for whoever is refused, to read why
_PIECE = 65536

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Handler(BaseHTTPRequestHandler):
    """One client, and its requests one after the other."""

    server: Server
    protocol_version = "HTTP/1.1"
    server_version = "webmon"
    sys_version = ""

    def setup(self) -> None:
        """Read requests with a deadline for each as a whole, not for each of its bytes."""
        super().setup()
        self._requests = _Requests(self.connection)
        self.rfile = io.BufferedReader(self._requests)
        self._is_refused = False

    def handle_one_request(self) -> None:
        """Read a request and answer it."""
        self._requests.expect()
        self.requestline = self.command = self.path = ""
        try:
            super().handle_one_request()
        except _TooLongError:
            self.send_error(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)

    def finish(self) -> None:
        """End the connection; what is still coming in has to be read, or the answer would be lost with it."""
        super().finish()
        if not self._is_refused:
            return
        deadline = time.monotonic() + _LEAVE_S
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            while (left := deadline - time.monotonic()) > 0:
                self.connection.settimeout(left)
                if not self.connection.recv(_PIECE):
                    return

    def do_GET(self) -> None:
        """Send a file."""
        self._answer()

    def do_HEAD(self) -> None:
        """Send a file's headers."""
        self._answer()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that http.server gives it
        """Say nothing: requests are no news."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:  # noqa: ARG002
        """Send a short text; what was asked for is not repeated in it."""
        self.request_version = self.protocol_version  # of a line that makes no sense it is not known
        phrase = HTTPStatus(code).phrase
        self._send(code, "text/plain; charset=utf-8", f"{code} {phrase}\n".encode())

    def _answer(self) -> None:
        if self.headers.defects:  # what is a header to us may be something else to a proxy
            self.send_error(HTTPStatus.BAD_REQUEST)
            return
        try:
            asked = wanted(self.path)
            file = open_file(self.server.site, asked.path) if asked else None
            if asked is None or file is None:
                self._refuse(HTTPStatus.NOT_FOUND, "not found")
                return
            with file:
                if asked.samples and self.server.data:
                    self._answer_with_past(asked, file, self.server.data)
                else:
                    self._send_file(asked.path, file)
        except ValueError as error:
            self._refuse(HTTPStatus.BAD_REQUEST, str(error))

    def _answer_with_past(self, asked: Wanted, file: BinaryIO, data: Path) -> None:
        """Send the newest samples: few answers at once, and one after the other, as each takes memory."""
        if not self.server.past_is_sent.acquire(timeout=_REQUEST_S):
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, "too many ask for the past just now")
            return
        try:
            with self.server.past_is_read:
                content = past.with_samples(file.read(), data, asked.samples or 1).encode()
        except (OSError, DataError) as error:
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, _unreadable(error))
        else:
            etag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
            self._send_unless_known(asked.path, etag, len(content), io.BytesIO(content))
        finally:
            self.server.past_is_sent.release()

    def _send_file(self, path: str, file: BinaryIO) -> None:
        found = os.fstat(file.fileno())
        # A file is replaced, not changed, by `render`; anybody else may do as they like.
        etag = f'"{found.st_mtime_ns:x}-{found.st_size:x}-{found.st_ino:x}"'
        self._send_unless_known(path, etag, found.st_size, file)

    def _send_unless_known(self, path: str, etag: str, size: int, file: BinaryIO) -> None:
        immutable = path.startswith("assets/")
        extra = {
            "ETag": etag,
            "Cache-Control": "public, max-age=31536000, immutable" if immutable else "no-cache",
        }
        known = {tag.strip().removeprefix("W/") for tag in self.headers.get("If-None-Match", "").split(",")}
        if known & {etag, "*"}:
            self._send_head(HTTPStatus.NOT_MODIFIED, extra)
            return
        self._send_head(
            HTTPStatus.OK, {"Content-Type": content_type(path), "Content-Length": str(size), **extra}
        )
        self._send_body(file, size)

    def _refuse(self, code: HTTPStatus, info: str) -> None:
        """Answer a program with JSON, anybody else with a line of text."""
        if is_from_a_program(self.path):
            self._send(code, content_type("error.json"), states.error(code, info).encode())
        else:
            self.send_error(code)

    def _send(self, code: int, kind: str, content: bytes) -> None:
        self._send_head(code, {"Content-Type": kind, "Content-Length": str(len(content))})
        self._send_body(io.BytesIO(content), len(content))

    def _send_head(self, code: int, headers: dict[str, str]) -> None:
        self.connection.settimeout(_ANSWER_S)
        self.send_response(code)
        for name, value in {**headers, **_HEADERS}.items():
            self.send_header(name, value)
        # A body, which nobody here reads, would be taken for the next request.
        has_body = any(name in (getattr(self, "headers", None) or ()) for name in _BODY_HEADERS)
        if code >= HTTPStatus.BAD_REQUEST or has_body:
            self.send_header("Connection", "close")
            self.close_connection = self._is_refused = True
        self.end_headers()

    def _send_body(self, file: BinaryIO, size: int) -> None:
        """Send a file piece by piece: a client that takes its time has no more than one in memory."""
        if self.command == "HEAD":
            return
        deadline = time.monotonic() + _ANSWER_S
        while size > 0:
            piece = file.read(min(_PIECE, size))
            if not piece:  # somebody has cut it off; the client sees that it has not got all
                self.close_connection = True
                return
            self.connection.settimeout(max(0.001, deadline - time.monotonic()))
            self.wfile.write(piece)
            size -= len(piece)


def _unreadable(error: OSError | DataError) -> str:
    """Say what is wrong, without the path: that is nobody's business."""
    return str(error) if isinstance(error, DataError) else "the data folder can't be read"


class _TooLongError(Exception):
    """A request has more bytes than any that is meant well."""


class _Requests(io.RawIOBase):
    """What a client sends: so many bytes for a request, until its deadline."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._deadline = 0.0
        self._left = 0

    def expect(self) -> None:
        """Wait for the next request."""
        self._deadline = time.monotonic() + _REQUEST_S
        self._left = _MOST_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._left <= 0:
            raise _TooLongError
        self._connection.settimeout(max(0.001, self._deadline - time.monotonic()))
        count = self._connection.recv_into(buffer)
        self._left -= count
        return count
