"""How long a card is idle counts by its power beside its utilization: a moment's pause is not idle."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from webmon.availability import Rules, is_at_rest, is_idle, state_of
from webmon.collect.assemble import Answer, assemble
from webmon.collect.privacy import Privacy
from webmon.model import Gpu, Host, Process, Reading, Snapshot

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=9)
RULES = Rules()
ON_IT = (Process("gpu01", 0, "GPU-0", 1, user="alice", name="python", memory_mib=900),)


def card(power=None, limit=400.0, **changes):
    return Gpu(
        "gpu01", 0, "GPU-0", "A6000", utilization_pct=0, memory_used_mib=900, memory_total_mib=1000
    )._replace(power_w=power, power_limit_w=limit, **changes)


@pytest.mark.parametrize(
    ("gpu", "at_rest"),
    [
        (card(80.0), True),
        (card(200.0), True),
        (card(201.0), False),
        (card(300.0), False),
        (card(None), True),
        (card(300.0, None), True),
        (card(300.0, 0.0), True),
        (card(80.0, utilization_pct=6), False),
        (card(80.0, utilization_pct=None), False),
    ],
)
def test_a_card_that_draws_more_than_half_of_its_limit_is_at_work(gpu, at_rest):
    """Without a power draw, or a limit, the utilization decides alone."""
    assert is_at_rest(gpu, ON_IT, RULES) is at_rest
    long_idle = state_of(gpu, ON_IT, RULES, now=NOW, idle_since=LONG_AGO)
    assert long_idle == ("held" if at_rest else "busy")


def test_a_free_card_stays_free_whatever_it_draws():
    """Nobody is on it: power is no sign of anybody."""
    gpu = card(390.0, memory_used_mib=0)
    assert is_idle(gpu, (), RULES)
    assert is_at_rest(gpu, (), RULES)
    assert state_of(gpu, (), RULES, now=NOW, idle_since=LONG_AGO) == "free"


def polled(gpu, before=None, now=NOW):
    answer = Answer("gpu01", Reading(gpus=(gpu,), processes=ON_IT), now, 321)
    return assemble([answer], before, RULES, Privacy(), now)


@pytest.mark.parametrize(("power", "since", "state"), [(300.0, None, "busy"), (80.0, LONG_AGO, "held")])
def test_idle_since_ends_with_the_power(power, since, state):
    """At three quarters of its limit a card with 0 % is no longer idle; at a fifth it still is."""
    before = Snapshot(LONG_AGO, (Host("gpu01", status="up"),), (card(80.0, idle_since=LONG_AGO),))
    (gpu,) = polled(card(power), before).gpus
    assert (gpu.idle_since, gpu.state) == (since, state)


def test_it_counts_from_anew_afterwards():
    """A pause of five minutes after work is not held."""
    working = polled(card(300.0))
    later = NOW + timedelta(minutes=5)
    (gpu,) = polled(card(80.0), working, later).gpus
    assert (gpu.idle_since, gpu.state) == (later, "busy")
