"""What a keyboard sends when its keys are pressed, as the DevTools protocol wants to be told."""

from __future__ import annotations

from typing import Any

_MODIFIERS = {"Alt": (1, 18), "Control": (2, 17), "Meta": (4, 91), "Shift": (8, 16)}
_NAMED = {
    "Backspace": 8,
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "PageUp": 33,
    "PageDown": 34,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "Delete": 46,
}
_SHIFT = 8
_SHIFTED = frozenset('~!@#$%^&*()_+{}|:"<>?')
_WRITE_NOTHING = 1 | 2 | 4


def strokes(keys: str) -> list[dict[str, Any]]:
    """Return the events of a key, or of one with others held down: "a", "Enter", "Shift+Tab"."""
    before, _, key = keys.rpartition("+")
    held = [name for name in before.split("+") if name]
    key = key or "+"
    down: list[dict[str, Any]] = []
    up: list[dict[str, Any]] = []
    bits = 0
    for name in held:
        bit, number = _MODIFIERS[name]
        bits |= bit
        event = {"key": name, "code": f"{name}Left", "windowsVirtualKeyCode": number}
        down.append({"type": "rawKeyDown", "modifiers": bits, **event})
        up.insert(0, {"type": "keyUp", "modifiers": bits & ~bit, **event})
    event, text = _key(key)
    if key in _SHIFTED or (len(key) == 1 and key.isupper()):
        bits |= _SHIFT
    writes = {} if not text or bits & _WRITE_NOTHING else {"text": text}
    kind = "keyDown" if writes else "rawKeyDown"
    return [
        *down,
        {"type": kind, "modifiers": bits, **event, **writes},
        {"type": "keyUp", "modifiers": bits, **event},
        *up,
    ]


def _key(key: str) -> tuple[dict[str, Any], str]:
    """Return how a key is called, and what it writes."""
    if key in _NAMED:
        return {"key": key, "code": key, "windowsVirtualKeyCode": _NAMED[key]}, "\r" * (key == "Enter")
    if key in ("Space", " "):
        return {"key": " ", "code": "Space", "windowsVirtualKeyCode": 32}, " "
    assert len(key) == 1, f"there is no key {key!r}"
    if key.isascii() and key.isalnum():
        code = f"Digit{key}" if key.isdigit() else f"Key{key.upper()}"
        return {"key": key, "code": code, "windowsVirtualKeyCode": ord(key.upper())}, key
    return {"key": key}, key
