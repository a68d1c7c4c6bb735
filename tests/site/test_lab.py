"""The snapshot as every view has it: hosts in order, cards with what is on them, names in files."""

from __future__ import annotations

import pytest
from any_lab import labs, quick
from clusters import NOW, gpu, host, lab, process
from hypothesis import given
from unit.snapshots import SNAPSHOTS

from webmon.model import Snapshot
from webmon.publish import lab as arrange
from webmon.publish.addresses import file_names, gpu_places


def test_hosts_stand_in_natural_order_with_what_is_theirs():
    """Their cards, their address where it is known, how many are free."""
    made = arrange.lab(lab(), {"gpu2": "10.0.0.2"})
    assert [one.host.host for one in made.hosts] == ["gpu2", "gpu10", "gpu11", "split", "wild", "zero"]
    assert [one.address for one in made.hosts] == ["10.0.0.2", *[None] * 5]
    assert [(one.free, len(one.gpus)) for one in made.hosts] == [
        (1, 3), (1, 4), (0, 2), (0, 2), (2, 4), (0, 0)
    ]  # fmt: skip
    assert (made.free, made.total, made.taken_at) == (4, 15, NOW)


def test_the_largest_process_stands_first():
    """Then the one whose number is lowest; one of unknown size is small."""
    card = gpu("a", 0, state="busy")
    sizes = ((3, None), (2, 900), (1, 900), (4, 1000))
    processes = tuple(process(card, "alice", pid=pid, memory_mib=size) for pid, size in sizes)
    (one,) = arrange.lab(Snapshot(NOW, (host("a"),), (card,), processes)).hosts
    assert [process.pid for process in one.gpus[0].processes] == [4, 1, 2, 3]


def test_what_is_on_no_card_of_its_host_is_astray():
    """Another card has come in the place of the one that it names, or it names none."""
    card = gpu("a", 0, state="busy")
    processes = (
        process(card, "here"),
        process(card, "else", gpu_uuid="GPU-gone", memory_mib=1),
        process(card, "none", gpu_index=None, gpu_uuid=None),
    )
    (one,) = arrange.lab(Snapshot(NOW, (host("a"),), (card,), processes)).hosts
    assert [process.user for process in one.gpus[0].processes] == ["here"]
    assert [process.user for process in one.strays] == ["none", "else"]


@pytest.mark.parametrize(
    ("status", "reason", "state", "known"),
    [
        ("up", None, "free", True),
        ("up", None, "busy", True),
        ("up", None, "held", True),
        ("up", None, "unknown", False),
        ("degraded", "lost-gpu", "free", True),
        ("degraded", "lost-gpu", "faulty", False),
        ("degraded", "no-processes", "busy", False),
        ("down", "timeout", "free", False),
    ],
)
def test_a_card_without_processes_has_none_only_if_that_is_known(status, reason, state, known):
    """Not when the list could not be had, or the card, or the host."""
    snapshot = Snapshot(NOW, (host("a", status, reason=reason),), (gpu("a", 0, state=state),))
    (one,) = arrange.lab(snapshot).hosts[0].gpus
    assert (one.processes_are_known, list(one.processes)) == (known, [])


@pytest.mark.parametrize(
    ("used", "total", "free", "share"),
    [
        (4, 10, 6, 40.0),
        (0, 10, 10, 0.0),
        (12, 10, 0, 120.0),
        (None, 10, None, None),
        (4, None, None, None),
        (0, 0, 0, None),
    ],
)
def test_free_memory_is_what_is_not_in_use(used, total, free, share):
    """It is not known when one of the two is not, and never below 0."""
    card = gpu("a", 0)._replace(memory_used_mib=used, memory_total_mib=total)
    (one,) = arrange.lab(Snapshot(NOW, (host("a"),), (card,))).hosts[0].gpus
    assert (one.memory_free_mib, one.memory_pct) == (free, share)


@quick
@given(SNAPSHOTS | labs())
def test_nothing_of_a_host_is_lost_or_counted_twice(snapshot):
    """Each card is there once, each process at least once; what belongs to no host is no host's."""
    made = arrange.lab(snapshot)
    hosts = {one.host for one in snapshot.hosts}
    assert sorted(one.host for one in made.hosts) == sorted(snapshot.hosts)
    assert made.total == sum(card.host in hosts for card in snapshot.gpus)
    for one in made.hosts:
        assert [on.gpu for on in one.gpus] == [card for card in snapshot.gpus if card.host == one.host.host]
        assert len({on.place for on in one.gpus}) == len(one.gpus)
        shown = {process for on in one.gpus for process in on.processes} | set(one.strays)
        assert shown == {process for process in snapshot.processes if process.host == one.host.host}


@pytest.mark.parametrize(
    ("hosts", "names"),
    [
        (["gpu1.lab", "a-b_c"], ["gpu1.lab", "a-b_c"]),
        (["mixed:2222", "mixed_2222"], ["mixed_2222", "mixed_2222_2"]),
        (["GPU1", "gpu1", "Gpu1"], ["GPU1", "gpu1_2", "Gpu1_3"]),
        (["a_2", "a", "A"], ["a_2", "a", "A_3"]),
        ([".", "..", "/"], ["_", "__", "__2"]),
        (["index.json"], ["index.json_2"]),
        (["x" * 300, "x" * 299], ["x" * 200, "x" * 200 + "_2"]),
    ],
)
def test_no_two_hosts_share_a_file(hosts, names):
    """Not where capitals don't count either; no name leads out of the folder, or is too long for it."""
    assert list(file_names(hosts).values()) == names


def test_no_two_cards_share_a_place():
    """Not where an index is there twice or three times."""
    cards = [gpu("a", index) for index in (0, 1, 0, 0, 1)]
    assert gpu_places(cards) == ["gpu0", "gpu1", "gpu0_2", "gpu0_3", "gpu1_2"]


@pytest.mark.parametrize(
    ("used", "total", "state", "left"),
    [(10, 100, "busy", 90), (110, 100, "busy", 0), (0, 100, "faulty", None), (None, 100, "free", None)],
)
def test_memory_that_is_left(used, total, state, left):
    """None that is known of a card in error: whoever picks by it would take that one first."""
    card = gpu("a", 0, state=state)._replace(memory_used_mib=used, memory_total_mib=total)
    (one,) = arrange.lab(Snapshot(NOW, (host("a"),), (card,))).hosts[0].gpus
    assert one.memory_free_mib == left
