"""The columns and the cells of the three tables: a contract with whoever reads them."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from snapshots import FULL, NOW, SNAPSHOTS

from webmon.model import Gpu, Host, Process, Snapshot
from webmon.store import snapshot, table

# As the documentation has them: adding a column at the end is a change for the changelog, and
# anything else breaks other people's programs.
COLUMNS = {
    "hosts": (
        "host, label, group, status, reason, error, checked_at, last_seen, duration_ms, driver, gpus, load1, "
        "cpus, ram_used_mib, ram_total_mib"
    ),
    "gpus": (
        "host, index, uuid, name, state, utilization_pct, memory_utilization_pct, memory_used_mib, "
        "memory_total_mib, temperature_c, power_w, power_limit_w, fan_pct, sm_clock_mhz, pstate, mig_mode, "
        "idle_since, users"
    ),
    "processes": ("host, gpu_index, gpu_uuid, pid, user, name, command, memory_mib, started_at, container"),
}
KINDS = {"hosts": Host, "gpus": Gpu, "processes": Process}

EVERY_TABLE = pytest.mark.parametrize("name", COLUMNS)


def _saved(folder, name):
    with open(folder / "latest" / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.reader(file, strict=True))


@EVERY_TABLE
def test_the_columns_are_those_of_the_contract(tmp_path, name):
    """In this order, and under these names, also when there is no row."""
    snapshot.save(tmp_path, Snapshot(NOW), keep=3)
    assert _saved(tmp_path, name) == [COLUMNS[name].split(", ")]
    assert table.columns(KINDS[name]) == COLUMNS[name].split(", ")


def test_a_full_row_of_each_table(tmp_path):
    """What every cell looks like when it is known."""
    snapshot.save(tmp_path, FULL, keep=3)
    assert (tmp_path / "latest" / "hosts.csv").read_bytes().splitlines()[1] == (
        b'gpu01,the big one,vision,degraded,lost-gpu,"it said ""no"", twice",2026-01-02T03:04:05Z,'
        b"2026-01-02T02:04:05Z,321,550.54.14,2,0.5,128,1000,2000"
    )
    assert (tmp_path / "latest" / "gpus.csv").read_bytes().splitlines()[1] == (
        b"gpu01,0,GPU-0,NVIDIA RTX A6000,held,1,2,3000,48000,31,21.53,300,30,210,P8,Disabled,"
        b"2026-01-02T03:04:05Z,alice;bob"
    )
    assert (tmp_path / "latest" / "processes.csv").read_text(encoding="utf-8").splitlines()[1] == (
        "gpu01,0,GPU-0,4711,alice,/usr/bin/python3,träin.py,900,2026-01-02T03:04:05Z,4c01db0b339c"
    )


@EVERY_TABLE
def test_what_is_not_known_is_an_empty_cell(tmp_path, name):
    """Never 0, never nan or None."""
    bare = {"hosts": Host("a"), "gpus": Gpu("a", 0), "processes": Process("a", None, None, 7)}
    given = Snapshot(NOW, (bare["hosts"],), (bare["gpus"],), (bare["processes"],))
    snapshot.save(tmp_path, given, keep=3)
    header, row = _saved(tmp_path, name)
    said = {"host": "a", "status": "down", "index": "0", "state": "unknown", "pid": "7"}
    assert dict(zip(header, row, strict=True)) == {column: said.get(column, "") for column in header}
    assert snapshot.load(tmp_path) == given


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (None, ""),
        (0, "0"),
        (0.0, "0"),
        (100.0, "100"),
        (0.1 + 0.2, "0.3"),
        (1234567.891, "1234567.89"),
        ("", ""),
        ((), ""),
        (("alice",), "alice"),
        (datetime(2026, 1, 2, 3, 4, 5, 999999, UTC), "2026-01-02T03:04:05Z"),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone(timedelta(hours=2))), "2026-01-02T01:04:05Z"),
    ],
)
def test_how_a_value_is_written(value, cell):
    """Times in UTC and to the second; numbers without zeros that say nothing; 0 is 0."""
    assert table.to_cell(value) == cell


@given(SNAPSHOTS)
def test_what_is_saved_is_what_is_loaded(tmp_path_factory, taken):
    """Any text that is clean, any number and any time, known or not."""
    folder = tmp_path_factory.mktemp("data")
    snapshot.save(folder, taken, keep=1)
    assert snapshot.load(folder) == taken


def test_every_field_is_tried():
    """The strategy above fills in all fields of the model."""
    assert {kind: len(kind._fields) for kind in KINDS.values()} == {Host: 15, Gpu: 18, Process: 10}


def test_columns_that_a_later_version_adds_are_passed_over(tmp_path):
    """So that a data folder can be read by an older webmon too."""
    snapshot.save(tmp_path, FULL, keep=3)
    file = tmp_path / "latest" / "gpus.csv"
    header, row = file.read_text(encoding="utf-8").splitlines()
    file.write_text(f"{header},humidity_pct\n{row},40\n", encoding="utf-8")
    assert snapshot.load(tmp_path) == FULL
