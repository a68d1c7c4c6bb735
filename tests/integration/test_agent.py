"""Keys that an ssh-agent holds."""

from __future__ import annotations

import base64
import socket
import struct
import threading

import pytest
from servers.ask import ask, failure, outcomes
from servers.command import webmon
from servers.settings import write_config
from servers.ssh_keys import make_key, public
from servers.sshd import Pretended

from webmon.collect.ssh import agent as agents


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_a_key_of_the_agent_logs_in(start_sshd, tmp_path, agent, kind):
    """Without key_filename the agent's keys are tried; several hosts may use it at once."""
    sshd = start_sshd([Pretended()] * 6)
    key = make_key(tmp_path / "elsewhere", kind)
    sshd.authorized_keys.write_text(public(key))
    agent.add(key)
    key.unlink()
    assert outcomes(ask(tmp_path, sshd.common(key_filename=None))) == ["1 GPUs"] * 6


def test_an_encrypted_key_that_the_agent_holds_logs_in(start_sshd, tmp_path, agent):
    """key_filename may be encrypted if the agent has been given the key."""
    sshd = start_sshd()
    key = make_key(tmp_path / "key", passphrase=agent.PASSPHRASE)
    sshd.authorized_keys.write_text(public(key))
    agent.add(key)
    done = webmon("fetch", "-c", write_config(tmp_path, sshd.common(key_filename=str(key))))
    assert (done.returncode, done.stderr) == (0, "")
    assert outcomes(ask(tmp_path, sshd.common(key_filename=str(key)))) == ["1 GPUs"]


def test_the_public_half_names_a_key_of_the_agent(start_sshd, tmp_path, agent):
    """key_filename may be a public file, as IdentityFile may, when the agent has the rest."""
    sshd = start_sshd()
    key = make_key(tmp_path / "key")
    sshd.authorized_keys.write_text(public(key))
    agent.add(key)
    key.unlink()
    assert outcomes(ask(tmp_path, sshd.common(key_filename=f"{key}.pub"))) == ["1 GPUs"]


def test_an_encrypted_key_that_the_agent_lacks_is_named(sshd, tmp_path, agent):
    """An agent with other keys is no help: the error is about the key."""
    agent.add(make_key(tmp_path / "other"))
    key = make_key(tmp_path / "key", passphrase=agent.PASSPHRASE)
    done = webmon("fetch", "-c", write_config(tmp_path, sshd.common(key_filename=str(key))))
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert f"ssh-add {key}" in done.stderr


def test_an_agent_that_has_gone_is_no_crash(sshd, tmp_path, monkeypatch):
    """$SSH_AUTH_SOCK of yesterday's login is as good as none."""
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "gone"))
    assert outcomes(ask(tmp_path, sshd.common())) == ["1 GPUs"]
    assert failure(ask(tmp_path, sshd.common(key_filename=None))).reason == "key"


@pytest.mark.parametrize("answer", [b"", b"\x00\x00\x00\x01\x05"], ids=["silent", "refusing"])
def test_an_agent_that_does_not_answer_is_no_hang(sshd, tmp_path, monkeypatch, answer):
    """An agent at the end of a dead connection, or one that is locked, counts as none."""
    monkeypatch.setattr(agents, "TIMEOUT_S", 0.2)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen(1)
        listener.settimeout(5)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "socket"))
        server = threading.Thread(target=_answer_once, args=(listener, answer))
        server.start()
        error = failure(ask(tmp_path, sshd.common(key_filename=None)))
        server.join()
    assert (error.reason, "no private key" in error.problem) == ("key", True)


def _answer_once(listener, answer):
    connection, _ = listener.accept()
    with connection:
        connection.recv(5)
        connection.sendall(answer)
        connection.settimeout(5)
        connection.recv(1)


def test_an_agent_that_does_not_sign_is_named(start_sshd, tmp_path, monkeypatch):
    """A key that the agent shows and then does not sign with is the reason, for each host."""
    sshd = start_sshd([Pretended()] * 3)
    blob = base64.b64decode(public(sshd.key).split()[1])
    listing = b"\x0c" + struct.pack(">II", 1, len(blob)) + blob + struct.pack(">I", 4) + b"lab?"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        listener.listen(1)
        listener.settimeout(5)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "socket"))
        server = threading.Thread(target=_list_and_fail, args=(listener, listing))
        server.start()
        answers = ask(tmp_path, sshd.common(key_filename=None))
        server.join()
    assert outcomes(answers) == ["key"] * 3
    assert all("does not sign with its key lab?" in str(answer.result) for answer in answers.values())


def _list_and_fail(listener, listing):
    connection, _ = listener.accept()
    with connection:
        connection.recv(5)
        connection.sendall(struct.pack(">I", len(listing)) + listing)
        connection.recv(65536)
        connection.sendall(b"\x00\x00\x00\x01\x05")
