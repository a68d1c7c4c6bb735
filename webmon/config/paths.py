"""Paths as people write them, and the places where a configuration is looked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from webmon.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def expanded(text: str, where: str = "") -> Path:
    """Return a path with its `~` replaced; ConfigError if there is no such home folder."""
    from pathlib import Path

    path = os.path.expanduser(text)
    if path.startswith("~"):
        name = path.split("/", 1)[0]
        raise ConfigError(f"{text}: {name} is nobody's home folder", "Write the path in full", where=where)
    return Path(path)


def usual_places() -> list[str]:
    """Return where a configuration is looked for when nobody names one."""
    xdg = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return [
        "config.ini",
        os.path.join(os.path.expanduser(xdg), "webmon", "config.ini"),
        "/etc/webmon/config.ini",
    ]
