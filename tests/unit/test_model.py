"""What webmon talks about."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webmon.model import Gpu, Host, Problem, Process, Snapshot, natural_order

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("snapshot", "summary"),
    [
        (Snapshot(NOW), "0 hosts: 0 up; 0 GPUs: 0 free"),
        (
            Snapshot(NOW, (Host("a", status="up"),), (Gpu("a", 0, state="free"),)),
            "1 host: 1 up; 1 GPU: 1 free",
        ),
        (
            Snapshot(
                NOW,
                (Host("a", status="up"), Host("b", status="degraded"), Host("c"), Host("d")),
                (Gpu("a", 0, state="free"), Gpu("a", 1, state="busy"), Gpu("b", 0)),
            ),
            "4 hosts: 1 up, 1 degraded, 2 down; 3 GPUs: 1 free",
        ),
    ],
)
def test_a_summary_is_one_line(snapshot, summary):
    """Hosts by status, those that are up even when none is; how many GPUs are free."""
    assert snapshot.summary() == summary


def test_gpus_and_processes_are_found_by_host_in_their_order():
    """As pages and commands want them."""
    gpus = (Gpu("b", 1), Gpu("a", 0), Gpu("b", 0))
    processes = (Process("b", 0, None, 2), Process("b", 0, None, 1))
    snapshot = Snapshot(NOW, (), gpus, processes)
    assert snapshot.gpus_by_host() == {"b": [gpus[0], gpus[2]], "a": [gpus[1]]}
    assert snapshot.processes_by_host() == {"b": list(processes)}


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("x", "It is lost."), "It is lost."),
        (Problem("x", "It is lost.", "Reboot"), "It is lost. Reboot"),
        (Problem("x", "It is lost", "Reboot"), "It is lost. Reboot"),
    ],
)
def test_a_problem_says_itself_and_its_remedy(problem, text):
    """In one line, with one full stop between the two."""
    assert str(problem) == text


def test_names_are_sorted_as_people_count():
    """gpu2 stands before gpu10, and case does not matter."""
    names = ["GPU1", "gpu02", "gpu2", "gpu10", "gpu10-ib", "gpu10.lab", "node1", "node" + "9" * 40]
    shuffled = Random(1).sample(names, len(names))
    assert sorted(shuffled, key=natural_order) == names


@given(st.text(max_size=20).filter(lambda text: not text[-1:].isdigit()), st.integers(0, 10**17))
def test_any_numbered_names_stand_in_their_order(name, number):
    """Whatever stands before the number, digits of other scripts included."""
    assert natural_order(f"{name}{number}") < natural_order(f"{name}{number + 1}")
