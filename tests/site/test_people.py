"""users.html, worked out: who has what, and who used how much."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lab as small
from usage_seen import ALICE, past, window

from webmon.availability import Rules
from webmon.config.settings import SiteSettings
from webmon.model import CLAIM, Gpu, Host, Process, Snapshot
from webmon.publish.lab import lab
from webmon.publish.look import Look
from webmon.publish.people import people
from webmon.usage import NOTHING_PAST, Past, Use, users_now

PIDS = itertools.count(1)
NOW = datetime(2026, 11, 18, 8, 25, tzinfo=UTC)


def seen(snapshot, past=NOTHING_PAST, price=None):
    site = SiteSettings(Path("site"), "GPU monitor", 60, None, price)
    return people(lab(snapshot, past=past), Look(site, {}, NOW, timedelta(minutes=5)))


def on(host, index, user, memory=None, **more):
    name, pid = more.pop("name", "python"), more.pop("pid", next(PIDS))
    return Process(host, index, f"{host}-{index}", pid, user, name, memory_mib=memory, **more)


def snapshot(*processes):
    hosts = ("gpu10", "gpu2", "odd host:22")
    gpus = tuple(Gpu(host, index, f"{host}-{index}") for host in hosts for index in range(4))
    return Snapshot(NOW, tuple(Host(host, status="up") for host in hosts), gpus, processes)


def test_who_has_what_now():
    """By memory; hosts in their natural order, each with its GPUs, and a link to its page."""
    shown = seen(
        snapshot(
            on("gpu10", 3, "alice", 1024),
            on("gpu10", 1, "alice", 1024),
            on("gpu2", 0, "alice", 1024),
            on("gpu2", 0, "alice", 1024),
            on("odd host:22", 0, "bob", 10240),
            on("gpu2", 1, None, 512),
            on("gpu2", 2, "carol"),
        )
    )
    rows = [(one.user, one.gpus, one.memory, one.processes) for one in shown.holders]
    assert rows == [
        ("bob", 1, "10\u202fGB", 1),
        ("alice", 3, "4\u202fGB", 4),
        ("owner hidden", 1, "0.5\u202fGB", 1),
        ("carol", 1, "–", 1),  # noqa: RUF001
    ]
    assert shown.holders[1].places == [("gpu2:0", "hosts/gpu2.html"), ("gpu10:1,3", "hosts/gpu10.html")]
    assert shown.holders[0].places == [("odd host:22:0", "hosts/odd_host_22.html")]


def test_ignored_processes_do_not_count():
    """Nor does the desktop of the whole lab."""
    assert seen(snapshot(on("gpu2", 0, "root", 40, name="/usr/lib/xorg/Xorg"))).holders == []


def test_a_claim_counts_and_a_process_of_no_gpu_has_no_place():
    """Who has claimed a card has it; what is on no known card is a process all the same."""
    now = users_now(snapshot(on("gpu2", 0, "ann", name=CLAIM), on("gpu2", None, "ann", 100)), Rules())
    assert (now["ann"].held, now["ann"].places, now["ann"].processes) == (1, "gpu2:0", 2)
    assert now["ann"].memory_mib == 100


def test_a_process_on_several_gpus_is_one():
    """It has a row for each of them."""
    now = users_now(snapshot(*(on("gpu2", index, "ann", 10, pid=7) for index in range(4))), Rules())
    assert (now["ann"].held, now["ann"].processes, now["ann"].memory_mib) == (4, 1, 40)


def test_who_used_how_much():
    """The largest first, each with a part of the largest's bar, and all of them together."""
    shown = seen(snapshot(), past(NOW))
    assert [account.title for account in shown.accounts] == ["24 hours", "7 days", "30 days"]
    day = shown.accounts[0]
    assert day.since == NOW - timedelta(days=1)
    assert [(row.user, row.hours, row.level) for row in day.rows] == [
        ("alice", "24.0", " v100"),
        ("bob", "6.0", " v20 v5"),
        ("owner hidden", "1.0", " v4"),
    ]
    alice = day.rows[0]
    assert (alice.sole, alice.shared, alice.held) == ("18.0", "6.0", "4.0")
    assert (alice.utilization, alice.energy, alice.cost) == ("50\u202f%", "6.0", "")
    assert (day.total.user, day.total.hours, day.total.energy) == ("all users", "31.0", "7.5")
    assert day.rows[2].energy == "–"  # noqa: RUF001


def test_how_much_of_the_time_is_known_is_said():
    """What was not polled, and what did not answer: no figure without it."""
    (day, *_) = seen(snapshot(), past(NOW)).accounts
    known = 100 * (23.75 / 24) * (71 / 80)
    assert day.coverage == (
        f"Of the time 99.0\u202f% was polled; of the GPU-hours, {known:.1f}\u202f% are known"
    )


def test_energy_has_a_price_where_one_is_given():
    """And what is not known costs nobody knows what."""
    shown = seen(snapshot(), past(NOW), price=0.5)
    assert shown.has_cost
    assert [row.cost for row in shown.accounts[0].rows] == ["3.00", "0.75", "–"]  # noqa: RUF001
    assert not seen(snapshot(), past(NOW)).has_cost


def test_nobody_used_anything():
    """An empty lab has an account too, without rows."""
    alone = window(NOW, 1, users={}, total=Use())
    shown = seen(snapshot(), Past({1: alone}, (), {}))
    assert shown.accounts[0].rows == []
    assert shown.accounts[0].coverage.endswith("of the GPU-hours, 0.0\u202f% are known")
    assert seen(snapshot()).accounts == []


def test_the_small_lab_agrees_with_its_processes():
    """Every process is in somebody's row."""
    shown = seen(small.lab())
    assert sum(one.processes for one in shown.holders) == len(small.lab().processes)
    assert ALICE.hours == ALICE.sole + ALICE.shared
