"""templates/, assets/, cron/ and config.example.ini: in a checkout beside the package, in a wheel in it."""

from __future__ import annotations

from pathlib import Path


def resource(name: str) -> Path:
    """Return a packaged folder or file."""
    package = Path(__file__).resolve().parent
    inside = package / name
    return inside if inside.exists() else package.parent / name
