"""A snapshot as data frames: types that one can work with, whatever is known."""

from __future__ import annotations

import pandas
import pytest
from hypothesis import given
from snapshots import FULL, GPU, SECOND, SNAPSHOTS

from webmon.model import Gpu, Host, Process, Snapshot
from webmon.store.frames import typed

KINDS = {"hosts": Host, "gpus": Gpu, "processes": Process}
UNKNOWN = Snapshot(SECOND, (Host("gpu01"),), (Gpu("gpu01", 0),), (Process("gpu01", None, None, 1),))
EMPTY = Snapshot(SECOND)


@pytest.mark.parametrize("snapshot", [FULL, UNKNOWN, EMPTY], ids=["full", "unknown", "empty"])
def test_types_do_not_depend_on_what_is_known(snapshot):
    """Int64, Float64, times in UTC, texts: also where all of a column is missing, or there is no row."""
    frames = typed(snapshot)
    assert list(frames) == list(KINDS)
    for name, kind in KINDS.items():
        assert list(frames[name].columns) == list(kind._fields)
    gpus, hosts, processes = frames["gpus"], frames["hosts"], frames["processes"]
    assert {str(gpus[name].dtype) for name in ("index", "utilization_pct", "memory_used_mib")} == {"Int64"}
    assert {str(gpus[name].dtype) for name in ("power_w", "power_limit_w")} == {"Float64"}
    assert str(hosts["load1"].dtype) == "Float64"
    assert {str(gpus[name].dtype) for name in ("host", "uuid", "name", "state")} == {"string"}
    times = (gpus["idle_since"], hosts["checked_at"], hosts["last_seen"], processes["started_at"])
    assert {str(column.dtype) for column in times} == {"datetime64[us, UTC]"}


def test_values_are_what_they_were():
    """Numbers, times, texts, and the users as a tuple."""
    row = typed(FULL)["gpus"].iloc[0]
    assert tuple(row) == tuple(GPU)
    assert row["idle_since"] == SECOND


def test_what_is_not_known_is_missing():
    """Not 0, not the text "None"."""
    gpus = typed(UNKNOWN)["gpus"]
    known = gpus.columns[gpus.notna().all()]
    assert list(known) == ["host", "index", "state", "users"]
    assert gpus["users"].iloc[0] == ()
    assert gpus["memory_used_mib"].sum() == 0
    assert pandas.isna(gpus["memory_used_mib"].max())


def test_a_filter_works_where_something_is_missing():
    """A GPU whose name is not known is no A6000."""
    gpus = typed(Snapshot(SECOND, gpus=(GPU, Gpu("gpu01", 1))))["gpus"]
    assert list(gpus[gpus["name"].str.contains("A6000")]["index"]) == [0]
    assert list(gpus[gpus["memory_used_mib"] > 1000]["index"]) == [0]
    assert list(gpus[gpus["idle_since"] > "2026-01-01"]["index"]) == [0]
    assert list(gpus[gpus["uuid"] == "GPU-0"]["index"]) == [0]


@given(SNAPSHOTS)
def test_any_snapshot_can_be_turned_into_frames(snapshot):
    """Also with times of other centuries."""
    for name, frame in typed(snapshot).items():
        assert len(frame) == len(getattr(snapshot, name))
