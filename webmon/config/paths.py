"""Paths as people write them: `~`, `~user`, or relative to the configuration file."""

from __future__ import annotations

import os
from pathlib import Path

from webmon.errors import ConfigError


def expanded(text: str, where: str = "") -> Path:
    """Return a path with its `~` replaced; ConfigError if there is no such home folder."""
    path = os.path.expanduser(text)
    if path.startswith("~"):
        name = path.split("/", 1)[0]
        raise ConfigError(f"{text}: {name} is nobody's home folder", "Write the path in full", where=where)
    return Path(path)
