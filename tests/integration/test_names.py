"""From a name to an address: resolvers fail, hang, and know several addresses."""

from __future__ import annotations

import socket
import threading
import time

import pytest
from servers.ask import ask, failure, outcomes

GPU = "gpu01.lab.invalid"


@pytest.fixture
def resolver(monkeypatch):
    """Put a function in the place of the resolver: `resolver(answer)`; other names are as ever."""
    real = socket.getaddrinfo

    def put(answer):
        def getaddrinfo(host, port, *arguments, **options):
            return answer(port) if host == GPU else real(host, port, *arguments, **options)

        monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    return put


def _common(sshd, **changes):
    return sshd.common(hosts=[GPU], port=sshd.port, host_keys="off") | changes


def test_a_name_that_nobody_knows(sshd, tmp_path, resolver):
    """The error names the name, and what to do."""

    def unknown(_port):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    resolver(unknown)
    error = failure(ask(tmp_path, _common(sshd)))
    assert (error.reason, GPU in error.problem) == ("dns", True)
    assert "Check the spelling in `hosts`" in error.remedy


def test_a_resolver_that_hangs_delays_nobody(sshd, tmp_path, resolver):
    """A lookup can't be interrupted: its thread is left behind, and the others are done."""
    release = threading.Event()

    def hang(_port):
        release.wait(30)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    resolver(hang)
    started = time.monotonic()
    answers = ask(tmp_path, _common(sshd, hosts=[GPU, *sshd.names], timeout=1))
    seconds = time.monotonic() - started
    release.set()
    assert outcomes(answers) == ["timeout", "1 GPUs"]
    assert "before it could be connected to" in str(answers[GPU].result)
    assert seconds < 3
    _wait_for_thread(GPU)


def _wait_for_thread(name):
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(5)


def test_each_of_the_addresses_is_tried(sshd, tmp_path, resolver):
    """One address refuses, another one answers: a host with two networks, one of them broken."""
    stream = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
    resolver(lambda port: [(*stream, ("127.0.0.99", port)), (*stream, (sshd.addresses[0], port))])
    assert outcomes(ask(tmp_path, _common(sshd))) == ["1 GPUs"]


@pytest.mark.parametrize("name", ["x" * 64 + ".lab", "gpu..lab", "\N{BLACK QUESTION MARK ORNAMENT}" * 70])
def test_a_name_that_can_not_be_one(sshd, tmp_path, name):
    """Names that no resolver takes are no crash."""
    assert failure(ask(tmp_path, _common(sshd, hosts=[name]))).reason == "dns"
