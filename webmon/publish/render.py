"""Run the views, write what changed, remove what is gone.

Only files that an earlier run has written are ever removed: the site's own `.manifest` lists them,
so a folder that has other things in it keeps them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from datetime import UTC, timedelta
from typing import TYPE_CHECKING

from webmon.availability import Rules
from webmon.publish.lab import lab
from webmon.publish.look import Look
from webmon.publish.metrics import metrics
from webmon.publish.pages import pages
from webmon.publish.states import states
from webmon.publish.tables import tables
from webmon.publish.text import text
from webmon.resources import resource
from webmon.store.files import clear_leftovers, make_folder, storing, write, write_if_changed
from webmon.usage import NOTHING_PAST

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from datetime import datetime, tzinfo
    from pathlib import Path

    from webmon.config.settings import SiteSettings
    from webmon.model import Snapshot
    from webmon.publish.lab import Lab
    from webmon.usage import Past

# What cron does; a longer period shows in the snapshots that are kept.
USUAL_PERIOD = timedelta(minutes=5)

# A page that was loaded just before a change still asks for the style sheet that it names.
_OLD_ASSETS_STAY_S = 86400

_MANIFEST = ".manifest"

# Each makes (path, text) pairs; the pages name the files of the others, so they come last.
VIEWS: tuple[Callable[[Lab, Look], Iterator[tuple[str, str]]], ...] = (
    tables,
    states,
    metrics,
    text,
    pages,
)


def render(  # noqa: PLR0913 - what stands behind * has a name where it is called
    snapshot: Snapshot,
    site: SiteSettings,
    folder: Path,
    *,
    now: datetime,
    period: timedelta | None,
    addresses: Mapping[str, str] | None = None,
    rules: Rules = Rules(),  # noqa: B008 - a tuple, which nobody changes
    past: Past = NOTHING_PAST,
    zone: tzinfo | None = UTC,
) -> None:
    """Write the site of a snapshot and of what was before into a folder.

    `addresses` are those of the hosts, where they are known; hours of the day are in the zone.
    """
    with storing(folder):
        make_folder(folder)
    assets = _assets()
    names = {name: published for name, (published, _) in assets.items()}
    look = Look(site, names, now, max(period or USUAL_PERIOD, USUAL_PERIOD), zone)
    shown = lab(snapshot, addresses, rules, past)
    with storing(folder):
        # Assets first: whoever sees the new page finds what it names.
        for published, content in assets.values():
            write_if_changed(folder / published, content)
    paths = [published for published, _ in assets.values()]
    failed: Exception | None = None
    for view in VIEWS:
        try:
            files = list(view(shown, look))
        except Exception as error:  # noqa: BLE001 - raised again below, when all else is written
            failed = failed or error
            continue
        with storing(folder):
            for path, written in files:
                write_if_changed(folder / path, written.encode("utf-8", "replace"))
        paths += [path for path, _ in files]
    if failed:
        raise failed
    with storing(folder):
        _remove_gone(folder, paths)
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
            _remove_if_empty(old.parent, folder)
    manifest = json.dumps(sorted({*current, *kept}), indent=0) + "\n"
    if not (folder / _MANIFEST).exists() or sorted({*current, *kept}) != sorted(_listed(folder)):
        write(folder / _MANIFEST, manifest.encode())


def _remove_if_empty(within: Path, folder: Path) -> None:
    """Remove a host's own folder with its last file: nginx would forbid it, where it is to be unknown."""
    if within != folder and folder in within.parents:
        with contextlib.suppress(OSError):
            within.rmdir()


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
