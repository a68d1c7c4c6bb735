"""How figures are compared with the answers."""

from __future__ import annotations

import month
import pytest

from webmon.store import stats
from webmon.store.rollup import Rollups
from webmon.usage import Use

WINDOWS = (1, 7, 30, 365)


def rollups(folder, *, save=False, **options):
    return Rollups(folder, month.END, save=save, **options)


def agree(folder, days=WINDOWS, *, save=False, rel=0.001):
    """Compare every figure of some windows with the answers, to 0.1 %; ten seconds are nothing."""
    sums = rollups(folder, save=save)
    for number in days:
        compare(stats.window(sums, number), number, rel)
    return sums


def compare(window, days, rel=0.001):
    start = month.LAST - 86400 * days
    wanted = month.answers(start)
    _same({"": window.total}, wanted["total"], f"{days} days", rel)
    _same(window.users, wanted["user"], f"{days} days, user", rel)
    _same(window.hosts, wanted["host"], f"{days} days, host", rel)
    _same(window.models, wanted["model"], f"{days} days, model", rel)
    polled = month.overlap(start, month.LAST)
    assert window.polled_hours == pytest.approx(polled, rel=rel)
    assert window.polled_pct == pytest.approx(100 * polled / (24 * days), rel=rel)
    for use, sums in [(window.total, wanted["total"][""])] + [
        (window.hosts[host], wanted["host"][host]) for host in wanted["host"]
    ]:
        whole = sum(sums[state] for state in ("free", "busy", "held", "faulty", "unknown"))
        part = (whole - sums["unknown"]) / whole
        assert window.coverage_pct(use) == pytest.approx(100 * part * polled / (24 * days), rel=rel)
        if sums["measured"]:
            assert use.utilization_pct == pytest.approx(100 * sums["worked"] / sums["measured"], rel=rel)
    hours = [use.hours for use in window.users.values()]
    assert hours == sorted(hours, reverse=True)


def _same(uses, wanted, what, rel):
    assert set(uses) == set(wanted), what
    for key, use in uses.items():
        for name in Use._fields:
            told, true = getattr(use, name), wanted[key].get(name, 0.0)
            assert told == pytest.approx(true, rel=rel, abs=0.003), f"{what} {key}: {name}"
