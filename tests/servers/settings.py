"""A configuration for one test, written as a person would write it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


def write_config(
    folder: Path,
    common: dict[str, Any],
    hosts: dict[str, dict[str, Any]] | None = None,
    **sections: dict[str, Any],
) -> Path:
    """Write `config.ini` into a folder: [common], a section for each host, and the other sections."""
    parts = {"common": common, **{f"host.{json.dumps(name)}": keys for name, keys in (hosts or {}).items()}}
    lines = []
    for section, keys in (parts | sections).items():
        lines.append(f"[{section}]")
        # Texts, numbers and lists look the same in JSON and in TOML.
        lines += [f"{name} = {json.dumps(value)}" for name, value in keys.items() if value is not None]
    path = folder / "config.ini"
    path.write_text("\n".join(lines) + "\n")
    return path
