"""A snapshot as JSON: what is written can be read, and nothing else is taken for one."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from snapshots import FULL, GPU, HOST, PROCESS, SECOND, SNAPSHOTS

from webmon.clean import clean
from webmon.model import Gpu, Host, Process, Snapshot
from webmon.store.document import SCHEMA, from_json, to_json

TABLES = {"hosts": Host, "gpus": Gpu, "processes": Process}
DOCUMENT = json.loads(to_json(FULL))


def read(document):
    """Read a document that is given as JSON, or as what JSON can say."""
    text = document if isinstance(document, str | bytes) else json.dumps(document)
    return from_json(text.encode() if isinstance(text, str) else text, clean)


def changed(table, **cells):
    """Return the whole document with some cells of a table's first row changed."""
    return DOCUMENT | {table: [DOCUMENT[table][0] | cells]}


@given(SNAPSHOTS)
def test_what_is_written_can_be_read(snapshot):
    """Every value, known or not, is what it was; times are to the second."""
    assert read(to_json(snapshot)) == snapshot


def test_every_field_is_there():
    """Under the names of the CSVs' columns, a row a line; numbers are numbers, users a list."""
    assert DOCUMENT["schema"] == SCHEMA == 1
    assert DOCUMENT["taken_at"] == "2026-01-02T03:04:05Z"
    for name, kind in TABLES.items():
        assert list(DOCUMENT[name][0]) == list(kind._fields)
    assert DOCUMENT["gpus"][0]["users"] == ["alice", "bob"]
    assert (DOCUMENT["gpus"][0]["power_w"], DOCUMENT["gpus"][0]["index"]) == (21.53, 0)
    assert to_json(FULL).count("\n") == 7
    assert read(to_json(FULL)) == FULL._replace(taken_at=SECOND)


def test_what_is_not_known_is_null():
    """Neither 0 nor an empty text."""
    gpu = json.loads(to_json(Snapshot(SECOND, gpus=(Gpu("gpu01", 0),))))["gpus"][0]
    assert {name for name, value in gpu.items() if value is None} == set(gpu) - {
        "host", "index", "state", "users",
    }  # fmt: skip


def test_a_newer_webmon_may_say_more():
    """Fields and tables that this one does not know are passed over; a missing optional one is not known."""
    document = json.loads(to_json(FULL)) | {"alerts": [1, 2]}
    document["gpus"][0]["encoder_pct"] = 7
    del document["gpus"][0]["fan_pct"]
    assert read(document).gpus == (GPU._replace(fan_pct=None),)
    assert read(document).hosts == (HOST,)
    assert read(document).processes == (PROCESS,)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "null", "1", "[]", "{}", '"snapshot"', "<!doctype html>", b"\xff\xfe\x00", b"\x80",
        '{"schema": 1}', '{"schema": 2, "taken_at": "2026-01-02T03:04:05Z", "hosts": [], "gpus": []}',
        '{"schema": "1"}', '{"schema": 1, "hosts": {}, "gpus": [], "processes": []}',
        '{"schema": 1, "hosts": [], "gpus": [], "processes": []}',
        '{"schema": 1, "taken_at": 5, "hosts": [], "gpus": [], "processes": []}',
        '{"schema": 1, "taken_at": "2026-01-02T03:04:05", "hosts": [], "gpus": [], "processes": []}',
        '{"schema": 1, "taken_at": "2026-01-02T03:04:05Z", "hosts": [1], "gpus": [], "processes": []}',
        '{"schema": 1, "taken_at": "2026-01-02T03:04:05Z", "hosts": [[]], "gpus": [], "processes": []}',
        '{"schema": 1, "taken_at": "2026-01-02T03:04:05Z", "hosts": [{}], "gpus": [], "processes": []}',
    ],
)  # fmt: skip
def test_what_is_no_snapshot_is_refused(text):
    """By one exception, whatever it is."""
    with pytest.raises(ValueError, match=r"."):
        read(text)


@given(st.integers(0, len(to_json(FULL).encode()) - 3))
def test_half_a_document_is_refused(length):
    """Wherever it has been cut."""
    with pytest.raises(ValueError, match=r"."):
        read(to_json(FULL).encode()[:length])


@pytest.mark.parametrize(
    ("table", "cells"),
    [
        ("hosts", {"host": None}), ("hosts", {"host": 5}), ("hosts", {"host": ""}), ("hosts", {"host": "  "}),
        ("hosts", {"status": "sideways"}), ("hosts", {"status": None}), ("hosts", {"status": ["up"]}),
        ("hosts", {"cpus": "128"}), ("hosts", {"cpus": True}), ("hosts", {"cpus": 1.5}),
        ("hosts", {"cpus": 10**400}), ("hosts", {"cpus": 2**63}), ("hosts", {"cpus": -(2**63)}),
        ("hosts", {"load1": math.nan}), ("hosts", {"load1": math.inf}), ("hosts", {"load1": 10**400}),
        ("hosts", {"load1": "0.5"}), ("hosts", {"load1": False}),
        ("hosts", {"checked_at": "yesterday"}), ("hosts", {"checked_at": 1767322800}),
        ("gpus", {"index": None}), ("gpus", {"index": "0"}), ("gpus", {"name": {}}), ("gpus", {"name": 5}),
        ("gpus", {"users": "alice"}), ("gpus", {"users": None}), ("gpus", {"users": [1]}),
        ("gpus", {"state": "FREE"}), ("gpus", {"users": {"alice": 1}}),
        ("processes", {"pid": None}), ("processes", {"pid": []}), ("processes", {"command": ["rm", "-rf"]}),
    ],
)  # fmt: skip
def test_a_wrong_cell_is_refused(table, cells):
    """The message names the column."""
    with pytest.raises(ValueError, match=next(iter(cells))):
        read(changed(table, **cells))


def test_a_number_too_large_for_json_is_refused():
    """1e999 is infinity to Python, and thousands of digits take long to read."""
    for number in ("1e999", "-1e999", "NaN", "9" * 5000):
        with pytest.raises(ValueError, match=r"."):
            read(json.dumps(changed("hosts", load1=0.123456)).replace("0.123456", number))


def test_texts_are_made_safe_to_show():
    """Escape sequences, half characters and marks that turn the writing around are taken out."""
    snapshot = read(
        changed("gpus", name="A\x1b[31m\u202e\ud800100", users=["al\x07ice"], uuid="\u2028", pstate="")
    )
    gpu = snapshot.gpus[0]
    assert gpu.name == "A\ufffd[31m\ufffd\ufffd100"
    assert (gpu.users, gpu.uuid, gpu.pstate) == (("al\ufffdice",), "\ufffd", None)


@dataclass
class Anywhere:
    """Puts a value into one place of a document, by going down at random."""

    value: object

    def put(self, document, data):
        if isinstance(document, dict) and document and data.draw(st.booleans()):
            key = data.draw(st.sampled_from(sorted(document)))
            return document | {key: self.put(document[key], data)}
        if isinstance(document, list) and document:
            return [self.put(document[0], data), *document[1:]]
        return self.value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.data())
def test_any_change_gives_a_snapshot_or_a_value_error(value, data):
    """And what is a snapshot can be written again, and is the same."""
    try:
        snapshot = read(Anywhere(value).put(DOCUMENT, data))
    except ValueError:
        return
    assert read(to_json(snapshot)) == snapshot


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_by_a_value_error(content):
    """Nothing else comes out of it."""
    with pytest.raises(ValueError, match=r"."):
        read(content)
