"""Readings and the snapshot before become the snapshot now."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from webmon.availability import Rules
from webmon.collect.assemble import Answer, assemble
from webmon.collect.privacy import Privacy
from webmon.errors import HostError
from webmon.model import CLAIM, Gpu, Host, Problem, Process, Reading, Snapshot

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(minutes=5)
LONG_AGO = NOW - timedelta(hours=9)


def gpu(index, uuid=None, host="gpu01", **changes):
    """Return an idle card as the parser gives it; its uuid is GPU-<index> unless told."""
    card = Gpu(
        host,
        index,
        uuid or f"GPU-{index}",
        "A6000",
        utilization_pct=0,
        memory_used_mib=0,
        memory_total_mib=1000,
    )
    return card._replace(**changes)


def lost(index):
    return Gpu("gpu01", index, state="faulty")


def process(index, pid=1, user="alice", **changes):
    return Process("gpu01", index, f"GPU-{index}", pid, user=user, name="python")._replace(**changes)


def reading(*gpus, processes=(), **facts):
    return Reading(gpus=gpus, processes=processes, **facts)


def snapshot(*results, before=None, rules=None, privacy=None, now=NOW):
    """Assemble what hosts gpu01, gpu02 … answered."""
    answers = [Answer(f"gpu{n:02d}", result, now, 321) for n, result in enumerate(results, start=1)]
    return assemble(answers, before, rules or Rules(), privacy or Privacy(), now)


def past(*gpus, **host):
    """Return a snapshot in which gpu01 had these cards."""
    return Snapshot(EARLIER, (Host("gpu01", status="up", **host),), gpus)


DOWN = HostError("timeout", "no answer within 20 s", "Look at it")


def test_a_host_that_answered_is_up_and_was_seen_now():
    """Everything that the machine said of itself is kept."""
    facts = {"driver": "550", "load1": 1.5, "cpus": 8, "ram_used_mib": 10, "ram_total_mib": 20}
    answer = Answer("gpu01", reading(gpu(0), gpu(1), **facts), NOW, 321, "the big one", "vision")
    assert assemble([answer], None, Rules(), Privacy(), NOW).hosts == (
        Host("gpu01", "the big one", "vision", "up", None, None, NOW, NOW, 321, "550", 2, 1.5, 8, 10, 20),
    )


def test_a_host_with_a_problem_is_degraded():
    """It answered, so it was seen; the reason is for programs, the error for people."""
    problem = Problem("lost-gpu", "1 of 2 GPUs lost:\x1b[2J it is", "Reboot")
    (host,) = snapshot(reading(gpu(0), lost(1), problem=problem)).hosts
    assert (host.status, host.reason, host.last_seen) == ("degraded", "lost-gpu", NOW)
    assert host.error == "1 of 2 GPUs lost:�[2J it is. Reboot"


def test_a_host_that_is_down_keeps_its_cards_and_when_it_was_seen():
    """Its rows stay, unknown and without a reading; identity and idle_since stay too."""
    busy = gpu(0, state="busy", users=("alice",), temperature_c=50, idle_since=None)
    idle = gpu(1, state="free", idle_since=LONG_AGO)
    now = snapshot(DOWN, before=past(busy, idle, last_seen=EARLIER, driver="550", cpus=8))
    assert now.gpus == (
        Gpu("gpu01", 0, "GPU-0", "A6000"),
        Gpu("gpu01", 1, "GPU-1", "A6000", idle_since=LONG_AGO),
    )
    assert now.processes == ()
    assert now.hosts == (
        Host(
            "gpu01",
            status="down",
            reason="timeout",
            error="no answer within 20 s. Look at it",
            checked_at=NOW,
            last_seen=EARLIER,
            duration_ms=321,
            gpus=2,
        ),
    )


def test_a_host_stays_down_without_losing_anything():
    """The second poll that it misses is like the first."""
    before = past(gpu(0, state="free", idle_since=LONG_AGO), last_seen=EARLIER)
    once = snapshot(DOWN, before=before)
    twice = snapshot(DOWN, before=once, now=NOW + timedelta(minutes=5))
    assert twice.gpus == once.gpus
    assert twice.hosts[0].last_seen == EARLIER


def test_a_host_that_was_never_seen_has_no_number_of_cards():
    """Not known is not 0, nor is it after the second poll."""
    once = snapshot(DOWN)
    for taken in (once, snapshot(DOWN, before=once, now=NOW + timedelta(minutes=5))):
        (host,) = taken.hosts
        assert (host.status, host.last_seen, host.gpus) == ("down", None, None)


def test_a_host_that_answers_without_its_cards_keeps_them_too():
    """Without its driver it can't list them; they are still there, and nothing is known of them."""
    before = past(gpu(0, state="free", idle_since=LONG_AGO))
    now = snapshot(Reading(problem=Problem("no-driver", "no driver")), before=before)
    assert now.gpus == (Gpu("gpu01", 0, "GPU-0", "A6000", idle_since=LONG_AGO),)
    assert (now.hosts[0].status, now.hosts[0].gpus) == ("degraded", 1)


def test_a_host_that_is_no_longer_asked_is_gone():
    """And so are its cards: it was taken out of the configuration."""
    assert snapshot(before=past(gpu(0))) == Snapshot(NOW)


def test_hosts_stay_in_the_order_of_the_configuration():
    """And so do their cards, those of a host that is down among them."""
    before = past(gpu(0))
    now = snapshot(DOWN, reading(gpu(0, host="gpu02")), DOWN, before=before)
    assert [host.host for host in now.hosts] == ["gpu01", "gpu02", "gpu03"]
    assert [(card.host, card.state) for card in now.gpus] == [("gpu01", "unknown"), ("gpu02", "free")]


def test_idle_since_is_when_a_card_was_first_seen_idle():
    """It is carried over from poll to poll."""
    first = snapshot(reading(gpu(0)))
    second = snapshot(reading(gpu(0)), before=first, now=NOW + timedelta(hours=1))
    assert first.gpus[0].idle_since == second.gpus[0].idle_since == NOW


def test_idle_since_ends_when_a_card_is_at_work():
    """And begins anew after that."""
    before = past(gpu(0, idle_since=LONG_AGO))
    busy = snapshot(reading(gpu(0, utilization_pct=90, memory_used_mib=500)), before=before)
    assert busy.gpus[0].idle_since is None
    assert snapshot(reading(gpu(0)), before=busy).gpus[0].idle_since == NOW


def test_idle_since_outlasts_the_time_that_a_host_is_down():
    """What was idle before and is idle after was not seen to be anything else."""
    before = past(gpu(0, idle_since=LONG_AGO))
    assert snapshot(reading(gpu(0)), before=snapshot(DOWN, before=before)).gpus[0].idle_since == LONG_AGO


def test_a_card_that_is_held_becomes_so_after_a_while():
    """held_after_min counts from idle_since, not from when the process was started."""
    held = reading(gpu(0, memory_used_mib=500), processes=(process(0),))
    rules = Rules(held_after_min=10)
    at_first = snapshot(held, rules=rules)
    later = snapshot(held, before=at_first, rules=rules, now=NOW + timedelta(minutes=10))
    assert (at_first.gpus[0].state, later.gpus[0].state) == ("busy", "held")


def test_a_card_is_known_by_its_uuid_not_by_its_index():
    """After a reboot the indices may have shifted."""
    before = past(gpu(0, "GPU-a", idle_since=LONG_AGO), gpu(1, "GPU-b", idle_since=EARLIER))
    now = snapshot(reading(gpu(0, "GPU-b"), gpu(1, "GPU-a")), before=before)
    assert [(card.uuid, card.idle_since) for card in now.gpus] == [("GPU-b", EARLIER), ("GPU-a", LONG_AGO)]


def test_cards_of_two_hosts_are_not_mixed_up():
    """Cloned machines can have the same uuids in a test, and indices they always share."""
    before = Snapshot(EARLIER, (Host("gpu01"), Host("gpu02")), (gpu(0, idle_since=LONG_AGO),))
    now = snapshot(reading(gpu(0)), reading(gpu(0, host="gpu02")), before=before)
    assert [card.idle_since for card in now.gpus] == [LONG_AGO, NOW]


def test_a_lost_card_gets_the_identity_that_is_missing():
    """It can't say who it is; of four, three said so."""
    before = past(*(gpu(index) for index in range(4)))
    now = snapshot(reading(gpu(0), gpu(1), lost(2), gpu(3)), before=before)
    assert now.gpus[2] == Gpu("gpu01", 2, "GPU-2", "A6000", state="faulty")
    assert now.hosts[0].gpus == 4


def test_lost_cards_get_the_identity_of_their_index_first():
    """Of two that are missing, the one with the same index is the better guess."""
    before = past(*(gpu(index) for index in range(3)))
    now = snapshot(reading(lost(0), gpu(1), lost(2)), before=before)
    assert [card.uuid for card in now.gpus] == ["GPU-0", "GPU-1", "GPU-2"]


def test_lost_cards_get_what_is_left_when_indices_have_shifted():
    """The cards that remain were numbered anew."""
    before = past(gpu(0, "GPU-a"), gpu(1, "GPU-b"), gpu(2, "GPU-c"))
    now = snapshot(reading(gpu(0, "GPU-b"), lost(1), lost(2)), before=before)
    assert [card.uuid for card in now.gpus] == ["GPU-b", "GPU-a", "GPU-c"]


def test_a_lost_card_without_a_past_stays_nameless():
    """Nothing is made up, and nothing is handed out twice."""
    assert snapshot(reading(gpu(0), lost(1))).gpus[1].uuid is None
    now = snapshot(reading(lost(0), lost(1)), before=past(gpu(0)))
    assert [card.uuid for card in now.gpus] == ["GPU-0", None]
    again = snapshot(reading(lost(0), lost(1)), before=now)
    assert [card.uuid for card in again.gpus] == ["GPU-0", None]


def test_a_faulty_card_was_not_idle():
    """When it is back, its time starts anew."""
    now = snapshot(reading(gpu(0, state="faulty")), before=past(gpu(0, idle_since=LONG_AGO)))
    assert (now.gpus[0].state, now.gpus[0].idle_since) == ("faulty", None)


def test_users_are_those_of_the_processes_on_the_card():
    """Each once, in order; ignored processes and unknown owners don't count."""
    processes = (
        process(0, 1, "carol"),
        process(0, 2, "alice"),
        process(0, 3, "alice"),
        process(0, 4, None),
        process(0, 5, "root", name="/usr/lib/xorg/Xorg"),
        process(1, 6, "bob"),
    )
    now = snapshot(reading(gpu(0), gpu(1), gpu(2), processes=processes))
    assert [card.users for card in now.gpus] == [("alice", "carol"), ("bob",), ()]
    assert [card.state for card in now.gpus] == ["busy", "busy", "free"]


def test_a_process_that_names_no_card_of_the_host_may_be_on_any():
    """As one that names a MIG instance does: then no card there is free."""
    stray = process(0, gpu_index=None, gpu_uuid="MIG-1")
    now = snapshot(reading(gpu(0), gpu(1), processes=(stray,)), reading(gpu(0, host="gpu02")))
    assert [card.state for card in now.gpus] == ["busy", "busy", "free"]
    assert [card.users for card in now.gpus] == [(), (), ()]


def test_without_the_list_of_processes_no_card_is_free():
    """Unknown, not idle; and the snapshot has no processes of that host."""
    now = snapshot(reading(gpu(0), processes=None), reading(gpu(0, host="gpu02")))
    assert [card.state for card in now.gpus] == ["unknown", "free"]
    assert now.processes == ()


def test_rules_are_those_of_the_configuration():
    """[free] decides, for the state and for idle_since alike."""
    card = gpu(0, utilization_pct=40, memory_used_mib=400)
    free = Rules(max_memory_pct=50, max_utilization_pct=50)
    assert [card.state for card in snapshot(reading(card)).gpus] == ["busy"]
    assert [card.state for card in snapshot(reading(card), rules=free).gpus] == ["free"]
    assert snapshot(reading(card), rules=free).gpus[0].idle_since == NOW


SECRET = process(0, command="python /home/alice/train.py --key SECRET", name="/usr/bin/python --key SECRET")


@pytest.mark.parametrize("command", ["name", "none"])
def test_privacy_leaves_no_arguments_anywhere(command):
    """Not in the processes, not in the cards."""
    now = snapshot(reading(gpu(0), processes=(SECRET,)), privacy=Privacy(command))
    assert "SECRET" not in repr(now)


def test_full_commands_are_kept_when_that_is_wanted():
    """[privacy] command = "full"."""
    now = snapshot(reading(gpu(0), processes=(SECRET,)), privacy=Privacy("full"))
    assert now.processes == (SECRET,)


def test_masked_users_are_masked_everywhere():
    """With one pseudonym for the card and the process, in the order of the pseudonyms."""
    users = ("alice", "bob", "carol", "dave")
    processes = tuple(process(0, pid, user) for pid, user in enumerate(users))
    now = snapshot(reading(gpu(0), processes=processes), privacy=Privacy("name", "mask", b"salt"))
    assert not any(user in repr(now) for user in users)
    assert now.gpus[0].users == tuple(sorted(str(process.user) for process in now.processes))
    assert len(now.gpus[0].users) == 4


def test_what_is_ignored_is_judged_before_privacy_hides_it():
    """Without names nothing could be ignored."""
    desktop = process(0, name="/usr/lib/xorg/Xorg", user="root")
    now = snapshot(reading(gpu(0), processes=(desktop,)), privacy=Privacy("none", "mask"))
    assert now.gpus[0].state == "free"
    assert now.processes[0].name is None


def test_a_process_on_a_lost_card_leaves_the_others_free():
    """The lost card is the one that is missing, so the process is on that one."""
    before = Snapshot(EARLIER, (Host("gpu01"),), tuple(gpu(index) for index in range(3)))
    reading = Reading((gpu(0), lost(1), gpu(2)), (process(1),), Problem("lost-gpu", "1 of 3"))
    now = assemble([Answer("gpu01", reading, NOW, 5)], before, Rules(), Privacy(), NOW)
    assert [card.state for card in now.gpus] == ["free", "faulty", "free"]
    assert now.gpus[1].users == ("alice",)


def test_a_claim_is_left_out_once_its_owner_is_at_work_there():
    """An ignored process of his is no work, and neither is somebody else's."""
    claim = process(0, pid=9, user="bob", name=CLAIM)
    for other, names in (
        (process(0, user="bob"), ["python"]),
        (process(0, user="eve"), ["python", CLAIM]),
        (process(1, user="bob"), ["python", CLAIM]),
        (process(0, user="bob", name="Xorg"), ["Xorg", CLAIM]),
        (process(0, user=None), ["python", CLAIM]),
    ):
        now = snapshot(reading(gpu(0), gpu(1), processes=(other, claim)))
        assert [p.name for p in now.processes] == names
        assert now.gpus[0].state == "busy"
