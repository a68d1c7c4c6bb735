"""What the tests of the history share: a month of polls, made once, and the same with its rollups."""

from __future__ import annotations

import shutil

import month
import pytest
from hypothesis import HealthCheck, settings

from webmon.store.rollup import Rollups

# As in tests/unit: no deadline on a busy machine, nothing left behind.
settings.register_profile(
    "history", deadline=None, database=None, suppress_health_check=list(HealthCheck), max_examples=40
)
settings.load_profile("history")


@pytest.fixture(scope="session")
def polled(tmp_path_factory):
    """The data folder of the month; not to be changed."""
    folder = tmp_path_factory.mktemp("month") / "data"
    month.write(folder)
    return folder


@pytest.fixture(scope="session")
def summed(polled, tmp_path_factory):
    """The same, with the rollups that a poll and a render leave; not to be changed."""
    folder = tmp_path_factory.mktemp("summed") / "data"
    shutil.copytree(polled, folder)
    rollups = Rollups(folder, month.END, save=True)
    rollups.make_all()
    rollups.gpus(month.END.date())
    return folder


@pytest.fixture
def data(summed, tmp_path):
    """A data folder of the test's own, with rollups."""
    return shutil.copytree(summed, tmp_path / "data")


@pytest.fixture
def week(polled, tmp_path):
    """A data folder of the test's own with the last nine days, without rollups."""
    (tmp_path / "week" / "history").mkdir(parents=True)
    for path in sorted((polled / "history").iterdir())[-9:]:
        shutil.copy2(path, tmp_path / "week" / "history" / path.name)
    return tmp_path / "week"


@pytest.fixture
def raw(polled, tmp_path):
    """A data folder of the test's own, without rollups."""
    return shutil.copytree(polled, tmp_path / "raw")
