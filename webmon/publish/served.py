"""The files of the site as `webmon serve` has them: what they are called in HTTP, and opened with care."""

from __future__ import annotations

import os
import stat
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json; charset=utf-8",
    ".svg": "image/svg+xml; charset=utf-8",
    ".png": "image/png",
    ".csv": "text/csv; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".ansi": "text/plain; charset=utf-8",
}
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def content_type(path: str) -> str:
    """Return a file's content type; those without an ending, and of the hosts, are metrics."""
    name = PurePosixPath(path)
    if name.suffix == ".metrics" or name.name in ("metrics", "metrics-dcgm"):
        return _METRICS_TYPE
    return _TYPES.get(name.suffix, "application/octet-stream")


def open_file(site: Path, path: str) -> BinaryIO | None:
    """Open a file of the site; None for whatever is not one: links out of it, folders."""
    real = os.path.realpath(site / path)
    if not real.startswith(os.path.realpath(site) + os.sep):
        return None
    try:
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return open(descriptor, "rb", buffering=0)
    os.close(descriptor)
    return None
