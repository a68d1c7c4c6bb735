"""Which hosts are believed to be who they say they are."""

from __future__ import annotations

import pytest
from servers.ask import ask, failure, outcomes
from servers.ssh_keys import keygen, make_key, public
from servers.sshd import Pretended

OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIUAqoKmLmNpAxlS3NWsJ9i9H7Bb9XRLBTcoB4R8y6Xx"


@pytest.fixture
def known(sshd, tmp_path):
    """A known_hosts file of this test's own, which knows the host."""
    path = tmp_path / "known_hosts"
    path.write_text(sshd.known_hosts.read_text())
    return path


def _ask(sshd, known, tmp_path, policy="strict"):
    return ask(tmp_path, sshd.common(known_hosts=str(known), host_keys=policy))


def _replace_key(known):
    name = known.read_text().split()[0]
    known.write_text(f"{name} {OTHER_KEY}\n")


def test_a_host_that_is_not_known_is_refused(sshd, tmp_path):
    """By default a host that known_hosts lacks gets no login; the error says how to add it."""
    known = tmp_path / "none"
    error = failure(_ask(sshd, known, tmp_path))
    assert error.reason == "host-key"
    assert "is not known" in str(error)
    assert f"ssh-keyscan -p {sshd.port} {sshd.addresses[0]} >> {known}" in str(error)
    assert not known.exists()


def test_accept_new_remembers_the_key_of_a_new_host(sshd, tmp_path):
    """accept-new writes a new host's key down; known_hosts and its folder need not exist."""
    known = tmp_path / "folder" / "known_hosts"
    assert outcomes(_ask(sshd, known, tmp_path, "accept-new")) == ["1 GPUs"]
    assert known.read_text().splitlines() == sshd.known_lines()
    assert known.stat().st_mode & 0o777 == 0o600
    assert outcomes(_ask(sshd, known, tmp_path, "strict")) == ["1 GPUs"]


def test_accept_new_keeps_what_is_there(sshd, tmp_path):
    """A key is added on a line of its own, also where the last line lacks its end."""
    known = tmp_path / "known_hosts"
    known.write_text(f"other {OTHER_KEY}")
    assert outcomes(_ask(sshd, known, tmp_path, "accept-new")) == ["1 GPUs"]
    assert known.read_text().splitlines() == [f"other {OTHER_KEY}", *sshd.known_lines()]


def test_accept_new_remembers_many_new_hosts_at_once(start_sshd, tmp_path):
    """New hosts that answer side by side are all written down, each once."""
    sshd = start_sshd([Pretended()] * 8)
    known = tmp_path / "known_hosts"
    common = sshd.common(known_hosts=str(known), host_keys="accept-new")
    assert outcomes(ask(tmp_path, common)) == ["1 GPUs"] * 8
    assert sorted(known.read_text().splitlines()) == sorted(sshd.known_lines())


@pytest.mark.parametrize("policy", ["strict", "accept-new"])
def test_a_changed_key_is_refused(sshd, known, tmp_path, policy):
    """Neither strict nor accept-new takes another key than the one that is known."""
    _replace_key(known)
    error = failure(_ask(sshd, known, tmp_path, policy))
    assert error.reason == "host-key"
    assert "has changed" in error.problem
    assert "ssh-keygen -R" in error.remedy
    assert OTHER_KEY in known.read_text()


def test_off_takes_any_key(sshd, known, tmp_path):
    """With "off" a changed key does not matter, and nothing is written down."""
    _replace_key(known)
    before = known.read_text()
    assert outcomes(_ask(sshd, known, tmp_path, "off")) == ["1 GPUs"]
    assert known.read_text() == before


def test_hashed_names_are_understood(sshd, known, tmp_path):
    """HashKnownHosts, the default of Debian, hides the names from people, not from webmon."""
    keygen("-H", "-f", str(known))
    assert known.read_text().startswith("|1|")
    assert outcomes(_ask(sshd, known, tmp_path)) == ["1 GPUs"]


def test_lines_that_are_no_plain_keys_are_passed_over(sshd, known, tmp_path):
    """@cert-authority, comments and broken lines don't hide the good ones."""
    odd = [
        f"@cert-authority *.lab {OTHER_KEY}",
        "# a comment",
        "",
        "gpu01",
        "gpu02 ssh-ed25519 not-base64!",
        "|1|broken|hash ssh-ed25519 AAAA",
        "gpu03 2048 65537 123456789",
        "\x00\x00\xff garbage",
    ]
    known.write_text("\n".join(odd) + "\n" + known.read_text())
    assert outcomes(_ask(sshd, known, tmp_path)) == ["1 GPUs"]


def test_broken_lines_are_named_where_a_host_is_not_known(sshd, tmp_path):
    """A host whose line can't be read is told so: it may be the line that it misses."""
    known = tmp_path / "known_hosts"
    known.write_text(f"# mine\n[{sshd.addresses[0]}]:{sshd.port} ssh-ed25519 AAAAcut off\n")
    assert f"{known}:2" in str(failure(_ask(sshd, known, tmp_path)))


def test_a_revoked_key_is_refused(sshd, known, tmp_path):
    """@revoked wins over a line that knows the key, and over accept-new."""
    with known.open("a") as file:
        file.write(f"@revoked * {public(sshd.host_keys['ed25519'])}\n")
    for policy in ("strict", "accept-new"):
        error = failure(_ask(sshd, known, tmp_path, policy))
        assert (error.reason, "revoked" in error.problem) == ("host-key", True)


@pytest.mark.parametrize(
    ("pattern", "outcome"),
    [
        ("[127.0.0.*]:*", "1 GPUs"),
        ("other,[127.0.0.1?]:{port}", "1 GPUs"),
        ("[127.0.0.*]:*,!{name}", "host-key"),
        ("127.0.0.11", "host-key"),
    ],
)
def test_names_may_be_patterns(sshd, known, tmp_path, pattern, outcome):
    """Wildcards and exceptions mean what they mean to ssh; a port belongs to the name."""
    name = f"[{sshd.addresses[0]}]:{sshd.port}"
    key = public(sshd.host_keys["ed25519"])
    known.write_text(f"{pattern.format(port=sshd.port, name=name)} {key}\n")
    assert outcomes(_ask(sshd, known, tmp_path)) == [outcome]


@pytest.mark.parametrize("kind", ["rsa", "ecdsa", "ed25519"])
def test_the_type_of_key_that_is_known_is_asked_for(start_sshd, tmp_path, kind):
    """A host known by one of its keys is asked for that one, though it would prefer another."""
    sshd = start_sshd(host_keys=["ed25519", "rsa", "ecdsa"])
    known = tmp_path / "known_hosts"
    known.write_text(
        f"{sshd.addresses[0]},[{sshd.addresses[0]}]:{sshd.port} {public(sshd.host_keys[kind])}\n"
    )
    assert outcomes(_ask(sshd, known, tmp_path)) == ["1 GPUs"]


def test_a_host_that_lost_the_known_type_of_key_has_changed(sshd, tmp_path):
    """A host known by an RSA key that now shows another type is not simply unknown."""
    known = tmp_path / "known_hosts"
    other = public(make_key(tmp_path / "other", "rsa"))
    known.write_text(f"[{sshd.addresses[0]}]:{sshd.port} {other}\n")
    error = failure(_ask(sshd, known, tmp_path))
    assert (error.reason, "of another type before" in error.problem) == ("host-key", True)


def test_known_hosts_that_is_a_folder_knows_nobody(sshd, tmp_path):
    """A file that can't be read is no crash: its hosts are not known, and the error names it."""
    error = failure(_ask(sshd, tmp_path, tmp_path))
    assert error.reason == "host-key"
    assert f"{tmp_path}: Is a directory" in str(error)


def test_accept_new_says_when_it_can_not_remember(sshd, tmp_path):
    """A key that can't be written down is not accepted silently."""
    error = failure(_ask(sshd, tmp_path, tmp_path, "accept-new"))
    assert error.reason == "host-key"
    assert "could not be saved" in error.problem
