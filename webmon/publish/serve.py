"""A small read-only server of the site folder: for a look without nginx, the demo, and `fetch_num`."""

from __future__ import annotations

import threading
from http.server import ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from webmon.errors import ConfigError
from webmon.publish.handler import Handler

if TYPE_CHECKING:
    from pathlib import Path

_MOST_CLIENTS = 500
_MOST_OF_THE_PAST = 3  # answers to fetch_num that are in memory at once


class Server(ThreadingHTTPServer):
    """Serves one site folder."""

    daemon_threads = True
    request_queue_size = _MOST_CLIENTS

    def __init__(self, site: Path, address: str, port: int, data: Path | None = None) -> None:
        """Bind to the address; ConfigError if that can't be done. `fetch_num` needs the data folder."""
        self.site, self.data = site, data
        self.past_is_read = threading.Lock()
        self.past_is_sent = threading.BoundedSemaphore(_MOST_OF_THE_PAST)
        self._places = threading.BoundedSemaphore(_MOST_CLIENTS)
        if ":" in address:
            import socket

            self.address_family = socket.AF_INET6
        try:
            super().__init__((address, port), Handler)
        except (OSError, UnicodeError) as error:
            raise ConfigError(
                f"can't listen on {address} port {port}: {getattr(error, 'strerror', None) or error}",
                "Take another one: --port 0 finds a free port",
            ) from None

    def server_bind(self) -> None:
        """Bind, without asking a name server what this machine is called."""
        import socketserver

        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a client; with too many of them, turn it away."""
        if not self._places.acquire(timeout=1):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread could be started
            self._places.release()
            raise

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
