"""A page of the browser, as it is seen, and what is around it."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from servers.hands import Hands

if TYPE_CHECKING:
    from pathlib import Path

    from servers.chromium import Chromium

_FOCUSED = """(element => {
  if (!element || element === document.body) return 'body';
  const tag = element.localName;
  if (element.id) return `${tag}#${element.id}`;
  const text = (element.getAttribute('aria-label') || element.innerText || '').trim().slice(0, 40);
  return [tag, ...element.classList].join('.') + (text && ` ${JSON.stringify(text)}`);
})(document.activeElement)"""


class RefusedError(AssertionError):
    """Chromium has answered with an error."""


class Page(Hands):
    """One page, in a window of its own."""

    def __init__(self, browser: Chromium, target: str, session: str, *, touch: bool) -> None:
        self._browser = browser
        self._touch = touch
        self.target = target
        self.session = session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the DevTools protocol on this page."""
        return self._browser.call(method, params, self.session)

    def go(self, url: str) -> None:
        """Go to an address and wait until it has loaded."""
        answer = self.call("Page.navigate", url=url)
        assert "errorText" not in answer, f"{url}: {answer['errorText']}"
        # There is no loader when only the part after the # is another.
        if loader := answer.get("loaderId"):
            self._browser.wait_for(
                "Page.lifecycleEvent",
                self.session,
                lambda event: event["loaderId"] == loader and event["name"] == "load",
            )

    def close(self) -> None:
        """Close the page."""
        self._browser.close(self)

    def value(self, expression: str) -> Any:
        """Return the value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RefusedError(f"{expression}: {_thrown(result['exceptionDetails'])}")
        return result["result"].get("value")

    def until(self, expression: str, seconds: float = 5) -> Any:
        """Wait until a JavaScript expression is true, and return its value; to throw is not to be true."""
        deadline = time.monotonic() + seconds
        while True:
            try:
                last = self.value(expression)
            except RefusedError as error:
                last = error
            else:
                if last:
                    return last
            if time.monotonic() > deadline:
                pytest.fail(f"after {seconds} s, {expression} is still {last!r}")
            time.sleep(0.02)

    def text(self, selector: str) -> str:
        """Return the text of the first of the elements that is seen."""
        found = self.texts(selector)
        assert found, f"{selector}: nothing that matches is seen"
        return found[0]

    def texts(self, selector: str) -> list[str]:
        """Return the texts of those elements that are seen."""
        return self.value(f"{_seen(selector)}.map(element => element.innerText)")

    def count_visible(self, selector: str) -> int:
        """Return how many of the elements are seen, or would be after scrolling."""
        return self.value(f"{_seen(selector)}.length")

    @property
    def focused(self) -> str:
        """Return what has the focus: `button#theme`, or without id `a.host "gpu01"`; `body` for nothing."""
        return self.value(_FOCUSED)

    @property
    def messages(self) -> list[str]:
        """Return all that was written to the console, by the page or by the browser, and all dialogs."""
        calls = self._events("Runtime.consoleAPICalled")
        return [
            *(
                " ".join(str(arg.get("value", arg.get("description"))) for arg in call["args"])
                for call in calls
            ),
            *(entry["entry"]["text"] for entry in self._events("Log.entryAdded")),
            *(_thrown(event["exceptionDetails"]) for event in self._events("Runtime.exceptionThrown")),
            *(
                f"{event['type']}: {event['message']}"
                for event in self._events("Page.javascriptDialogOpening")
            ),
        ]

    @property
    def requests(self) -> list[str]:
        """Return the address of every request that the page has made."""
        return [event["request"]["url"] for event in self._events("Network.requestWillBeSent")]

    def forget(self) -> None:
        """Forget the messages and the requests so far."""
        self._browser.forget(self.session)

    def metrics(self) -> dict[str, float]:
        """Return what Chromium counts: Nodes, LayoutCount, ScriptDuration, JSHeapUsedSize …"""
        return {metric["name"]: metric["value"] for metric in self.call("Performance.getMetrics")["metrics"]}

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Save a picture of the whole page, or of what the window shows of it."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def clipboard(self) -> str:
        """Return what was copied: what a person gets who pastes it elsewhere."""
        elsewhere = self._browser.open("about:blank")
        elsewhere.value("document.body.append(document.createElement('textarea'))")
        elsewhere.click("textarea")
        elsewhere.press("Control+v")
        pasted = elsewhere.value("document.querySelector('textarea').value")
        elsewhere.close()
        self.show()
        return pasted

    def hide(self) -> None:
        """Minimize the window: the page is hidden, and the browser slows its timers down."""
        self._window("minimized")
        self.until("document.visibilityState === 'hidden'")

    def show(self) -> None:
        """Bring the window back, in front of the others."""
        self._window("normal")
        self.call("Page.bringToFront")
        self.until("document.visibilityState === 'visible'")

    def resize(self, width: int, height: int) -> None:
        """Give the window another size."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=self._touch,
        )

    def media(
        self,
        *,
        dark: bool = False,
        reduced_motion: bool = False,
        forced_colors: bool = False,
        printed: bool = False,
    ) -> None:
        """Let the page be looked at in another way; what is not named is as usual."""
        features = {
            "prefers-color-scheme": "dark" if dark else "light",
            "prefers-reduced-motion": "reduce" if reduced_motion else "no-preference",
            "forced-colors": "active" if forced_colors else "none",
        }
        self.call(
            "Emulation.setEmulatedMedia",
            media="print" if printed else "",
            features=[{"name": name, "value": value} for name, value in features.items()],
        )

    def offline(self, yes: bool) -> None:
        """Cut the network, or bring it back."""
        self.call(
            "Network.emulateNetworkConditions",
            offline=yes,
            latency=0,
            downloadThroughput=-1,
            uploadThroughput=-1,
        )

    def slow_down(self, times: float) -> None:
        """Let the processor be that many times slower; 1 is as it is."""
        self.call("Emulation.setCPUThrottlingRate", rate=times)

    def _events(self, event: str) -> list[dict[str, Any]]:
        return self._browser.events(event, self.session)

    def _window(self, state: str) -> None:
        window = self._browser.call("Browser.getWindowForTarget", {"targetId": self.target})["windowId"]
        self._browser.call("Browser.setWindowBounds", {"windowId": window, "bounds": {"windowState": state}})


def _seen(selector: str) -> str:
    return (
        f"[...document.querySelectorAll({json.dumps(selector)})]"
        ".filter(element => element.checkVisibility({visibilityProperty: true}))"
    )


def _thrown(details: dict[str, Any]) -> str:
    return details.get("exception", {}).get("description") or details["text"]
