"""Run the views, write what changed, remove what is gone.

Only files that an earlier run has written are ever removed: the site's own `.manifest` lists them,
so a folder that has other things in it keeps them.
"""

from __future__ import annotations

import hashlib
import json
import time
from datetime import timedelta
from typing import TYPE_CHECKING

from webmon.errors import ConfigError
from webmon.publish.pages import pages
from webmon.publish.tables import tables
from webmon.resources import resource
from webmon.store.files import clear_leftovers, make_folder, storing, write, write_if_changed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    from webmon.config.settings import SiteSettings
    from webmon.model import Snapshot

# What cron does; a longer period shows in the snapshots that are kept.
USUAL_PERIOD = timedelta(minutes=5)

# A page that was loaded just before a change still asks for the style sheet that it names.
_OLD_ASSETS_STAY_S = 86400

_MANIFEST = ".manifest"


def render(
    snapshot: Snapshot, site: SiteSettings, folder: Path, *, now: datetime, period: timedelta | None
) -> None:
    """Write the site of a snapshot into a folder."""
    period = max(period or USUAL_PERIOD, USUAL_PERIOD)
    with storing(folder):
        make_folder(folder)
    assets = _assets()
    names = {name: published for name, (published, _) in assets.items()}
    # Assets first: whoever sees the new page finds what it names.
    files = [(published, content) for published, content in assets.values()]
    files += [(path, text.encode("utf-8", "replace")) for path, text in tables(snapshot)]
    try:
        files += [
            (path, text.encode("utf-8", "replace"))
            for path, text in pages(snapshot, site, names, now=now, period=period)
        ]
    except Exception as error:
        if site.templates is None:
            raise
        raise ConfigError(
            f"a template in {site.templates} fails: {type(error).__name__}: {error}",
            "Compare it with the one in webmon's templates folder, or remove [site] templates",
        ) from error
    with storing(folder):
        for path, content in files:
            write_if_changed(folder / path, content)
        _remove_gone(folder, [path for path, _ in files])
        clear_leftovers(folder)


def _assets() -> dict[str, tuple[str, bytes]]:
    """Return each asset's published name, which changes with its content, and its content."""
    assets: dict[str, tuple[str, bytes]] = {}
    for path in sorted(resource("assets").iterdir()):
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()[:12]
        assets[path.name] = (f"assets/{path.stem}.{digest}{path.suffix}", content)
    return assets


def _remove_gone(folder: Path, paths: Iterable[str]) -> None:
    current = set(paths)
    kept: list[str] = []
    for path in _listed(folder):
        old = folder / path
        if path in current or not old.is_file() or old.is_symlink():
            continue
        if path.startswith("assets/") and time.time() - old.stat().st_mtime < _OLD_ASSETS_STAY_S:
            kept.append(path)
        else:
            old.unlink(missing_ok=True)
    manifest = json.dumps(sorted({*current, *kept}), indent=0) + "\n"
    if not (folder / _MANIFEST).exists() or sorted({*current, *kept}) != sorted(_listed(folder)):
        write(folder / _MANIFEST, manifest.encode())


def _listed(folder: Path) -> list[str]:
    """Return the files that earlier runs have written; none outside of the folder."""
    try:
        listed = json.loads((folder / _MANIFEST).read_bytes())
    except (OSError, ValueError):
        return []
    if not isinstance(listed, list):
        return []
    return [
        path
        for path in listed
        if isinstance(path, str) and not path.startswith("/") and ".." not in path.split("/")
    ]
