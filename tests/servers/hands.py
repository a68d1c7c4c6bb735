"""What a person does to a page, with the mouse, a finger and the keyboard."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from servers.keys import strokes

if TYPE_CHECKING:
    from collections.abc import Callable

# Where the mouse has to go for an element, and what covers it there; or why it can't go there.
_POINT = """selector => {
  const element = document.querySelector(selector);
  if (!element) return 'nothing matches';
  if (document.hidden) return 'the page is hidden';
  const box = () => element.checkVisibility({visibilityProperty: true}) &&
    [...element.getClientRects()].find(box => box.width && box.height);
  const look = () => {
    const {x, y, width, height} = box();
    const middle = {x: x + width / 2, y: y + height / 2};
    const top = document.elementFromPoint(middle.x, middle.y);
    const covering = top ? top.outerHTML.slice(0, 200) : 'the edge of the window';
    return {...middle, covering: element.contains(top) ? '' : covering};
  };
  if (!box()) return 'it is invisible';
  element.scrollIntoViewIfNeeded();
  if (look().covering) element.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});
  return look();
}"""


class Hands:
    """The input to a page: real events, from the browser itself."""

    if TYPE_CHECKING:
        call: Callable[..., dict[str, Any]]
        value: Callable[[str], Any]

    def hover(self, selector: str) -> None:
        """Scroll to an element and move the mouse over its middle."""
        self._mouse("mouseMoved", **self._point(selector))

    def move_away(self) -> None:
        """Move the mouse out of the window."""
        self._mouse("mouseMoved", x=-10, y=-10)

    def click(self, selector: str) -> None:
        """Scroll to an element and click on its middle."""
        point = self._point(selector)
        self._mouse("mouseMoved", **point)
        self._mouse("mousePressed", **point, button="left", buttons=1, clickCount=1)
        self._mouse("mouseReleased", **point, button="left", clickCount=1)

    def tap(self, selector: str) -> None:
        """Scroll to an element and tap on its middle with a finger."""
        point = self._point(selector)
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[point])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def press(self, keys: str) -> None:
        """Press a key, or one with others held down: "a", "Space", "ArrowDown", "Shift+Tab", "Control+c"."""
        for stroke in strokes(keys):
            self.call("Input.dispatchKeyEvent", **stroke)

    def type(self, text: str) -> None:
        """Type a text, key by key, into what has the focus."""
        for character in text:
            self.press(character)

    def _mouse(self, kind: str, **where: Any) -> None:
        self.call("Input.dispatchMouseEvent", type=kind, **where)

    def _point(self, selector: str) -> dict[str, float]:
        """Scroll to an element, and return where its middle is when it has come to rest."""
        before: dict[str, Any] = {}
        for _ in range(40):
            found = self.value(f"({_POINT})({json.dumps(selector)})")
            assert isinstance(found, dict), f"{selector}: {found}"
            if found == before and not found["covering"]:
                return {"x": found["x"], "y": found["y"]}
            before = found
            time.sleep(0.025)
        pytest.fail(f"{selector}: it does not come to rest, or is covered by {before['covering']!r}")
