"""A real, headless Chromium, driven over its DevTools pipe: no driver, no port, no package.

with Chromium(folder) as browser:
    page = browser.open("http://127.0.0.1:8080/", width=360)
    page.value("document.title"), page.messages, page.requests
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any, Self

import pytest

from servers.programs import need

if TYPE_CHECKING:
    from pathlib import Path

_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


class Chromium:
    """A browser that is running, with a profile of its own."""

    def __init__(self, folder: Path) -> None:
        """Start it; its profile goes to `folder`."""
        found = filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome")))
        program = next(found, None) or need("chromium", "chromium")
        here_read, there_write = os.pipe()
        there_read, here_write = os.pipe()
        self._out, self._in = here_write, here_read
        self._buffer = b""
        self._number = 0
        self._events: list[dict[str, Any]] = []

        def wire() -> None:
            # Chromium reads from descriptor 3 and writes to 4.
            for source, target in ((os.dup(there_read), 3), (os.dup(there_write), 4)):
                os.dup2(source, target)

        self._process = subprocess.Popen(
            [program, *_OPTIONS, f"--user-data-dir={folder}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=wire,  # noqa: PLW1509 - nothing else puts descriptors in their places
            close_fds=False,
            start_new_session=True,
        )
        os.close(there_read)
        os.close(there_write)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._out)
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(5)
        os.close(self._in)

    def open(
        self, url: str, *, width: int = 1200, height: int = 900, dark: bool = False, script: bool = True
    ) -> Page:
        """Open a page in a window of that size and wait until it has loaded."""
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        page.call("Emulation.setScriptExecutionDisabled", value=not script)
        page.go(url)
        return page

    def call(self, method: str, params: dict[str, Any] | None = None, session: str = "") -> dict[str, Any]:
        """Call a method of the DevTools protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params or {}}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answer = self._wait(lambda got: got.get("id") == message["id"])
        assert "error" not in answer, answer
        return answer["result"]

    def wait_for(self, event: str, session: str) -> dict[str, Any]:
        """Wait for an event of a page, or take it if it has come already."""
        for number, got in enumerate(self._events):
            if got["method"] == event and got.get("sessionId") == session:
                return self._events.pop(number)
        return self._wait(lambda got: got.get("method") == event and got.get("sessionId") == session)

    def events(self, event: str, session: str) -> list[dict[str, Any]]:
        """Return what has come so far of one kind of event of a page."""
        mine = (got for got in self._events if got.get("sessionId") == session)
        return [got["params"] for got in mine if got["method"] == event]

    def _wait(self, wanted: Any, seconds: float = 30) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            while b"\0" in self._buffer:
                raw, _, self._buffer = self._buffer.partition(b"\0")
                got = json.loads(raw)
                if wanted(got):
                    return got
                if "method" in got:
                    self._events.append(got)
            if select.select([self._in], [], [], 0.5)[0]:
                chunk = os.read(self._in, 1 << 20)
                assert chunk, "Chromium has ended"
                self._buffer += chunk
        pytest.fail("Chromium does not answer")


class Page:
    """One page of the browser."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol on this page."""
        return self._browser.call(method, params, self._session)

    def go(self, url: str) -> None:
        """Go to an address and wait until it has loaded."""
        self.call("Page.navigate", url=url)
        self._browser.wait_for("Page.loadEventFired", self._session)

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    @property
    def messages(self) -> list[str]:
        """Return all that was written to the console, by the page or by the browser."""
        calls = self._browser.events("Runtime.consoleAPICalled", self._session)
        entries = self._browser.events("Log.entryAdded", self._session)
        thrown = self._browser.events("Runtime.exceptionThrown", self._session)
        return [
            *(" ".join(str(arg.get("value")) for arg in call["args"]) for call in calls),
            *(entry["entry"]["text"] for entry in entries),
            *(str(details["exceptionDetails"]["text"]) for details in thrown),
        ]

    @property
    def requests(self) -> list[str]:
        """Return the address of every request that the page has made."""
        return [
            event["request"]["url"]
            for event in self._browser.events("Network.requestWillBeSent", self._session)
        ]

    def picture(self, path: Path) -> None:
        """Save a picture of the whole page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))
