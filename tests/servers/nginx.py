"""A real nginx on loopback, with what a test puts into its `server { … }`."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from servers import processes
from servers.programs import need

if TYPE_CHECKING:
    from pathlib import Path

_CONFIG = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
{user}
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{http}
    server {{
        listen 127.0.0.1:{port};
        server_name localhost;
        root {folder}/root;
{server}
    }}
}}
"""


@dataclass
class Answer:
    """What nginx has sent; the names of the headers are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes


class Nginx:
    """An nginx that is running, as whoever runs the tests."""

    def __init__(self, folder: Path, server: str, http: str = "") -> None:
        """Start it; its files go to `folder`, and `folder`/root is what it serves by default."""
        self.folder = folder
        (folder / "root").mkdir(parents=True, exist_ok=True)
        self._server, self._http = server, http
        self._process: subprocess.Popen[bytes] | None = None
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def get(self, target: str, method: str = "GET", body: bytes | None = None, **headers: str) -> Answer:
        """Ask for a target, which is sent as it is; `if_none_match=` is a header."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, target, body, named)
            response = connection.getresponse()
            received: dict[str, str] = {}
            for name, value in response.getheaders():
                before = received.get(name.lower())
                received[name.lower()] = value if before is None else f"{before}; AND {value}"
            return Answer(response.status, received, response.read())
        finally:
            connection.close()

    def log(self) -> str:
        """Return its complaints."""
        return (self.folder / "error.log").read_text(errors="replace")

    def stop(self) -> None:
        """End it, with its worker."""
        if self._process is None:
            return
        processes.end(self._process)
        self._process = None

    def _start(self) -> None:
        program = need("nginx", "nginx-light")
        log = self.folder / "error.log"
        for _ in range(5):
            log.write_text("")
            self.port = _free_port()
            # Its worker has to see the temporary folder, which nobody else may.
            user = "user root;" if os.geteuid() == 0 else ""
            config = self.folder / "nginx.conf"
            config.write_text(
                _CONFIG.format(
                    folder=self.folder, port=self.port, user=user, http=self._http, server=self._server
                )
            )
            self._process = subprocess.Popen(
                [program, "-p", self.folder, "-e", log, "-c", config],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            if self._is_listening():
                return
            self.stop()
            if "Address already in use" not in self.log():
                break
        raise RuntimeError(f"nginx does not start:\n{self.log()}")

    def _is_listening(self) -> bool:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            if self._process is None or self._process.poll() is not None:
                return False
            # It writes this once it has its port.
            if (self.folder / "nginx.pid").exists():
                return True
            time.sleep(0.01)
        return False


def with_past(block: str, port: int) -> str:
    """Do what the printed block says for fetch_num: take away the # before nine lines."""
    before, said, rest = block.partition("take away the # before these nine lines:\n")
    lines = rest.splitlines(keepends=True)
    assert said
    assert all(line.startswith("    # ") for line in lines[:9])
    uncommented = "".join(line.replace("# ", "", 1) for line in lines[:9])
    assert uncommented.count("127.0.0.1:8080;") == 1
    return before + said + uncommented.replace(":8080;", f":{port};") + "".join(lines[9:])


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
