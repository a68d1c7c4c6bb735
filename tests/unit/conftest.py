"""What the unit tests share: how hypothesis works, and a home folder that a test may fill."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from configs import File
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pathlib import Path

# No deadline for one example: it would fail on a busy machine. No database: nothing is left behind.
settings.register_profile(
    "webmon", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100
)
settings.load_profile("webmon")


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home folder of the test's own, with an empty ~/.ssh in it."""
    folder = tmp_path / "home"
    (folder / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def file(own_home: Path, tmp_path: Path) -> File:
    """Return a configuration file to be written, in a folder without anything else in it."""
    folder = tmp_path / "etc"
    folder.mkdir()
    return File(folder)
