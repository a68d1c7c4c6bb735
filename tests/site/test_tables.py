"""gpus.csv and processes.csv on the site: the tables of the data folder, in which no cell is a formula."""

from __future__ import annotations

import csv
import io
import re

import pandas
import pytest
from any_lab import labs, quick
from clusters import NOW, gpu, host, lab, process
from hypothesis import given
from hypothesis import strategies as st
from texts import look
from unit.snapshots import FULL, SNAPSHOTS

from webmon.collect.privacy import Privacy
from webmon.model import Gpu, Process, Snapshot
from webmon.publish import lab as arrange
from webmon.publish.tables import tables
from webmon.store import snapshot as store
from webmon.store.table import cells

KINDS = {"gpus": Gpu, "processes": Process}
FORMULAS = ("=1+1", "+1", "-1+cmd", "@SUM(A1)", "＝1+1", "＋1", "－1", "＠SUM(A1)")  # noqa: RUF001


def written(snapshot):
    """Return each file of the site that has tables."""
    return dict(tables(arrange.lab(snapshot), look()))


def rows(snapshot, name):
    """Return the rows of one of the CSVs."""
    return list(csv.DictReader(io.StringIO(written(snapshot)[f"{name}.csv"], newline=""), strict=True))


def a_card(**texts):
    """Return a lab of one card that has these texts."""
    return Snapshot(NOW, (host("gpu1"),), (gpu("gpu1", 0, state="busy")._replace(**texts),))


@pytest.mark.parametrize("name", KINDS)
def test_they_are_the_tables_of_the_data_folder(tmp_path, name):
    """Byte for byte, as long as nothing in them looks like a formula."""
    for number, snapshot in enumerate((FULL, lab(), Snapshot(NOW))):
        saved = store.save(tmp_path / str(number), snapshot, keep=1)
        assert written(snapshot)[f"{name}.csv"] == (saved / f"{name}.csv").read_text()


@quick
@given(SNAPSHOTS)
def test_nothing_else_is_changed(snapshot):
    """Each cell is that of the data folder, but for the apostrophes before what could be a formula."""
    for name, kind in KINDS.items():
        table = rows(snapshot, name)
        for column, there in cells(getattr(snapshot, name), kind).items():
            here = [row[column] for row in table]
            assert [re.sub(r"(^|;)'", r"\1", cell) for cell in here] == [
                re.sub(r"(^|;)'", r"\1", cell) for cell in there
            ]
            changed = [cell for cell, before in zip(here, there, strict=True) if cell != before]
            assert all(re.search(r"(^|;)'[\s\"]*[=+\-@＝＋－＠]", cell) for cell in changed)  # noqa: RUF001


def test_pandas_reads_them():
    """Numbers are numbers, and what is not known is missing."""
    card = gpu("gpu1", 0, utilization_pct=None, temperature_c=-5, power_w=21.5)
    frame = pandas.read_csv(io.StringIO(written(Snapshot(NOW, (host("gpu1"),), (card,)))["gpus.csv"]))
    (row,) = frame.to_dict("records")
    assert (row["temperature_c"], row["power_w"], row["memory_used_mib"]) == (-5, 21.5, 4)
    assert pandas.isna(row["utilization_pct"])
    assert list(frame) == list(Gpu._fields)


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("before", ["", " ", "   ", "\u3000", '"', ' "'])
def test_no_text_of_a_card_is_a_formula(formula, before):
    """Not after blanks or a quote either."""
    columns = ("host", "uuid", "name", "pstate", "mig_mode")
    (row,) = rows(a_card(**dict.fromkeys(columns, before + formula)), "gpus")
    for column in columns:
        assert row[column][0] == "'"
        assert row[column][1:].strip() == (before + formula).strip()


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_text_of_a_process_is_one(formula):
    """They are written by whoever starts it."""
    columns = ("host", "gpu_uuid", "user", "name", "command", "container")
    one = a_card()
    start = process(one.gpus[0], "alice")._replace(**dict.fromkeys(columns, formula))
    (row,) = rows(one._replace(processes=(start,)), "processes")
    assert [row[column] for column in columns] == [f"'{formula}"] * 6


@pytest.mark.parametrize("formula", FORMULAS)
def test_none_of_the_users_is_one(formula):
    """A spreadsheet that splits lines at semicolons would make a cell of each."""
    (row,) = rows(a_card(users=(formula, "alice", f" {formula}", f'"{formula}')), "gpus")
    assert row["users"] == f"'{formula};alice;' {formula};'\"{formula}"
    (row,) = rows(a_card(name=f"A100;{formula}"), "gpus")
    assert row["name"] == f"A100;'{formula}"


@pytest.mark.parametrize("char", ["\t", "\r", "\n", "\x00", "\x9b", "\u202e"])
def test_what_can_not_be_seen_starts_none_and_breaks_no_row(char):
    """A spreadsheet may pass over it, or take it for the end of a cell; a terminal may obey it."""
    (row,) = rows(a_card(name=f"{char}=1", mig_mode=f"a{char}=1", users=(f"{char}=1",)), "gpus")
    assert (row["name"], row["mig_mode"], row["users"]) == ("�=1", "a�=1", "�=1")


@pytest.mark.parametrize("text", ["A100-SXM4", "a=b", "1-2", "alice@lab", "e+5", "'=1", "a; b", "–", ""])  # noqa: RUF001
def test_ordinary_text_has_no_apostrophe(text):
    """A sign within a text is no formula."""
    assert rows(a_card(name=text), "gpus")[0]["name"] == text


def test_negative_numbers_are_numbers():
    """The minus is theirs."""
    card = gpu("gpu1", 0, temperature_c=-7, power_w=-0.5)
    (row,) = rows(Snapshot(NOW, (host("gpu1"),), (card,)), "gpus")
    assert (row["temperature_c"], row["power_w"]) == ("-7", "-0.5")


@quick
@given(labs(st.text('=+-@";, ab＝', min_size=1)))  # noqa: RUF001
def test_no_cell_is_a_formula_wherever_a_spreadsheet_splits(snapshot):
    """At commas or at semicolons; a sign before a number and nothing else is that of the number."""
    for name in KINDS:
        for delimiter in ",;":
            for row in csv.reader(
                io.StringIO(written(snapshot)[f"{name}.csv"], newline=""), delimiter=delimiter
            ):
                for cell in row:
                    assert not re.match(r"\s*[=+\-@＝＋－＠]", cell) or re.fullmatch(r"-[\d.,]+", cell)  # noqa: RUF001


def test_they_know_no_more_than_the_data_folder():
    """Users that are masked, and commands that are not kept, were so when they were fetched."""
    privacy = Privacy("none", "mask", b"salt")
    card = gpu("gpu1", 0, state="busy", users=(privacy.user("alice"),))
    kept = privacy.process(process(card, "alice", "secret.py"))
    made = written(Snapshot(NOW, (host("gpu1"),), (card,), (kept,)))
    for path in ("snapshot.json", "gpus.csv", "processes.csv"):
        assert privacy.user("alice") in made[path]
        assert "alice" not in made[path]
        assert "secret" not in made[path]
