"""A real, headless Chromium, driven over its DevTools pipe: no driver, no port, no package.

with Chromium(folder) as browser:
    page = browser.open("http://127.0.0.1:8080/", width=360)
    page.value("document.title"), page.messages, page.requests

It reaches this machine only. Every name in .lab is this machine too: a page at http://gpu.lab:8080/ is from
an origin that browsers, unlike 127.0.0.1, don't trust, as in a lab without certificates.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Self

import pytest

from servers.page import Page, RefusedError
from servers.programs import need

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# What only a person at the browser would see. Every window loaded the list of suggestions below its address
# bar, twice, as pages in a renderer of their own: more work than the page that a test looks at.
_NOT_NEEDED = (
    "WebUIOmniboxPopup",
    "WebUIOmniboxFullPopup",
    "WebUIOmniboxAimPopup",
    "PreloadTopChromeWebUI",
    "SpareRendererForSitePerProcess",  # one that is started ahead, for a page that never comes
)

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
    f"--disable-features={','.join(_NOT_NEEDED)}",
    "--hide-scrollbars",
    # A mouse, which the machine that runs the tests may lack: (hover: hover) and (pointer: fine).
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
    "--no-proxy-server",
    "--host-resolver-rules=MAP *.lab 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE localhost, EXCLUDE 127.*",
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
        os.set_blocking(here_write, False)
        self._out, self._in = here_write, here_read
        self._unsent = bytearray()
        self._begun: list[bytes] = []
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self._events: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
        self._pages: list[Page] = []

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
        self,
        url: str,
        *,
        width: int = 1200,
        height: int = 900,
        dark: bool = False,
        touch: bool = False,
        script: bool = True,
        before: str = "",
    ) -> Page:
        """Open a page in a window of that size and wait until it has loaded; `before` is run ahead of it."""
        # A window for each page: a page behind another one would be hidden.
        target = self.call("Target.createTarget", {"url": "about:blank", "newWindow": True})["targetId"]
        session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"]
        page = Page(self, target, session, touch=touch)
        self._pages.append(page)
        for domain in ("Inspector", "Page", "Runtime", "Log", "Network", "Performance"):
            page.call(f"{domain}.enable")
        page.call("Page.setLifecycleEventsEnabled", enabled=True)
        page.resize(width, height)
        page.media(dark=dark)
        page.call("Emulation.setTouchEmulationEnabled", enabled=touch)
        page.call("Emulation.setScriptExecutionDisabled", value=not script)
        page.call("Page.addScriptToEvaluateOnNewDocument", source=before)
        page.go(url)
        return page

    def close(self, page: Page) -> None:
        """Close a page, and forget it."""
        self._pages.remove(page)
        self.call("Target.closeTarget", {"targetId": page.target})
        self.forget(page.session)

    def close_pages(self) -> None:
        """Close all pages."""
        for page in tuple(self._pages):
            self.close(page)

    def call(self, method: str, params: dict[str, Any] | None = None, session: str = "") -> dict[str, Any]:
        """Call a method of the DevTools protocol and return its result."""
        number = self._send(method, params or {}, session)
        self._wait(lambda: number in self._answers, f"to {method}", session)
        answer = self._answers.pop(number)
        if "error" in answer:
            raise RefusedError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def wait_for(self, event: str, session: str, wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Wait for an event of a page that may have come already."""
        came = self._events[session][event]
        self._wait(lambda: any(map(wanted, came)), f"with {event}", session)

    def events(self, event: str, session: str) -> list[dict[str, Any]]:
        """Return what has come so far of one kind of event of a page."""
        return self._events[session][event]

    def forget(self, session: str) -> None:
        """Forget the events of a page."""
        self._events.pop(session, None)

    def _wait(self, done: Callable[[], bool], what: str, session: str, seconds: float = 30) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            if "Inspector.targetCrashed" in self._events[session]:
                pytest.fail("the page has crashed")
            if time.monotonic() > deadline:
                pytest.fail(f"Chromium does not answer {what}")
            self._exchange()

    def _send(self, method: str, params: dict[str, Any], session: str) -> int:
        """Put a message in line, and return its number."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        self._unsent += json.dumps(message).encode() + b"\0"
        return self._number

    def _exchange(self) -> None:
        """Write and read what can be written and read now; messages may be larger than the pipe."""
        readable, writable, _ = select.select([self._in], [self._out] if self._unsent else [], [], 0.5)
        if writable:
            del self._unsent[: os.write(self._out, self._unsent)]
        if readable:
            chunk = os.read(self._in, 1 << 20)
            assert chunk, "Chromium has ended"
            *ends, rest = chunk.split(b"\0")
            for end in ends:
                self._take(json.loads(b"".join((*self._begun, end))))
                self._begun.clear()
            self._begun.append(rest)

    def _take(self, got: dict[str, Any]) -> None:
        if "id" in got:
            self._answers[got["id"]] = got
            return
        session, method, params = got.get("sessionId", ""), got["method"], got["params"]
        self._events[session][method].append(params)
        if method == "Page.javascriptDialogOpening":
            # Nobody is there to answer: a page may be left, whatever else is asked is not wanted.
            answer = {"accept": params["type"] == "beforeunload"}
            self._send("Page.handleJavaScriptDialog", answer, session)
