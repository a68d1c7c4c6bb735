"""A real Prometheus on loopback, with a configuration of the test's."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import TYPE_CHECKING, Any, Self

from servers import processes
from servers.programs import need

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Prometheus:
    """A Prometheus that is running; `ready` waits for what it has to have scraped."""

    def __init__(self, folder: Path, config: str) -> None:
        """Start it; its files go to `folder`."""
        program = need("prometheus", "prometheus")
        folder.mkdir(parents=True, exist_ok=True)
        self.config = folder / "prometheus.yml"
        self.config.write_text(config)
        self._log = folder / "log"
        self._port = _free_port()
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [
                    program,
                    f"--config.file={self.config}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self._port}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        processes.end(self._process)

    def query(self, expression: str) -> dict[frozenset[tuple[str, str]], float]:
        """Return the value of each series, by its labels."""
        found = self._get("query", query=expression)["result"]
        values = {frozenset(one["metric"].items()): float(one["value"][1]) for one in found}
        assert len(values) == len(found)
        return values

    def by(self, label: str, expression: str) -> dict[str, float]:
        """Return the values by one label, which has to tell them apart."""
        found = {dict(labels).get(label, ""): value for labels, value in self.query(expression).items()}
        assert len(found) == len(self.query(expression))
        return found

    def targets(self) -> list[dict[str, Any]]:
        """Return what it scrapes, and how that went."""
        active: list[dict[str, Any]] = self._get("targets")["activeTargets"]
        return active

    def alerts(self) -> set[tuple[str, str]]:
        """Return which alerts there are, and for which instance; also those that are not certain yet."""
        return {
            (one["labels"]["alertname"], one["labels"].get("instance", ""))
            for one in self._get("alerts")["alerts"]
        }

    def wait(self, until: Callable[[Prometheus], bool]) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + 40
        while time.monotonic() < deadline:
            assert self._process.poll() is None, self.log()
            try:
                if until(self):
                    return
            except (urllib.error.URLError, ConnectionError, http.client.HTTPException):
                pass  # it has not opened its port yet, or not yet read its data
            time.sleep(0.1)
        raise AssertionError(f"it did not come to that:\n{self.log()}")

    def log(self) -> str:
        """Return what it has said."""
        return self._log.read_text(errors="replace")

    def _get(self, what: str, **arguments: str) -> dict[str, Any]:
        address = f"http://127.0.0.1:{self._port}/api/v1/{what}?{urllib.parse.urlencode(arguments)}"
        with urllib.request.urlopen(address, timeout=10) as answer:
            data: dict[str, Any] = json.load(answer)["data"]
        return data


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port
