"""The private key that webmon logs in with."""

from __future__ import annotations

import pytest
from servers.ask import ask, failure, outcomes
from servers.command import webmon
from servers.settings import write_config
from servers.ssh_keys import keygen, make_key, public

SECRET = "a passphrase"


@pytest.fixture
def allow(sshd):
    """Let the user in with further keys, until the test is over."""
    before = sshd.authorized_keys.read_text()

    def let_in(*lines):
        sshd.authorized_keys.write_text(before + "\n".join(lines) + "\n")

    yield let_in
    sshd.authorized_keys.write_text(before)


@pytest.mark.parametrize(
    ("kind", "form"),
    [("ed25519", "openssh"), ("rsa", "openssh"), ("ecdsa", "openssh"), ("rsa", "pem"), ("ecdsa", "pem")],
)
def test_all_types_of_keys_log_in(sshd, tmp_path, allow, kind, form):
    """ed25519, RSA and ECDSA keys log in, in OpenSSH's own form and in the older PEM."""
    key = make_key(tmp_path / "key", kind)
    allow(public(key))
    if form == "pem":
        keygen("-p", "-m", "PEM", "-N", "", "-f", str(key))
        assert "BEGIN OPENSSH" not in key.read_text()
    assert outcomes(ask(tmp_path, sshd.common(key_filename=str(key)))) == ["1 GPUs"]


def test_a_key_needs_no_public_half(sshd, tmp_path):
    """The private file is enough; a .pub beside it that is rubbish does no harm."""
    key = tmp_path / "key"
    key.write_bytes(sshd.key.read_bytes())
    assert outcomes(ask(tmp_path, sshd.common(key_filename=str(key)))) == ["1 GPUs"]
    (tmp_path / "key.pub").write_bytes(b"\xff\x00 rubbish")
    assert outcomes(ask(tmp_path, sshd.common(key_filename=str(key)))) == ["1 GPUs"]


def _encrypted(path):
    make_key(path, passphrase=SECRET)


def _encrypted_pem(path):
    make_key(path, "rsa", passphrase=SECRET)
    keygen("-p", "-m", "PEM", "-P", SECRET, "-N", SECRET, "-f", str(path))
    assert "Proc-Type: 4,ENCRYPTED" in path.read_text()


def _nothing(path):
    assert not path.exists()


def _garbage(path):
    path.write_bytes(b"\x00\xffthis is no key\n" * 40)


def _empty(path):
    path.write_bytes(b"")


def _cut_off(path):
    make_key(path)
    path.write_text(path.read_text()[:180])


def _public_half(path):
    make_key(path)
    path.write_text(public(path))


def _folder(path):
    path.mkdir()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (_encrypted, "is encrypted. Add it to an agent"),
        (_encrypted_pem, "is encrypted. Add it to an agent"),
        (_nothing, "there is no key"),
        (_garbage, "is not a private key"),
        (_empty, "is not a private key"),
        (_cut_off, "is not a private key"),
        (_public_half, "is not a private key"),
        (_folder, "can't be read: Is a directory"),
    ],
)
def test_a_key_for_all_hosts_that_can_not_be_used_ends_the_command(sshd, tmp_path, make, said):
    """One clear line with the file and a remedy, exit 2, and no connection to any host."""
    key = tmp_path / "the_key"
    make(key)
    config = write_config(tmp_path, sshd.common(key_filename=str(key)))
    before = sshd.connections()
    done = webmon("fetch", "-c", config)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("webmon: key_filename: ")
    assert done.stderr.count("\n") == 1
    assert str(key) in done.stderr
    assert said in done.stderr
    assert sshd.connections() == before


def test_a_bad_key_of_one_host_is_that_hosts_matter(start_sshd, sshd, tmp_path):
    """[host] key_filename that can't be used takes only that host down."""
    other = start_sshd(first_address=31)
    common = sshd.common(hosts=[*sshd.names, *other.names], host_keys="off")
    bad = {"key_filename": str(tmp_path / "missing")}
    answers = ask(tmp_path, common, {sshd.names[0]: {"key_filename": str(sshd.key)}, other.names[0]: bad})
    assert outcomes(answers) == ["1 GPUs", "key"]


def test_a_key_that_the_host_does_not_know_is_refused(sshd, tmp_path):
    """The error names user and key, and how to let the key in."""
    key = make_key(tmp_path / "stranger")
    error = failure(ask(tmp_path, sshd.common(key_filename=str(key))))
    assert error.reason == "auth"
    assert f"{sshd.user} may not log in with {key}" in str(error)
    assert "webmon deploy key" in error.remedy


def test_a_user_that_may_not_log_in_is_refused(sshd, tmp_path):
    """An account that the host does not have looks like a key that it refuses."""
    assert outcomes(ask(tmp_path, sshd.common(user="nobody-at-all"))) == ["auth"]


def test_without_any_key_the_host_says_so(sshd, tmp_path):
    """No key_filename, no ~/.ssh, no agent: the error says how to make a key."""
    error = failure(ask(tmp_path, sshd.common(key_filename=None)))
    assert (error.reason, "ssh-keygen -t ed25519" in error.remedy) == ("key", True)


def test_the_usual_keys_of_the_home_folder_are_tried(sshd, tmp_path, monkeypatch):
    """Without key_filename it is ~/.ssh/id_ed25519, id_ecdsa and id_rsa, as ssh does it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    make_key(tmp_path / ".ssh" / "id_ed25519")
    make_key(tmp_path / ".ssh" / "id_rsa", "rsa", passphrase=SECRET)
    assert outcomes(ask(tmp_path, sshd.common(key_filename=None))) == ["auth"]
    (tmp_path / ".ssh" / "id_ecdsa").write_bytes(sshd.key.read_bytes())
    assert outcomes(ask(tmp_path, sshd.common(key_filename=None))) == ["1 GPUs"]


def test_a_host_that_wants_a_password_says_so(start_sshd, tmp_path):
    """Where keys are not allowed at all, the error says what is."""
    sshd = start_sshd(settings=["PubkeyAuthentication no", "AuthenticationMethods none password"])
    error = failure(ask(tmp_path, sshd.common()))
    assert error.reason == "auth"


def test_a_host_that_wants_more_than_a_key_is_refused(start_sshd, tmp_path):
    """A key is half of what this host wants: no login, and no endless loop."""
    sshd = start_sshd(settings=["PasswordAuthentication yes", "AuthenticationMethods publickey,password"])
    error = failure(ask(tmp_path, sshd.common()))
    assert error.reason == "auth"
    assert "password" in error.problem
