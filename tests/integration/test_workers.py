"""The threads that ask: few or many, some of them stuck for good."""

from __future__ import annotations

import threading
import time

import pytest
from servers.settings import write_config
from servers.ssh_keys import make_key

from webmon import config as configuration
from webmon.collect.fetch import ask_all
from webmon.errors import HostError


@pytest.mark.parametrize("jobs", [1, 2, 32])
def test_it_is_told_once_when_all_are_asked(tmp_path, jobs):
    """However the last answers come, and whoever is still waiting for them."""
    hosts = [f"127.0.0.1:{port}" for port in range(1, 4)]
    common = {"hosts": hosts, "jobs": jobs, "host_keys": "off", "timeout": 5}
    config = configuration.load(write_config(tmp_path, common))
    for _ in range(40):
        told = []
        answers = ask_all(config, when_all_are_asked=lambda told=told: told.append(1))
        assert (len(answers), told) == (3, [1])


def test_workers_that_never_come_back_take_no_places(tmp_path, monkeypatch):
    """A name server that does not answer holds up its own hosts only."""
    import socket

    release = threading.Event()
    real = socket.getaddrinfo

    def resolve(name, *arguments, **options):
        if name.endswith(".invalid"):
            release.wait(30)
            raise socket.gaierror(socket.EAI_AGAIN, "no name server")
        return real(name, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    hosts = [f"gpu{number}.invalid" for number in range(8)] + ["127.0.0.1:1"]
    key = str(make_key(tmp_path / "key"))
    common = {"hosts": hosts, "jobs": 2, "host_keys": "off", "timeout": 1, "key_filename": key}
    config = configuration.load(write_config(tmp_path, common))
    before = set(threading.enumerate())
    started = time.monotonic()
    try:
        answers = {answer.host: answer.result for answer in ask_all(config)}
        seconds = time.monotonic() - started
    finally:
        release.set()
        for thread in set(threading.enumerate()) - before:
            thread.join(5)
    assert all(isinstance(answer, HostError) for answer in answers.values())
    assert {answers[host].reason for host in hosts[:-1]} == {"timeout"}
    assert seconds < 4 * (1 + 1) + 4


def test_a_gateway_that_needs_a_gateway_is_reached_through_it(tmp_path, start_sshd, monkeypatch):
    """~/.ssh/config says how; the inner one is asked by the outer one."""
    from servers.ask import ask, outcomes
    from servers.sshd import Pretended

    outer, inner, target = (start_sshd([Pretended()], first_address=30 + number) for number in range(3))
    target.authorized_keys.write_text(outer.authorized_keys.read_text())
    inner.authorized_keys.write_text(outer.authorized_keys.read_text())
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "config").write_text(
        f"Host outer\n HostName {outer.addresses[0]}\n Port {outer.port}\n"
        f"Host inner\n HostName {inner.addresses[0]}\n Port {inner.port}\n ProxyJump outer\n"
    )
    common = {
        "hosts": target.names, "user": target.user, "key_filename": str(outer.key), "host_keys": "off",
        "timeout": 10, "proxy_jump": "inner",
    }  # fmt: skip
    assert outcomes(ask(tmp_path, common)) == ["1 GPUs"]
    assert (outer.connections(), inner.connections()) == (1, 1)
