"""In which order GPUs are picked."""

from __future__ import annotations

from random import Random

import pytest
from offered import gpu, offer

from webmon.pick.choose import ORDERS, ordered


def never():
    raise AssertionError("this order leaves nothing to chance")


def order(cards, by, draw=never):
    return [o.gpu.index for o in ordered([offer(card) for card in cards], by, draw)]


@pytest.mark.parametrize(
    ("by", "field", "values", "expected"),
    [
        ("index", "power_limit_w", [1.0, 2.0, 3.0], [0, 1, 2]),
        ("free-memory", "memory_used_mib", [300, None, 100, 200, 100], [2, 4, 3, 0, 1]),
        ("power", "power_limit_w", [250.0, None, 700.0, 300.0, 700.0], [2, 4, 3, 0, 1]),
        ("name", "name", ["RTX 10", None, "rtx 9", "A100", "RTX 10"], [3, 2, 0, 4, 1]),
    ],
)
def test_the_best_comes_first(by, field, values, expected):
    """Most free memory, most power, names as a person reads them; what is not known comes last."""
    cards = [gpu(index, **{field: value}) for index, value in enumerate(values)]
    assert order(cards, by) == expected


def test_at_random_every_order_comes_up():
    """Two that look at the same moment rarely want the same card."""
    random = Random(4)
    seen = {
        tuple(order([gpu(i) for i in range(3)], "random", lambda: random.randbytes(8))) for _ in range(99)
    }
    assert len(seen) == 6


def test_at_random_a_card_that_does_nothing_comes_before_one_that_does_little():
    """With `--util 10`, the idle ones are taken first; one that does not say counts as idle."""
    random = Random(5)
    cards = [gpu(0, utilization_pct=3), gpu(1), gpu(2, utilization_pct=1), gpu(3, utilization_pct=None)]
    for _ in range(20):
        found = order(cards, "random", lambda: random.randbytes(8))
        assert (set(found[:2]), set(found[2:])) == ({1, 3}, {0, 2})


@pytest.mark.parametrize("by", ORDERS)
def test_an_order_loses_nobody(by):
    """Nor does it add any; of none, it makes none."""
    cards = [gpu(index) for index in range(5)]
    assert sorted(order(cards, by, lambda: b"")) == [0, 1, 2, 3, 4]
    assert order([], by, lambda: b"") == []
