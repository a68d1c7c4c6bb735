"""Configuration file → Config. Errors say file, line, what is wrong and what was meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from webmon.config.settings import Config

__all__ = ["find", "load"]


def find(given: str | None = None) -> Path:
    """Return the configuration file to use: the one given, or the first of the usual places."""
    from webmon.config import locate

    return locate.find(given)


def load(path: Path) -> Config:
    """Read and check a configuration file, and resolve every host in it."""
    from webmon.config.resolve import resolve

    return resolve(path)
