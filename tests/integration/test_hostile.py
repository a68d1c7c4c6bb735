"""Hosts that are no sshd, or a broken one."""

from __future__ import annotations

import time

import pytest
from servers.ask import ask, outcomes
from servers.hostile import Hostile, relay
from servers.sshd import Pretended
from servers.states import healthy

TIMEOUT_S = 2
REASONS = {
    "refuse": ("refused", "refuses connections"),
    "unanswered": ("timeout", "connecting"),
    "silent": ("timeout", "waiting for its greeting"),
    "reset": ("closed", "waiting for its greeting"),
    "hang_up": ("closed", "waiting for its greeting"),
    "drip": ("timeout", "waiting for its greeting"),
    "slow_banner": ("timeout", "waiting for its greeting"),
    "endless_banner": ("protocol", "not an SSH 2 server: it says 'Welcome!"),
    "flood": ("too-much-output", "256 KiB"),
    "web": ("protocol", "not an SSH 2 server: it says 'HTTP/1.1 400 Bad Request"),
    "old": ("protocol", "not an SSH 2 server: it says 'SSH-1.5"),
    "greet": ("timeout", "exchanging keys"),
    "greet_drip": ("timeout", "exchanging keys"),
    "greet_flood": ("too-much-output", "256 KiB of output, exchanging keys"),
    "greet_garbage": ("protocol", "exchanging keys"),
}


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """Ask all of them at once, with one place for each."""
    with Hostile(**{does: does for does in REASONS}) as servers:
        names = [servers.name(does) for does in REASONS]
        common = {"hosts": names, "user": "me", "timeout": TIMEOUT_S, "jobs": 4, "host_keys": "off"}
        with pytest.MonkeyPatch.context() as patch:
            folder = tmp_path_factory.mktemp("hostile")
            patch.setenv("HOME", str(folder))
            started = time.monotonic()
            answers = ask(folder, common | {"key_filename": str(_key(folder))})
            seconds = time.monotonic() - started
    return dict(zip(REASONS, answers.values(), strict=True)), seconds


def _key(folder):
    from servers.ssh_keys import make_key

    return make_key(folder / "key")


@pytest.mark.parametrize("does", REASONS)
def test_each_has_its_reason(asked, does):
    """Whatever a host sends instead of SSH, the reason and the phase are right, in time."""
    answer = asked[0][does]
    reason, said = REASONS[does]
    assert (answer.result.reason, said in answer.result.problem) == (reason, True), answer.result.problem
    assert answer.duration_ms < 1000 * (TIMEOUT_S + 1)
    assert answer.result.remedy


def test_those_that_are_silent_do_not_fill_the_places_of_the_others(asked):
    """With 4 jobs and 6 silent hosts, it takes one timeout and a little patience, not two."""
    assert asked[1] < 2 * TIMEOUT_S + 1


def test_a_slow_network_is_only_slow(start_sshd, tmp_path):
    """A delay of 50 ms each way, as to another continent, changes nothing but the duration."""
    sshd = start_sshd([Pretended(healthy(4))])
    with Hostile(far=relay(sshd.addresses[0], sshd.port, delay=0.05)) as servers:
        answers = ask(tmp_path, sshd.common(hosts=[servers.name("far")], host_keys="off"))
    assert outcomes(answers) == ["4 GPUs"]


def test_a_connection_that_breaks_anywhere_gives_all_or_nothing(start_sshd, tmp_path):
    """Wherever the network cuts the answer off, no card and no process is told of."""
    sshd = start_sshd([Pretended(healthy(4))])
    limits = [*range(1, 60, 20), *range(200, 9000, 200)]
    relays = {f"cut{limit}": relay(sshd.addresses[0], sshd.port, limit=limit) for limit in limits}
    with Hostile(**relays, whole=relay(sshd.addresses[0], sshd.port)) as servers:
        names = [servers.name(name) for name in [*relays, "whole"]]
        answers = ask(tmp_path, sshd.common(hosts=names, host_keys="off", timeout=20, jobs=8))
    said = outcomes(answers)
    assert said[-1] == "4 GPUs"
    assert set(said) <= {"closed", "protocol", "cut-off", "4 GPUs"}
    # Once it is long enough, it stays so. In how many packets the same answer comes, each with its own
    # overhead, is up to the moment: that makes a difference of a kilobyte and more.
    enough = said.index("4 GPUs") + 10
    assert set(said[enough:]) == {"4 GPUs"}
