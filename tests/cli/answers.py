"""Servers that answer what no web server of webmon's pages does."""

from __future__ import annotations

import socket
import threading
import time
from typing import Self


class Answering:
    """A server on loopback that says these very bytes to whoever asks, and closes the connection.

    `pause` seconds pass between two of the parts; after the last one it hangs if `hangs`.
    """

    def __init__(self, *parts: bytes, pause: float = 0, hangs: bool = False) -> None:
        self._parts, self._pause, self._hangs = parts, pause, hangs
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/gpus/"
        self.asked: list[str] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        socket.create_connection(self._listener.getsockname()).close()  # accept() does not end by itself
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection:
                if self._ended.is_set():
                    return
                self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        try:
            asked = b""
            while b"\r\n\r\n" not in asked and (chunk := connection.recv(65536)):
                asked += chunk
            self.asked.append(asked.decode(errors="replace"))
            for part in self._parts:
                connection.sendall(part)
                time.sleep(self._pause)
            if self._hangs:
                self._ended.wait(60)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        except OSError:
            pass  # it has had enough


def answer(body: bytes, *headers: str, status: str = "200 OK", kind: str = "application/json") -> bytes:
    """Return an answer as a web server gives it."""
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}", *headers]
    return "".join(f"{line}\r\n" for line in [*lines, "Connection: close", ""]).encode("latin-1") + body
