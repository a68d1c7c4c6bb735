"""snapshot.schema.json: snapshot.json is what it says, and nothing that is not a snapshot is."""

from __future__ import annotations

import json

import clusters
import pytest
from any_lab import labs, quick
from hypothesis import given
from jsonschema import Draft202012Validator
from servers.command import webmon
from unit.snapshots import FULL, SNAPSHOTS

from webmon.model import Snapshot
from webmon.publish.lab import lab
from webmon.publish.tables import tables
from webmon.store import snapshot as store
from webmon.store.document import to_json

SCHEMA = json.loads(dict(tables(lab(FULL), None))["snapshot.schema.json"])
VALIDATOR = Draft202012Validator(SCHEMA)
DOCUMENT = json.loads(to_json(FULL))


def changed(table, **cells):
    """Return a document in which some cells of a table's row are others."""
    return DOCUMENT | {table: [DOCUMENT[table][0] | cells]}


def test_the_schema_is_one():
    """Of the draft that it names."""
    assert SCHEMA["$schema"] == Draft202012Validator.META_SCHEMA["$id"]
    Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize(
    "snapshot",
    [
        FULL,
        clusters.lab(),
        clusters.uneven(),
        clusters.wordy(),
        clusters.large(3, 16),
        Snapshot(clusters.NOW),
    ],
    ids=["full", "lab", "uneven", "wordy", "large", "empty"],
)
def test_every_snapshot_is_what_it_says(snapshot):
    """With every field filled in, and with hardly any."""
    VALIDATOR.validate(json.loads(to_json(snapshot)))


def test_so_is_the_golden_one(make_site):
    """The two files as they are on the site."""
    folder = make_site()
    document, schema = (
        json.loads((folder / name).read_text()) for name in ("snapshot.json", "snapshot.schema.json")
    )
    assert len(document["gpus"]) == 9
    Draft202012Validator(schema).validate(document)


@quick
@given(SNAPSHOTS | labs())
def test_so_is_any_other(snapshot):
    """Whatever the names and numbers are."""
    VALIDATOR.validate(json.loads(to_json(snapshot)))


def test_so_is_what_list_prints(tmp_path):
    """`webmon list --json`, of all hosts and of some."""
    store.save(tmp_path, clusters.lab(), keep=1)
    for patterns, count in (((), 6), (("gpu*",), 3)):
        done = webmon("list", "--data", tmp_path, "--json", *patterns)
        document = json.loads(done.stdout)
        assert len(document["hosts"]) == count
        VALIDATOR.validate(document)


def test_columns_may_come():
    """A newer webmon says more."""
    VALIDATOR.validate(changed("gpus", encoder_pct=3) | {"site": "http://mon.lab"})


@pytest.mark.parametrize("table", ["hosts", "gpus", "processes"])
def test_no_column_may_go(table):
    """Not one of those that the model has."""
    for column in DOCUMENT[table][0]:
        rest = {name: cell for name, cell in DOCUMENT[table][0].items() if name != column}
        assert not VALIDATOR.is_valid(DOCUMENT | {table: [rest]}), column


@pytest.mark.parametrize("table", ["hosts", "gpus", "processes"])
def test_every_column_has_its_type(table):
    """Neither a list nor a truth is in any; only what may be not known may be null."""
    for column, cell in DOCUMENT[table][0].items():
        assert not VALIDATOR.is_valid(changed(table, **{column: True})), column
        assert not VALIDATOR.is_valid(changed(table, **{column: [1]})), column
        other = 1 if isinstance(cell, str | list) else "1"
        assert not VALIDATOR.is_valid(changed(table, **{column: other})), column
        known = column in ("host", "status", "index", "state", "users", "pid")
        assert VALIDATOR.is_valid(changed(table, **{column: None})) != known, column


@pytest.mark.parametrize(
    "document",
    [
        [],
        {},
        {name: part for name, part in DOCUMENT.items() if name != "processes"},
        {name: part for name, part in DOCUMENT.items() if name != "taken_at"},
        DOCUMENT | {"schema": 2},
        DOCUMENT | {"schema": "1"},
        DOCUMENT | {"hosts": {}},
        DOCUMENT | {"gpus": [[]]},
        DOCUMENT | {"taken_at": None},
        changed("gpus", state="idle"),
        changed("gpus", utilization_pct=0.5),
        changed("hosts", status="gone"),
        changed("gpus", users=None),
    ],
)
def test_nothing_else_is_a_snapshot(document):
    """Neither another schema nor another state."""
    assert not VALIDATOR.is_valid(document)


@pytest.mark.parametrize(
    "time",
    [
        "2026-01-02T03:04:05",
        "2026-01-02T03:04:05+00:00",
        "2026-01-02T03:04:05.678Z",
        "2026-01-02 03:04:05Z",
        "2026-01-02",
        "2026-13-02T03:04:05Z",
        "2026-01-32T03:04:05Z",
        "2026-01-00T03:04:05Z",
        "2026-01-02T24:04:05Z",
        "2026-01-02T03:60:05Z",
        "2026-01-02T03:04:60Z",
        "٢٠٢٦-01-02T03:04:05Z",
        1767323045,
        "",
    ],
)
def test_a_time_is_utc_to_the_second(time):
    """Not one without a zone, in another form, or that cannot be."""
    assert VALIDATOR.is_valid(DOCUMENT | {"taken_at": "2026-01-02T03:04:05Z"})
    assert not VALIDATOR.is_valid(DOCUMENT | {"taken_at": time})
    assert not VALIDATOR.is_valid(changed("gpus", idle_since=time))
