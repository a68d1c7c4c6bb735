"""Old sshds, hardened sshds: what they and webmon have in common is found, or named as missing."""

from __future__ import annotations

import pytest
from servers.ask import ask, failure, outcomes
from servers.sshd import Pretended
from servers.states import gpu, process

from webmon.model import Reading


@pytest.mark.parametrize(
    "setting",
    [
        "KexAlgorithms diffie-hellman-group14-sha256",
        "KexAlgorithms diffie-hellman-group-exchange-sha256",
        "KexAlgorithms ecdh-sha2-nistp256",
        "KexAlgorithms curve25519-sha256@libssh.org",
        "Ciphers aes256-ctr",
        "Ciphers aes256-gcm@openssh.com",
        "MACs hmac-sha2-256",
        "MACs hmac-sha2-512-etm@openssh.com",
        "HostKeyAlgorithms rsa-sha2-256",
        "Compression no",
        "PubkeyAcceptedAlgorithms ssh-ed25519",
    ],
)
def test_an_sshd_with_few_algorithms_is_understood(start_sshd, tmp_path, setting):
    """webmon prefers what is fast, and takes what the host has."""
    extra = ["Ciphers aes128-ctr"] if setting.startswith("MACs") else []  # the others need no MAC
    sshd = start_sshd([Pretended()], settings=[setting, *extra], host_keys=["rsa", "ed25519"])
    assert outcomes(ask(tmp_path, sshd.common())) == ["1 GPUs"]


@pytest.mark.parametrize(
    "setting",
    [
        "HostKeyAlgorithms ssh-rsa",
        "Ciphers chacha20-poly1305@openssh.com",
        "KexAlgorithms diffie-hellman-group1-sha1",
    ],
)
def test_an_sshd_with_nothing_in_common_says_so(start_sshd, tmp_path, setting):
    """Too old, or hardened beyond what paramiko has: the error says what would do."""
    sshd = start_sshd([Pretended()], settings=[setting], host_keys=["rsa"])
    error = failure(ask(tmp_path, sshd.common(host_keys="off")))
    assert (error.reason, "no common algorithm" in error.problem) == ("protocol", True), error.problem
    assert "an ed25519 host key would do" in error.remedy


def test_keys_may_be_exchanged_anew_in_the_middle_of_an_answer(start_sshd, tmp_path):
    """An sshd that wants new keys every 16 KiB gets them, and the answer is whole."""
    state = {"gpus": [gpu(0)], "processes": [process(0, 4_000_000 + n, "x" * 200) for n in range(1000)]}
    sshd = start_sshd([Pretended(state)], settings=["RekeyLimit 16K", "LogLevel DEBUG1"])
    (answer,) = ask(tmp_path, sshd.common()).values()
    assert isinstance(answer.result, Reading)
    assert len(answer.result.processes or ()) == 1000
    assert sshd.log().count("rekey") > 5
