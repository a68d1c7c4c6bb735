"""What the tests of the commands share: a machine, a cluster's data folder, and terminals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from clusters_seen import cluster
from servers.here import Here
from servers.states import healthy

from webmon.store import snapshot

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path) -> Here:
    """This machine, with four idle cards."""
    return Here(tmp_path, healthy(4))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data folder of a cluster that was seen just now."""
    snapshot.save(tmp_path / "data", cluster(), keep=3)
    return tmp_path / "data"
