"""Users' keys that a certificate authority has signed."""

from __future__ import annotations

import pytest
from servers.ask import ask, failure, outcomes
from servers.ssh_keys import keygen, make_key

from webmon.errors import ConfigError


@pytest.fixture
def authority(tmp_path):
    """The key of a certificate authority that signs users' keys."""
    return make_key(tmp_path / "authority")


@pytest.fixture
def certified(start_sshd, authority, tmp_path):
    """An sshd that knows no key, and trusts the authority."""
    sshd = start_sshd(settings=[f"TrustedUserCAKeys {authority}.pub"])
    sshd.authorized_keys.write_text("")
    return sshd


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_a_certificate_beside_the_key_logs_in(certified, authority, tmp_path, kind):
    """`key-cert.pub` is used with `key`, as ssh does it."""
    key = make_key(tmp_path / "key", kind)
    assert outcomes(ask(tmp_path, certified.common(key_filename=str(key)))) == ["auth"]
    signed = make_key(tmp_path / "signed", kind)
    keygen("-s", str(authority), "-I", "webmon", "-n", certified.user, "-V", "+1h", f"{signed}.pub")
    assert outcomes(ask(tmp_path, certified.common(key_filename=str(signed)))) == ["1 GPUs"]


def test_an_expired_certificate_is_refused(certified, authority, tmp_path):
    """What the authority does not vouch for any more gets no login."""
    key = make_key(tmp_path / "key")
    keygen("-s", str(authority), "-I", "webmon", "-n", certified.user, "-V", "-2h:-1h", f"{key}.pub")
    assert outcomes(ask(tmp_path, certified.common(key_filename=str(key)))) == ["auth"]


def test_a_key_with_a_certificate_still_logs_in_where_it_is_known_itself(sshd, authority, tmp_path):
    """A host that knows the key and not the authority lets it in, as it does for ssh."""
    key = tmp_path / "key"
    key.write_bytes(sshd.key.read_bytes())
    (tmp_path / "key.pub").write_bytes((sshd.folder / "user_key.pub").read_bytes())
    keygen("-s", str(authority), "-I", "webmon", "-n", sshd.user, f"{key}.pub")
    assert outcomes(ask(tmp_path, sshd.common(key_filename=str(key)))) == ["1 GPUs"]


@pytest.mark.parametrize(
    "rubbish", [b"", b"rubbish", b"\xff\x00\xff", b"ssh-ed25519-cert-v01@openssh.com AAAA me"]
)
def test_a_certificate_that_can_not_be_read_is_named(sshd, tmp_path, rubbish):
    """A broken certificate beside a key ends the command, and the error is not about the key."""
    key = tmp_path / "key"
    key.write_bytes(sshd.key.read_bytes())
    (tmp_path / "key-cert.pub").write_bytes(rubbish)
    with pytest.raises(ConfigError, match=r"key-cert\.pub is no certificate .* Remove it"):
        ask(tmp_path, sshd.common(key_filename=str(key)))


def test_a_certificate_of_another_key_is_passed_over(certified, authority, tmp_path):
    """The wrong file at the right name is not shown to the host."""
    key = make_key(tmp_path / "key")
    other = make_key(tmp_path / "other")
    keygen("-s", str(authority), "-I", "webmon", "-n", certified.user, f"{other}.pub")
    (tmp_path / "other-cert.pub").rename(tmp_path / "key-cert.pub")
    error = failure(ask(tmp_path, certified.common(key_filename=str(key))))
    assert (error.reason, "key-cert" in error.problem) == ("auth", False)


def test_a_certificate_file_of_the_ssh_config_logs_in(certified, authority, tmp_path, monkeypatch):
    """CertificateFile names a certificate that lies elsewhere."""
    monkeypatch.setenv("HOME", str(tmp_path))
    key = make_key(tmp_path / ".ssh" / "id_ed25519")
    keygen("-s", str(authority), "-I", "webmon", "-n", certified.user, f"{key}.pub")
    (tmp_path / ".ssh" / "id_ed25519-cert.pub").rename(tmp_path / "lab-cert.pub")
    (tmp_path / ".ssh" / "config").write_text(f"Host *\n  CertificateFile {tmp_path}/lab-cert.pub\n")
    assert outcomes(ask(tmp_path, certified.common(key_filename=None))) == ["1 GPUs"]


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_a_certificate_that_the_agent_holds_logs_in(certified, authority, tmp_path, agent, kind):
    """ssh-add takes the certificate beside a key with it."""
    key = make_key(tmp_path / "key", kind)
    keygen("-s", str(authority), "-I", "webmon", "-n", certified.user, f"{key}.pub")
    agent.add(key)
    key.unlink()
    assert outcomes(ask(tmp_path, certified.common(key_filename=None))) == ["1 GPUs"]
