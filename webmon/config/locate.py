"""Where a configuration file is, and its text."""

from __future__ import annotations

import os
from pathlib import Path

from webmon.config.paths import expanded, usual_places
from webmon.errors import ConfigError


def find(given: str | None = None) -> Path:
    """Return the configuration file to use: the one given, or the first of the usual places."""
    if given:
        return expanded(given)
    if from_environment := os.environ.get("WEBMON_CONFIG"):
        return expanded(from_environment)
    places = usual_places()
    for place in places:
        if os.path.isfile(place):
            return Path(place)
    looked = ", ".join(places)
    raise ConfigError(
        f"no configuration file; looked for {looked}",
        "Copy config.example.ini to config.ini and name your hosts in it, or say -c FILE",
    )


def text(path: Path) -> str:
    """Return what stands in a configuration file."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: there is no such file",
            "Copy config.example.ini there and name your hosts in it",
        ) from None
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}", "It has to be a file that this user may read"
        ) from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError("not UTF-8 text", "Save the file as UTF-8", where=f"{path.name}:{line}") from None
