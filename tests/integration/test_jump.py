"""Hosts behind a gateway: ProxyJump."""

from __future__ import annotations

import time

import pytest
from servers.ask import ask, failure, outcomes
from servers.hostile import Hostile, relay
from servers.ssh_keys import make_key, public
from servers.sshd import Pretended
from servers.states import healthy


@pytest.fixture
def lab(start_sshd):
    """Six hosts, all of which a gateway's user may log in to."""
    return start_sshd([Pretended(healthy(number + 1, number)) for number in range(6)])


@pytest.fixture
def gateway(start_sshd, lab):
    """The gateway; its user, key and known_hosts do for the hosts behind it, too."""
    gateway = start_sshd([Pretended()], first_address=31, settings=["LogLevel DEBUG"])
    _admit(gateway, lab)
    return gateway


def _admit(gateway, lab):
    with gateway.authorized_keys.open("a") as file:
        file.write(public(lab.key) + "\n")
    with lab.known_hosts.open("a") as file:
        file.writelines(f"{line}\n" for line in gateway.known_lines())


def _behind(lab, gateway, **changes):
    return lab.common(proxy_jump=gateway.names[0]) | changes


def test_one_connection_to_a_gateway_does_for_all_hosts_behind_it(lab, gateway, tmp_path):
    """Its sshd sees one login, which all the hosts behind it share."""
    answers = ask(tmp_path, _behind(lab, gateway))
    assert outcomes(answers) == [f"{number + 1} GPUs" for number in range(6)]
    assert gateway.connections() == 1
    assert lab.connections() == 6


def test_a_gateway_may_be_asked_for_its_gpus_as_well(lab, gateway, tmp_path):
    """A gateway among `hosts` is not reached through itself."""
    answers = ask(tmp_path, _behind(lab, gateway, hosts=[*lab.names[:2], *gateway.names]))
    assert outcomes(answers) == ["1 GPUs", "2 GPUs", "1 GPUs"]
    assert gateway.connections() == 2


def test_several_gateways_may_stand_in_a_row(lab, gateway, start_sshd, tmp_path):
    """`proxy_jump = "outer,inner"` goes through both, with one login each."""
    outer = start_sshd([Pretended()], first_address=41)
    _admit(outer, lab)
    jumps = f"{outer.names[0]},{gateway.user}@{gateway.names[0]}"
    assert outcomes(ask(tmp_path, _behind(lab, gateway, proxy_jump=jumps))) == [
        f"{number + 1} GPUs" for number in range(6)
    ]
    assert (outer.connections(), gateway.connections()) == (1, 1)
    assert "from 127.0.0.1" in outer.log()


def test_a_host_that_the_gateway_can_not_reach_is_that_hosts_matter(lab, gateway, tmp_path):
    """The others behind the same gateway answer."""
    with Hostile(gone="refuse") as servers:
        answers = ask(tmp_path, _behind(lab, gateway, hosts=[servers.name("gone"), *lab.names[:2]]))
    assert outcomes(answers) == ["jump", "1 GPUs", "2 GPUs"]
    assert "could not connect to 127.0.0.1" in str(answers[servers.name("gone")].result)
    assert gateway.connections() == 1


def test_a_gateway_that_forwards_nothing_is_named(lab, start_sshd, tmp_path):
    """AllowTcpForwarding no: the error says what to look at."""
    gateway = start_sshd([Pretended()], first_address=31, settings=["AllowTcpForwarding no"])
    _admit(gateway, lab)
    answers = ask(tmp_path, _behind(lab, gateway))
    assert outcomes(answers) == ["jump"] * 6
    assert all("does it allow TCP forwarding?" in str(answer.result) for answer in answers.values())


@pytest.mark.parametrize("does", ["refuse", "hang_up", "web", "old", "greet_garbage", "greet_flood"])
def test_a_dead_gateway_is_the_reason_for_all_hosts_behind_it(lab, tmp_path, does):
    """They are told apart from hosts that are down themselves, and nobody waits for their timeout."""
    with Hostile(gateway=does) as servers:
        started = time.monotonic()
        answers = ask(tmp_path, lab.common(proxy_jump=servers.name("gateway"), timeout=20))
    assert outcomes(answers) == ["jump"] * 6
    assert all(str(answer.result).startswith("the gateway 127.0.0.1") for answer in answers.values())
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("does", ["silent", "greet", "drip", "slow_banner", "unanswered"])
def test_a_silent_gateway_takes_one_timeout_in_all(lab, tmp_path, does):
    """Hosts that wait for the same gateway wait side by side."""
    with Hostile(gateway=does) as servers:
        started = time.monotonic()
        answers = ask(tmp_path, lab.common(proxy_jump=servers.name("gateway"), timeout=1, jobs=2))
    assert outcomes(answers) == ["jump"] * 6
    assert time.monotonic() - started < 4


def test_a_gateway_that_drops_us_is_asked_again(lab, gateway, tmp_path):
    """A gateway under MaxStartups takes all hosts behind it with it: it gets a second chance."""
    with Hostile(busy=relay(gateway.addresses[0], gateway.port, drops=3)) as servers:
        common = _behind(lab, gateway, proxy_jump=servers.name("busy"), host_keys="off")
        assert outcomes(ask(tmp_path, common)) == [f"{number + 1} GPUs" for number in range(6)]
    assert gateway.connections() == 1


def test_a_gateway_that_is_not_known_is_not_logged_in_to(lab, gateway, tmp_path):
    """Host keys of gateways are checked, too."""
    lab.known_hosts.write_text("\n".join(lab.known_lines()) + "\n")
    answers = ask(tmp_path, _behind(lab, gateway))
    assert outcomes(answers) == ["jump"] * 6
    assert "Accepted" not in gateway.log()
    assert all("is not known" in str(answer.result) for answer in answers.values())


def test_a_gateway_that_refuses_the_key_is_named(lab, gateway, tmp_path):
    """The error says which of the two machines refused the login."""
    gateway.authorized_keys.write_text(public(make_key(tmp_path / "other")) + "\n")
    answers = ask(tmp_path, _behind(lab, gateway))
    assert outcomes(answers) == ["jump"] * 6
    first = next(iter(answers.values())).result
    assert f"the gateway {gateway.names[0]}: {gateway.user} may not log in" in str(first)


def test_a_gateway_that_wants_more_than_a_key_is_named(lab, start_sshd, tmp_path):
    """Half a login to a gateway is none."""
    settings = ["PasswordAuthentication yes", "AuthenticationMethods publickey,password"]
    gateway = start_sshd([Pretended()], first_address=31, settings=settings)
    _admit(gateway, lab)
    answers = ask(tmp_path, _behind(lab, gateway))
    assert all("may not log in" in str(answer.result) for answer in answers.values())


def test_a_host_behind_a_gateway_is_checked_like_any_other(lab, gateway, tmp_path):
    """A gateway that puts us through to another machine is found out."""
    lab.known_hosts.write_text("\n".join(gateway.known_lines()) + "\n")
    answers = ask(tmp_path, _behind(lab, gateway, hosts=lab.names[:1]))
    assert failure(answers).reason == "host-key"


def test_a_silent_host_behind_a_gateway_ends_in_time(lab, gateway, tmp_path):
    """The deadline holds through a gateway, and the others do not wait."""
    with Hostile(mute="silent", slow="drip", many="flood") as servers:
        names = [servers.name(name) for name in ("mute", "slow", "many")]
        started = time.monotonic()
        answers = ask(tmp_path, _behind(lab, gateway, hosts=[*names, *lab.names], timeout=2))
    assert outcomes(answers)[:3] == ["timeout", "timeout", "too-much-output"]
    assert outcomes(answers)[3:] == [f"{number + 1} GPUs" for number in range(6)]
    assert time.monotonic() - started < 5
