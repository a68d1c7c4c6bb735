"""Text in columns of a terminal: how wide it is, cut, filled up, wrapped, and made harmless."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate, takewhile

from webmon.clean import clean


def len_shown(text: str) -> int:
    """Return how many columns a text takes: wide characters take two, combining ones none."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def cut(text: str, width: int) -> str:
    """Shorten a text to so many columns, and show that it was."""
    if len_shown(text) <= width:
        return text
    return _head(text, width - 1) + "…"[: max(0, width)]


def fitted(text: str, width: int) -> str:
    """Return a text in exactly so many columns."""
    text = cut(text, width)
    return text + " " * (width - len_shown(text))


def wrapped(text: str, width: int) -> list[str]:
    """Break a text into lines of so many columns: between words, and within those that are longer."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and len_shown(line) + 1 + len_shown(word) <= width:
            line += f" {word}"
            continue
        lines += [line] if line else []
        *full, line = broken(word, width)
        lines += full
    return [*lines, line] if line else lines


def broken(text: str, width: int) -> list[str]:
    """Break a text into lines of so many columns, anywhere."""
    lines: list[str] = []
    while len_shown(text) > width:
        # A character that is wider than the line still has to go somewhere.
        head = _head(text, width) or text[0]
        lines.append(head)
        text = text[len(head) :]
    return [*lines, text] if text or not lines else lines


def harmless(text: str) -> str:
    """Return a text that can do nothing to a terminal: no escape sequence, no new line, no turning around."""
    return text if text.isascii() and text.isprintable() else clean(text)


def _head(text: str, width: int) -> str:
    """Return as much of a text as fits into so many columns."""
    ends = accumulate(map(_columns, text))
    return text[: sum(1 for _ in takewhile(lambda end: end <= width, ends))]


@lru_cache(maxsize=4096)
def _columns(char: str) -> int:
    import unicodedata  # most text is ASCII

    if unicodedata.category(char) in ("Mn", "Me") or "\u1160" <= char <= "\u11ff":
        return 0  # it is drawn over, or into, the character before
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
