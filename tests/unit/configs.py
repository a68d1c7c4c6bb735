"""Configurations for one test: written to a file, loaded, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from webmon import config
from webmon.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from webmon.config.settings import Config, HostSettings


class File:
    """A configuration file that a test writes; the text may be bytes."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "config.ini"

    def write(self, text: str | bytes) -> Path:
        self.path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return self.path

    def load(self, text: str | bytes) -> Config:
        return config.load(self.write(text))

    def host(self, text: str, name: str = "gpu01") -> HostSettings:
        """Return what is in force for one host."""
        return {host.name: host for host in self.load(text).hosts}[name]

    def error(self, text: str | bytes) -> str:
        """Return what is said about a file that is wrong."""
        with pytest.raises(ConfigError) as raised:
            self.load(text)
        assert raised.value.exit_code == 2
        return str(raised.value)
