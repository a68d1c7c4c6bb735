"""Text from a host, made fit to be stored and shown: it was written by strangers."""

from __future__ import annotations

MAX_LENGTH = 4096

# Control characters, invisible marks, halves of characters, private use, line separators.
_UNFIT = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


def clean(text: str) -> str:
    """Return text from a host without control characters, invisible marks and surrogates."""
    if text.isascii() and text.isprintable():
        return text[:MAX_LENGTH].strip()
    import unicodedata  # most text is ASCII

    kept = ("�" if unicodedata.category(char) in _UNFIT else char for char in text[:MAX_LENGTH])
    return "".join(kept).strip()
