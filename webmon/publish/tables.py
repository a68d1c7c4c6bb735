"""The snapshot as data: what a program reads in place of the pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webmon.store import document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webmon.model import Snapshot


def tables(snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Return the path and the text of each file."""
    yield "snapshot.json", document.to_json(snapshot)
