"""When a GPU is free, busy, held, faulty or unknown: every rule of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webmon.availability import Rules, is_idle, is_ignored, memory_pct, state_of, users_of
from webmon.model import Gpu, Process

NOW = datetime(2026, 1, 2, 12, tzinfo=UTC)
RULES = Rules()
IDLE = Gpu(
    "gpu01", 0, "GPU-1", "NVIDIA RTX A6000", utilization_pct=0, memory_used_mib=0, memory_total_mib=10_000
)
GB10 = Gpu("gpu01", 0, "GPU-1", "NVIDIA GB10", utilization_pct=0)


def process(name="python", user="alice", **changes):
    return Process("gpu01", 0, "GPU-1", 4711, user=user, name=name)._replace(**changes)


def judge(gpu, processes=(), rules=RULES, idle_for=None):
    """Judge a card that has been idle for so many minutes; None: not known since when."""
    since = None if idle_for is None else NOW - timedelta(minutes=idle_for)
    return state_of(gpu, processes, rules, now=NOW, idle_since=since)


def test_an_idle_card_without_processes_is_free():
    """The plain case."""
    assert judge(IDLE) == "free"


@pytest.mark.parametrize(("used", "state"), [(499, "free"), (500, "free"), (501, "busy")])
def test_memory_up_to_the_limit_is_free(used, state):
    """5 % of 10,000 MiB, the limit included."""
    assert judge(IDLE._replace(memory_used_mib=used)) == state


@pytest.mark.parametrize(("utilization", "state"), [(4, "free"), (5, "free"), (6, "busy"), (100, "busy")])
def test_utilization_up_to_the_limit_is_free(utilization, state):
    """5 %, the limit included; with memory in use, so that it is no waking card."""
    assert judge(IDLE._replace(utilization_pct=utilization, memory_used_mib=300)) == state


@pytest.mark.parametrize(
    ("rules", "gpu", "state"),
    [
        (Rules(max_memory_pct=0), IDLE._replace(memory_used_mib=1), "busy"),
        (Rules(max_memory_pct=0), IDLE, "free"),
        (Rules(max_memory_pct=100), IDLE._replace(memory_used_mib=10_000), "free"),
        (Rules(max_utilization_pct=0), IDLE._replace(memory_used_mib=300, utilization_pct=1), "busy"),
        (Rules(max_utilization_pct=50), IDLE._replace(memory_used_mib=300, utilization_pct=50), "free"),
    ],
)
def test_the_limits_are_those_of_the_configuration(rules, gpu, state):
    """[free] max_memory_pct and max_utilization_pct."""
    assert judge(gpu, rules=rules) == state


@pytest.mark.parametrize(("used", "state"), [(0, "free"), (99, "free"), (100, "busy")])
@pytest.mark.parametrize("utilization", [100, 6])
def test_a_card_that_was_woken_is_free_whatever_its_utilization_says(used, state, utilization):
    """No process and less than 1 % of its memory: with persistence mode off, asking it makes 100 %."""
    assert judge(IDLE._replace(utilization_pct=utilization, memory_used_mib=used)) == state


def test_an_untouched_card_is_free_even_when_it_does_not_say_its_utilization():
    """As a card with MIG on doesn't."""
    assert judge(IDLE._replace(utilization_pct=None)) == "free"


def test_a_process_makes_the_card_busy_however_little_it_does():
    """Somebody is there, even with no memory and no utilization."""
    assert judge(IDLE, [process()]) == "busy"


@pytest.mark.parametrize("name", [None, "[Not Found]", "", "python"])
def test_a_process_of_any_name_or_none_counts(name):
    """In another container it has no name; it is no less at work."""
    assert judge(IDLE, [process(name)]) == "busy"


@pytest.mark.parametrize(
    "name",
    ["Xorg", "/usr/lib/xorg/Xorg", "/usr/bin/kwin_wayland", "gnome-shell", "nvidia-persistenced", "/opt/X"],
)
def test_a_desktop_does_not_make_a_card_busy(name):
    """What is ignored is ignored with its folder and without."""
    assert judge(IDLE._replace(memory_used_mib=300), [process(name)]) == "free"


@pytest.mark.parametrize("name", ["Xorg2", "xorg", "myXorg", "Xorg/python", "Xorg "])
def test_what_is_only_called_like_a_desktop_is_none(name):
    """The whole name of the program has to be the same, upper and lower case too."""
    assert judge(IDLE, [process(name)]) == "busy"


@pytest.mark.parametrize(
    ("pattern", "name", "ignored"),
    [
        ("steam*", "/home/a/steamwebhelper", True),
        ("/usr/bin/*", "/usr/bin/foo", True),
        ("/usr/bin/*", "/opt/foo", False),
        ("foo?", "foo1", True),
        ("[Xx]org", "xorg", True),
        ("*", None, False),
    ],
)
def test_ignore_takes_patterns(pattern, name, ignored):
    """[free] ignore; a process without a name is never ignored."""
    assert is_ignored(process(name), Rules(ignore=(pattern,))) is ignored


def test_one_ignored_process_does_not_hide_another():
    """All of them have to be ignored."""
    assert judge(IDLE, [process("Xorg"), process("python")]) == "busy"


def test_with_nothing_ignored_a_desktop_counts():
    """`ignore = []`."""
    assert judge(IDLE, [process("Xorg")], Rules(ignore=())) == "busy"


@pytest.mark.parametrize(
    "gpu",
    [
        IDLE,
        IDLE._replace(memory_used_mib=300),
        GB10,
    ],
)
def test_without_the_list_of_processes_nothing_is_free(gpu):
    """Unknown is not idle: somebody may be there."""
    assert judge(gpu, None) == "unknown"


@pytest.mark.parametrize(
    ("gpu", "state"),
    [
        (IDLE._replace(utilization_pct=80), "busy"),
        (IDLE._replace(utilization_pct=80, memory_used_mib=9000), "busy"),
        (IDLE._replace(utilization_pct=None), "unknown"),
        (IDLE._replace(utilization_pct=None, memory_used_mib=9000), "busy"),
    ],
)
def test_without_the_list_of_processes_a_card_at_work_is_busy(gpu, state):
    """What can be told is told."""
    assert judge(gpu, None) == state


@pytest.mark.parametrize("processes", [None, [], [process()]])
@pytest.mark.parametrize("gpu", [IDLE, GB10, IDLE._replace(memory_used_mib=9000)])
def test_a_faulty_card_is_faulty_whatever_it_reads(gpu, processes):
    """A card in error can still read 0 MiB used."""
    assert judge(gpu._replace(state="faulty"), processes, idle_for=600) == "faulty"


@pytest.mark.parametrize(
    "gpu",
    [
        IDLE._replace(memory_used_mib=None),
        IDLE._replace(memory_total_mib=None),
        IDLE._replace(memory_total_mib=0),
        IDLE._replace(utilization_pct=None, memory_used_mib=300),
        Gpu("gpu01", 0, "GPU-1", "NVIDIA RTX A6000"),
        Gpu("gpu01", 0, "GPU-1", "NVIDIA RTX A6000", utilization_pct=0),
        Gpu("gpu01", 0, "GPU-1", None, utilization_pct=0),
    ],
)
def test_a_card_that_does_not_say_enough_is_unknown(gpu):
    """No memory, or no utilization: unknown is never free."""
    assert judge(gpu) == "unknown"


@pytest.mark.parametrize("name", ["NVIDIA GB10", "NVIDIA Thor", "Orin (nvgpu)", "Jetson AGX Xavier"])
def test_a_part_that_shares_the_machines_memory_can_be_free(name):
    """It has no memory of its own to report; its processes and its utilization tell."""
    gpu = GB10._replace(name=name)
    assert judge(gpu) == "free"
    assert judge(gpu, [process()]) == "busy"
    assert judge(gpu._replace(utilization_pct=6)) == "busy"
    assert judge(gpu._replace(utilization_pct=None)) == "unknown"


@pytest.mark.parametrize("known", [{"memory_used_mib": 0}, {"memory_total_mib": 1000}])
def test_a_part_that_says_half_of_its_memory_is_unknown(known):
    """Then it has memory of its own, and something is wrong."""
    assert judge(GB10._replace(**known)) == "unknown"


@pytest.mark.parametrize(
    ("idle_for", "state"), [(None, "busy"), (0, "busy"), (29.9, "busy"), (30, "held"), (600, "held")]
)
@pytest.mark.parametrize(
    ("gpu", "processes"),
    [
        (IDLE, [process()]),
        (IDLE._replace(memory_used_mib=9000), [process()]),
        (IDLE._replace(memory_used_mib=9000), []),
        (IDLE._replace(memory_used_mib=9000), None),
        (GB10._replace(), [process()]),
    ],
    ids=["a process", "a process and memory", "memory", "memory, processes not known", "a process on a GB10"],
)
def test_what_is_kept_and_not_used_is_held(gpu, processes, idle_for, state):
    """Memory or processes on a card that has been idle for held_after_min."""
    assert judge(gpu, processes, idle_for=idle_for) == state


@pytest.mark.parametrize("gpu", [IDLE._replace(utilization_pct=6), IDLE._replace(utilization_pct=None)])
def test_what_is_used_is_not_held(gpu):
    """However long it was idle before; and a card that says nothing is not called idle."""
    assert judge(gpu._replace(memory_used_mib=9000), [process()], idle_for=600) == "busy"


@pytest.mark.parametrize(
    ("minutes", "state"),
    [(0, "held"), (120, "held"), (121, "busy"), (525_600, "busy"), (float("inf"), "busy")],
)
def test_held_after_min_is_that_of_the_configuration(minutes, state):
    """[free] held_after_min."""
    assert judge(IDLE, [process()], Rules(held_after_min=minutes), idle_for=120) == state


def test_a_free_card_is_never_held():
    """It is nobody's, however long it has been idle."""
    assert judge(IDLE, idle_for=100_000) == "free"


@pytest.mark.parametrize(
    ("gpu", "processes", "idle"),
    [
        (IDLE, [], True),
        (IDLE._replace(utilization_pct=100), [], True),
        (IDLE._replace(utilization_pct=100), None, False),
        (IDLE._replace(utilization_pct=100), [process()], False),
        (IDLE._replace(utilization_pct=5), [process()], True),
        (IDLE._replace(utilization_pct=None), [process()], False),
        (GB10, None, True),
    ],
)
def test_idle_is_about_what_a_card_does_not_whose_it_is(gpu, processes, idle):
    """It is what idle_since is kept by."""
    assert is_idle(gpu, processes, RULES) is idle


@pytest.mark.parametrize(
    ("used", "total", "pct"),
    [(2500, 10_000, 25.0), (0, 10_000, 0.0), (None, 10, None), (1, None, None), (1, 0, None)],
)
def test_how_full_the_memory_is(used, total, pct):
    """Not known is not 0."""
    assert memory_pct(IDLE._replace(memory_used_mib=used, memory_total_mib=total)) == pct


def test_users_are_named_once_and_in_order():
    """Without those of ignored processes, and without the unknown ones."""
    processes = [process(user="carol"), process(user="alice"), process(user="carol"), process(user=None)]
    assert users_of([*processes, process("Xorg", user="root")], RULES) == ("alice", "carol")


PERCENT = st.none() | st.integers(0, 100)
MIB = st.none() | st.integers(0, 1000)
PROCESSES = st.none() | st.lists(st.sampled_from(["python", "Xorg", None]).map(process), max_size=3)
GPUS = st.builds(
    Gpu,
    st.just("gpu01"),
    st.just(0),
    name=st.sampled_from([None, "NVIDIA GB10", "Tesla M40"]),
    state=st.sampled_from(["unknown", "faulty"]),
    utilization_pct=PERCENT,
    memory_used_mib=MIB,
    memory_total_mib=MIB,
)
RULES_OF_ANY_KIND = st.builds(
    Rules, PERCENT.map(lambda n: n or 0), PERCENT.map(lambda n: n or 0), held_after_min=st.integers(0, 99)
)


@given(GPUS, PROCESSES, RULES_OF_ANY_KIND, st.none() | st.integers(-100, 100))
def test_free_means_all_of_it(gpu, processes, rules, idle_for):
    """For any card: free is never a guess, and nothing else is ever called free."""
    state = judge(gpu, processes, rules, idle_for)
    assert state in ("free", "busy", "held", "faulty", "unknown")
    assert (state == "faulty") == (gpu.state == "faulty")
    if state == "free":
        memory = memory_pct(gpu)
        assert processes is not None
        assert all(is_ignored(process, rules) for process in processes)
        assert gpu.name == "NVIDIA GB10" if memory is None else memory <= rules.max_memory_pct
        assert (memory is not None and memory < 1) or gpu.utilization_pct <= rules.max_utilization_pct
    if state == "held":
        assert idle_for is not None
        assert idle_for >= rules.held_after_min


def test_a_card_that_computes_for_an_ignored_process_is_not_free():
    """Only a card without any process may read 100 % and be idle all the same."""
    gpu = Gpu("h", 0, "GPU-0", "A6000", utilization_pct=87, memory_used_mib=4, memory_total_mib=1000)
    assert judge(gpu, [process("Xorg")]) == "busy"
    assert judge(gpu, []) == "free"
