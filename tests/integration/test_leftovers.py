"""What a poll leaves behind in its own process: nothing."""

from __future__ import annotations

import os
import threading
import time

import pytest
from servers.ask import ask, outcomes
from servers.hostile import Hostile
from servers.ssh_keys import make_key
from servers.sshd import Pretended
from servers.states import HANGS, NO_DRIVER, healthy

from webmon.errors import ConfigError

HOSTILE = ("refuse", "unanswered", "silent", "reset", "hang_up", "drip", "flood", "greet", "greet_garbage")


def _open():
    """Return what this process has open, without the descriptor that is used for looking."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[name] = os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:
            continue
    return {text for text in found.values() if not text.endswith("/fd")}


@pytest.fixture
def cluster(start_sshd):
    """Healthy hosts, and some that misbehave after the login; one of them is a gateway to the rest."""
    return start_sshd(
        [
            Pretended(healthy(2)),
            Pretended(healthy(1)),
            Pretended(NO_DRIVER),
            Pretended(HANGS),
            Pretended(command="yes"),
            Pretended(command="sleep 60"),
            Pretended(command="kill -9 $$"),
            Pretended(),
            Pretended(settings=["AuthorizedKeysFile none"]),
        ]
    )


def test_neither_threads_nor_descriptors_are_left_over(cluster, tmp_path, agent):
    """After a poll of healthy and hostile hosts, direct and through gateways, all is as before."""
    agent.add(cluster.key)
    with Hostile(**{name: name for name in HOSTILE}) as servers:
        hostile = [servers.name(name) for name in HOSTILE]
        common = cluster.common(hosts=[*cluster.names, *hostile, "self"], timeout=2, host_keys="off")
        common["key_filename"] = None
        behind = {"proxy_jump": cluster.names[0]}
        own = dict.fromkeys([*cluster.names[1:3], servers.name("silent"), servers.name("flood")], behind)
        own[cluster.names[7]] = {"proxy_jump": servers.name("drip")}
        own["self"] = {"nvidia_smi": "/does/not/exist"}
        ask(tmp_path, common, own)  # imports, and caches that are meant to stay
        for _ in range(2):
            threads, descriptors = set(threading.enumerate()), _open()
            said = outcomes(ask(tmp_path, common, own))
            assert said[:3] == ["2 GPUs", "1 GPUs", "0 GPUs"]
            assert said[3] in ("timeout", "0 GPUs")  # who is first: the host's own time limit, or ours
            assert said[4:9] == ["too-much-output", "timeout", "cut-off", "jump", "auth"]
            # A thread that has handed its answer in may need a moment to end.
            deadline = time.monotonic() + 3
            while not set(threading.enumerate()) <= threads and time.monotonic() < deadline:
                time.sleep(0.02)
            assert set(threading.enumerate()) <= threads
            assert _open() <= descriptors


def test_a_poll_that_can_not_begin_leaves_nothing_open(sshd, tmp_path, agent):
    """A key that is encrypted, and that the agent lacks: the agent has been asked, and let go."""
    key = make_key(tmp_path / "key", passphrase=agent.PASSPHRASE)
    before = _open()
    with pytest.raises(ConfigError) as kept:
        ask(tmp_path, sshd.common(key_filename=str(key)))
    assert _open() <= before
    assert "encrypted" in str(kept.value)
