"""The probe's answer, split at its marks."""

from __future__ import annotations

# More than any honest section has, and few enough to look at each.
MAX_LINES = 20_000


class Section:
    """The lines after one mark. `code` is nvidia-smi's exit code; None if it never came."""

    __slots__ = ("args", "code", "lines", "name")

    def __init__(self, name: str, args: str = "") -> None:
        """Start without a line."""
        self.name = name
        self.args = args
        self.lines: list[str] = []
        self.code: int | None = None


def split(text: str, token: str) -> list[Section]:
    """Split the text at its marks. Everything before the first one is noise of the login."""
    prefix = f"@{token} "
    sections: list[Section] = []
    for line in (raw.rstrip("\r") for raw in text.split("\n")):
        if line.startswith(prefix):
            name, _, args = line[len(prefix) :].strip().partition(" ")
            if name != "exit":
                sections.append(Section(name, args))
            elif sections and args.isascii() and args.isdigit():
                sections[-1].code = int(args[:4])
        elif sections and line.strip() and len(sections[-1].lines) < MAX_LINES:
            sections[-1].lines.append(line)
    return sections
