"""Which GPUs fit a wish."""

from __future__ import annotations

import pytest
from offered import HOST, NOW, RULES, claim, gpu, offer, process

from webmon.availability import Rules
from webmon.errors import NeverEnough, NotEnough, WishError
from webmon.model import Host, Process, Snapshot
from webmon.pick.choose import (
    Offer,
    Wish,
    check_possible,
    could_fit,
    fits,
    free_memory,
    is_offered,
    offers,
    reserved,
)

ANYTHING = Wish(util=100, mem_util=100, processes=1000, max_used_pct=100)


def is_picked(offered, rules=RULES, **wished):
    return fits(offered, Wish(**wished), rules)


def test_a_free_gpu_is_picked():
    """Without any wish but one GPU, the definition of `availability` holds."""
    assert is_picked(offer())
    assert not is_picked(offer(gpu(), process()))


@pytest.mark.parametrize("wish", [Wish(), Wish(util=0), ANYTHING], ids=["plain", "idle", "anything"])
@pytest.mark.parametrize(
    "offered",
    [
        offer(known=False),
        offer(state="faulty"),
        offer(gpu(), claim()),
        offer(gpu(), process(), claim()),
        Offer(gpu()._replace(state="unknown"), ()),
        Offer(gpu()._replace(state="free"), None),
        offer(utilization_pct=None, memory_used_mib=None),
    ],
    ids=["processes unknown", "faulty", "claimed", "claimed, in use", "unknown", "list lost", "says nothing"],
)
def test_what_is_unknown_faulty_or_claimed_is_never_picked(offered, wish):
    """However much may be in use of it: unknown is not idle, and a claim is a claim."""
    assert not fits(offered, wish, RULES)


def test_who_has_claimed_a_gpu_is_told():
    """The process that holds the claim, not one that is at work there."""
    assert offer(gpu(), process(), claim(user="carol")).claimed_by == claim(user="carol")
    assert offer(gpu(), process()).claimed_by is None
    assert offer(known=False).claimed_by is None


@pytest.mark.parametrize("util", [0, 7, 50, 100])
def test_the_utilization_that_is_given_is_allowed_itself(util):
    """`--util 7` takes a card at 7 %, and none at 8 %. Memory is in use, so no card has just been woken."""
    used = {"memory_used_mib": 1000}
    assert is_picked(offer(utilization_pct=util, **used), util=util)
    assert not is_picked(offer(utilization_pct=util + 1, **used), util=util)


@pytest.mark.parametrize("util", [0, 7, 100])
def test_the_memory_utilization_that_is_given_is_allowed_itself(util):
    """`--mem_util` is how busy the memory is, not how full."""
    assert is_picked(offer(memory_utilization_pct=util), mem_util=util)
    assert not is_picked(offer(memory_utilization_pct=util + 1), mem_util=util)
    assert is_picked(offer(memory_utilization_pct=100))


@pytest.mark.parametrize("allowed", [0, 1, 3])
def test_as_many_processes_as_are_given_are_allowed(allowed):
    """`--processes 1` shares a card with one, and not with two; a desktop is not counted."""
    there = [process(pid=pid) for pid in range(1, 5)]
    desktop = process(pid=99, name="/usr/lib/xorg/Xorg")
    assert is_picked(offer(gpu(), *there[:allowed], desktop), processes=allowed)
    assert not is_picked(offer(gpu(), *there[: allowed + 1]), processes=allowed)


def test_sharing_a_card_still_needs_it_to_be_nearly_idle():
    """`--processes 1` says nothing of utilization, so the limit of [free] stays."""
    at_work = {"memory_used_mib": 20_000}
    assert is_picked(offer(gpu(utilization_pct=5, **at_work), process()), processes=1)
    assert not is_picked(offer(gpu(utilization_pct=6, **at_work), process()), processes=1)
    assert is_picked(offer(gpu(utilization_pct=60, **at_work), process()), processes=1, util=60)


@pytest.mark.parametrize("wished", [{}, {"util": 50}, {"processes": 2}, {"util": 100, "processes": 9}])
def test_memory_that_is_held_without_a_process_is_somebodys(wished):
    """A process in another container can't be seen, but its memory can."""
    assert not is_picked(offer(memory_used_mib=20_000), **wished)


@pytest.mark.parametrize("wished", [{}, {"util": 0}, {"util": 3}, {"max_used_pct": 20}, {"processes": 1}])
def test_a_card_that_was_just_woken_is_idle(wished):
    """No process, no memory: with persistence mode off, asking it makes 100 %."""
    assert is_picked(offer(utilization_pct=100), **wished)


@pytest.mark.parametrize(
    "offered",
    [
        offer(gpu(utilization_pct=100), process()),
        offer(gpu(utilization_pct=100), process(name="Xorg")),
        offer(utilization_pct=99),
        offer(utilization_pct=100, memory_used_mib=1000),
    ],
    ids=["a process", "a desktop", "99 %", "memory"],
)
def test_a_card_at_work_was_not_just_woken(offered):
    """Each of the three signs is needed: 100 %, no process at all, no memory."""
    assert not is_picked(offered, util=3)
    assert not is_picked(offered, util=3, processes=5)


@pytest.mark.parametrize(("used", "picked"), [(0, True), (9_600, True), (9_601, False)])
def test_max_used_percent_is_how_full_the_memory_may_be(used, picked):
    """20 % of 48,000 MiB, the limit itself included."""
    assert is_picked(offer(memory_used_mib=used), max_used_pct=20) is picked


def test_max_used_percent_is_about_memory_alone():
    """A process makes a card used, and so does work without one."""
    assert not is_picked(offer(gpu(), process()), max_used_pct=100)
    assert not is_picked(offer(utilization_pct=50, memory_used_mib=9000), max_used_pct=20)


def test_max_used_percent_may_be_stricter_than_the_configuration():
    """0 takes only cards whose memory is empty."""
    assert is_picked(offer(memory_used_mib=100))
    assert not is_picked(offer(memory_used_mib=100), max_used_pct=0)


def test_the_limits_are_those_of_the_configuration_where_none_is_given():
    """[free] decides what `select` without options takes."""
    lenient = Rules(max_memory_pct=50, max_utilization_pct=30)
    half = {"memory_used_mib": 20_000, "utilization_pct": 30}
    assert is_picked(offer(rules=lenient, **half), lenient)
    assert is_picked(offer(rules=lenient, **half), lenient, processes=1)
    assert not is_picked(offer(**half))


GB10 = gpu(name="NVIDIA GB10", memory_used_mib=None, memory_total_mib=None)


def test_a_card_that_shares_the_machines_memory_is_picked_by_its_processes():
    """A GB10 has no memory of its own to report; that is not the same as a reading that is missing."""
    assert is_picked(offer(GB10))
    assert is_picked(offer(GB10), util=0)
    assert is_picked(offer(GB10), max_used_pct=20)
    assert not is_picked(offer(GB10, process()))
    assert not is_picked(offer(GB10._replace(name="NVIDIA A100")), max_used_pct=20)


def test_how_much_memory_is_free_on_it_is_not_known():
    """So it is never one with at least so much; but it could be, for all that is known."""
    assert free_memory(GB10) is None
    assert not is_picked(offer(GB10), free_memory_mib=1)
    assert could_fit(GB10, Wish(free_memory_mib=1))


MIG = gpu(utilization_pct=None, memory_utilization_pct=None, mig_mode="Enabled")


def test_a_card_in_parts_does_not_say_how_busy_it_is():
    """A MIG card is free while it is empty; nobody can tell whether it is below a limit."""
    assert is_picked(offer(MIG))
    assert not is_picked(offer(MIG), mem_util=99)
    assert is_picked(offer(gpu(memory_utilization_pct=None, utilization_pct=0)), mem_util=0)
    assert not is_picked(offer(MIG), util=50)
    assert not is_picked(offer(MIG._replace(memory_used_mib=9000)))
    assert not is_picked(offer(MIG, process()), processes=1)


@pytest.mark.parametrize("name", ["A6000", "a6000", "rtx a", "NVIDIA RTX A6000", ""])
def test_a_name_is_looked_for_anywhere_in_the_model(name):
    """Upper or lower case is the same."""
    assert is_picked(offer(), name=name)


@pytest.mark.parametrize("name", ["A60000", "H100", "*", ".", "A6000 "])
def test_a_name_is_no_pattern(name):
    """What is not in the model's name, letter by letter, does not match."""
    assert not is_picked(offer(), name=name)
    assert not is_picked(offer(name=None), name=name)


def test_devices_are_the_only_ones_to_be_picked_from():
    """By their index."""
    offered = [offer(gpu(index)) for index in range(4)]
    picked = [o.gpu.index for o in offered if is_picked(o, devices=(3, 1))]
    assert picked == [1, 3]


@pytest.mark.parametrize(("used", "picked"), [(28_000, True), (28_001, False)])
def test_free_memory_is_what_nobody_uses(used, picked):
    """20,000 MiB of 48,000, the limit itself included, on a card that may be shared."""
    offered = offer(gpu(memory_used_mib=used), process())
    assert is_picked(offered, free_memory_mib=20_000, processes=1) is picked


def test_more_memory_in_use_than_there_is_leaves_none():
    """Readings that contradict each other never make a negative number."""
    assert free_memory(gpu(memory_used_mib=50_000)) == 0
    assert free_memory(gpu(memory_used_mib=None)) is None


def test_a_gpu_is_offered_with_all_that_is_on_it():
    """Each with its own processes, in the snapshot's order; one that names no GPU may be on any."""
    stray = process(pid=7)._replace(gpu_uuid="GPU-gone", gpu_index=None)
    other = process(pid=8)._replace(host="gpu02", gpu_uuid="GPU-0")
    snapshot = Snapshot(
        NOW,
        (Host(HOST, status="up"), Host("gpu02", status="up"), Host("gpu03", status="up")),
        (gpu(0)._replace(state="busy"), gpu(1)._replace(state="busy"), gpu(0)._replace(host="gpu02")),
        (process(0), process(1, 5), stray, other),
    )
    offered = [(o.gpu.host, o.gpu.index, o.processes) for o in offers(snapshot)]
    assert offered == [
        (HOST, 0, (process(0), stray)),
        (HOST, 1, (process(1, 5), stray)),
        ("gpu02", 0, None),  # it was not judged: nobody knows
    ]


@pytest.mark.parametrize(
    ("status", "states", "processes", "known"),
    [
        ("up", ["busy"], (), True),
        ("degraded", ["busy"], (), False),
        ("degraded", ["busy"], (process(),), True),
        ("degraded", ["busy", "free"], (), True),
        ("down", ["unknown"], (), False),
        ("up", ["unknown"], (), False),
        ("up", ["faulty"], (), False),
    ],
)
def test_a_list_of_processes_that_may_be_missing_is_not_taken_for_an_empty_one(
    status, states, processes, known
):
    """A snapshot has no rows for a list that could not be had; a free GPU, or a row, says that it was had."""
    cards = tuple(gpu(index)._replace(state=state) for index, state in enumerate(states))
    first = offers(Snapshot(NOW, (Host(HOST, status=status),), cards, processes))[0]
    assert (first.processes is not None) is known
    assert is_offered(first) is known


@pytest.mark.parametrize(
    "wish",
    [
        Wish(count=0),
        Wish(count=-1),
        Wish(devices=(0,), name="A6000"),
        Wish(devices=(0,), name=""),
        Wish(util=-1),
        Wish(mem_util=-0.5),
        Wish(processes=-1),
        Wish(free_memory_mib=-1),
        Wish(devices=(-1,)),
        Wish(count=3, devices=(0, 1)),
        Wish(count=2, devices=(1, 1)),
    ],
    ids=str,
)
def test_a_wish_that_makes_no_sense_is_refused(wish):
    """Before any GPU is looked at."""
    with pytest.raises(WishError):
        wish.check()
    with pytest.raises(WishError):
        check_possible(wish, [gpu(index) for index in range(8)])


@pytest.mark.parametrize(
    "wish",
    [Wish(), Wish(count=2, devices=(0, 1)), Wish(count=2, name="a6000", free_memory_mib=48_000), ANYTHING],
    ids=str,
)
def test_a_wish_that_idle_gpus_could_fulfil_is_possible(wish):
    """Whoever uses them now."""
    check_possible(wish, [gpu(0, memory_used_mib=48_000, utilization_pct=100), gpu(1, state="busy")])


def test_devices_that_are_not_there_are_named():
    """With those that are."""
    with pytest.raises(WishError, match=r"Invalid device ID 5\. This machine has 0, 1$"):
        check_possible(Wish(devices=(0, 7, 5)), [gpu(0), gpu(1)])
    with pytest.raises(WishError, match="This machine has none"):
        check_possible(Wish(devices=(0,)), [])


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        (Wish(count=3), "Requested 3 GPUs, but 1 matched filters. This machine has 2: it will never do"),
        (
            Wish(count=2, name="H100"),
            (
                "Requested 2 GPUs, but 1 matched filters. "
                "This machine has 2, 1 of them with 'H100' in their name: it will never do"
            ),
        ),
        (
            Wish(free_memory_mib=102_400, name="A6000"),
            (
                "Requested 1 GPUs, but 1 matched filters. "
                "This machine has 2, 0 of them with 'A6000' in their name and with 100 GiB: it will never do"
            ),
        ),
    ],
)
def test_a_wish_that_can_never_be_fulfilled_says_why(wish, says):
    """It is no use to wait for it."""
    with pytest.raises(NeverEnough) as caught:
        check_possible(wish, [gpu(0), gpu(1, name="NVIDIA H100", memory_total_mib=80_000)], matched=1)
    assert str(caught.value) == says
    assert isinstance(caught.value, NotEnough)
    assert caught.value.exit_code == 1


def test_a_claim_counts_as_one_that_uses_its_gpu():
    """So no page and no command takes a claimed GPU for free, and its user is named."""
    claimed = offer(gpu(), claim(user="carol"))
    assert (claimed.gpu.state, claimed.gpu.users) == ("busy", ("carol",))
    assert isinstance(claimed.processes[0], Process)


def test_on_a_free_card_no_process_counts():
    """Where names are not stored, nobody can tell later that it was an ignored one."""
    nameless = offer(gpu(utilization_pct=4), process(name=None))
    free = Offer(nameless.gpu._replace(state="free"), nameless.processes)
    assert is_picked(free, util=10)
    assert not is_picked(nameless, util=10)


def test_those_who_came_first_have_as_many_as_they_wished_for():
    """Each of what suits him, and what the one before him has not got."""
    cards = [offer(gpu(0)), offer(gpu(1, name="NVIDIA H100")), offer(gpu(2)), offer(gpu(3), process())]
    assert reserved(cards, [], RULES) == set()
    assert reserved(cards, [Wish()], RULES) == {"GPU-0"}
    assert reserved(cards, [Wish(), Wish(name="H100"), Wish()], RULES) == {"GPU-0", "GPU-1", "GPU-2"}
    assert reserved(cards, [Wish(count=9)], RULES) == {"GPU-0", "GPU-1", "GPU-2"}
    assert reserved(cards, [Wish(name="A100")], RULES) == set()


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        (Wish(count=2.0), "whole numbers"),
        (Wish(count=True), "whole numbers"),
        (Wish(devices=("0",)), "whole numbers"),
        (Wish(processes=1.5), "whole numbers"),
        (Wish(util="5"), "a number"),
        (Wish(name=3), "a text"),
        (Wish(sort="best"), "'best' is no order. It can be: index, "),
    ],
    ids=str,
)
def test_what_is_of_the_wrong_type_is_refused(wish, says):
    """`count=n / 2` is a float, and easily written."""
    with pytest.raises(WishError, match=says):
        wish.check()
