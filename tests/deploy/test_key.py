"""The lines for authorized_keys: which key, which hosts, and what is said if there is no key."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from servers.command import webmon
from servers.settings import write_config
from servers.ssh_keys import keygen, make_key, public

from webmon.collect import probe

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def lines(text: str) -> dict[str, str]:
    """Return the lines by the comment before each, which names its accounts."""
    paragraphs = text.strip().split("\n\n")[1:]
    found = {}
    for paragraph in paragraphs:
        *comments, line = paragraph.splitlines()
        assert all(comment.startswith("# ") for comment in comments)
        found[" ".join(comment.removeprefix("# ") for comment in comments)] = line
    return found


def command(line: str) -> str:
    """Return what `command="…"` holds, as sshd reads it."""
    start = line.index('command="') + len('command="')
    found = re.match(r'((?:[^"\\]|\\"|\\(?!"))*)" ', line[start:])
    assert found
    return found[1].replace(r"\"", '"')


def key_of(line: str) -> str:
    return " ".join(line.split()[-3:-1])


def test_the_line_of_a_key(printed: Callable[..., str], tmp_path: Path):
    """The key may run the probe and nothing else; who it is for stands before and after."""
    key = make_key(tmp_path / "key")
    found = lines(printed("key", common={"user": "mon", "key_filename": "key"}))
    assert list(found) == ["mon@gpu01"]
    line = found["mon@gpu01"]
    assert line.startswith('restrict,command="')
    assert line.endswith(f'" {public(key)} webmon')
    assert command(line) == probe.forced_command()


@pytest.mark.parametrize("kind", ["ed25519", "rsa", "ecdsa"])
def test_ssh_reads_every_line(printed: Callable[..., str], tmp_path: Path, kind: str):
    """The whole text, pasted with its comments, is an authorized_keys file."""
    key = make_key(tmp_path / "key", kind)
    hosts = {"b": {"timeout": 50}, "c": {"nvidia_smi": "sudo /opt/a b/nvidia-smi"}}
    text = printed("key", common={"hosts": ["a", "b", "c"], "key_filename": "key"}, hosts=hosts)
    (tmp_path / "authorized_keys").write_text(text)
    fingerprints = keygen("-l", "-f", str(tmp_path / "authorized_keys")).splitlines()
    expected = keygen("-l", "-f", f"{key}.pub").split()[1]
    assert [line.split()[1] for line in fingerprints] == [expected] * 3


def test_hosts_that_differ_have_lines_of_their_own(printed: Callable[..., str], tmp_path: Path):
    """One line for every different probe and key, with the accounts that it is for."""
    make_key(tmp_path / "key")
    other = make_key(tmp_path / "other")
    hosts = {
        "gpu03": {"timeout": 50},
        "gpu04": {"nvidia_smi": "/opt/nvidia-smi"},
        "gpu05": {"key_filename": "other"},
        "gpu06": {"timeout": 50},
    }
    common = {"hosts": ["self", "gpu[01-06]", "bob@gpu07:2222"], "user": "mon", "key_filename": "key"}
    found = lines(printed("key", common=common, hosts=hosts))
    assert list(found) == [
        "mon@gpu01 mon@gpu02 bob@gpu07:2222",
        "mon@gpu03 mon@gpu06",
        "mon@gpu04",
        "mon@gpu05",
    ]
    assert command(found["mon@gpu03 mon@gpu06"]) == probe.forced_command(timeout=50)
    assert command(found["mon@gpu04"]) == probe.forced_command("/opt/nvidia-smi")
    assert key_of(found["mon@gpu05"]) == public(other)


def test_many_hosts_are_all_named(printed: Callable[..., str], tmp_path: Path):
    """The comment is wrapped, so that it can be read, and no name is broken."""
    make_key(tmp_path / "key")
    text = printed("key", common={"user": "m", "hosts": ["node-[001-200].lab"], "key_filename": "key"})
    (names,) = lines(text)
    assert names.split() == [f"m@node-{number:03}.lab" for number in range(1, 201)]
    assert all(len(line) <= 110 for line in text.splitlines() if line.startswith("#"))


def test_a_gateway_may_be_passed_and_no_more(printed: Callable[..., str], tmp_path: Path):
    """A gateway's line lets the key through to the hosts behind it, and runs nothing."""
    make_key(tmp_path / "key")
    common = {"user": "m", "hosts": ["a", "b:2222", "2001:db8::7"], "key_filename": "key"}
    found = lines(printed("key", common=common | {"proxy_jump": "j@gate"}))
    opened = ["a:22", "b:2222", "[2001:db8::7]:22"]
    permits = ",".join(f'permitopen="{place}"' for place in sorted(opened))
    assert found["j@gate"].startswith(f'restrict,port-forwarding,{permits},command="false" ssh-')


def test_a_host_that_is_a_gateway_too_has_one_line(printed: Callable[..., str], tmp_path: Path):
    """sshd obeys the first line with the key: that one has to allow both."""
    make_key(tmp_path / "key")
    common = {"user": "m", "hosts": ["a", "b"], "key_filename": "key"}
    found = lines(printed("key", common=common, hosts={"b": {"proxy_jump": "a"}}))
    assert list(found) == ["m@a", "m@b"]
    assert found["m@a"].startswith('restrict,port-forwarding,permitopen="b:22",command="exec sh -c')


def test_the_public_half_is_derived_if_it_is_missing(printed: Callable[..., str], tmp_path: Path):
    """A private key without its .pub is enough."""
    key = make_key(tmp_path / "key")
    expected = public(key)
    key.with_name("key.pub").unlink()
    (line,) = lines(printed("key", common={"key_filename": "key"})).values()
    assert key_of(line) == expected


@pytest.mark.parametrize("content", [b"", b"\xff\x00 nonsense", b"ssh-ed25519", b"ssh-ed25519 a b\n"])
def test_a_public_half_that_is_none_is_passed_over(
    printed: Callable[..., str], tmp_path: Path, content: bytes
):
    """A broken .pub never gets into the line if the key itself can say what it is."""
    key = make_key(tmp_path / "key")
    expected = public(key)
    key.with_name("key.pub").write_bytes(content)
    (line,) = lines(printed("key", common={"key_filename": "key"})).values()
    assert key_of(line) == expected


def test_an_encrypted_key_has_its_public_half(printed: Callable[..., str], tmp_path: Path):
    """Nobody is asked for a passphrase: the .pub is enough."""
    key = make_key(tmp_path / "key", passphrase="secret")
    (line,) = lines(printed("key", common={"key_filename": "key"})).values()
    assert key_of(line) == public(key)


def test_a_key_in_an_agent_is_named_by_its_public_half(printed: Callable[..., str], tmp_path: Path):
    """Where the private half is elsewhere, key_filename may name the .pub."""
    key = make_key(tmp_path / "key")
    key.unlink()
    (line,) = lines(printed("key", common={"key_filename": "key.pub"})).values()
    assert key_of(line) == public(key)


def test_without_key_filename_it_is_what_ssh_would_take(tmp_path: Path):
    """The first key of the home folder that is there."""
    home = tmp_path / "home"
    key = make_key(home / ".ssh" / "id_rsa", "rsa")
    result = webmon("deploy", "key", "-c", write_config(tmp_path, {"hosts": ["a"]}), env={"HOME": str(home)})
    (line,) = lines(result.stdout).values()
    assert key_of(line) == public(key)


@pytest.mark.parametrize("name", ["key", "the lab's $key"])
def test_without_a_key_the_remedy_makes_one(
    refused: Callable[..., str], printed: Callable[..., str], tmp_path: Path, name: str
):
    """What the error says, pasted into a shell, makes the key that was missing."""
    common = {"key_filename": str(tmp_path / name)}
    error = refused("key", common=common)
    remedy = re.search(r"(ssh-keygen -t ed25519 -N \"\" -f .+)$", error, re.MULTILINE)
    assert remedy
    subprocess.run(["/bin/sh", "-c", f"{remedy[1]} -q"], check=True, stdin=subprocess.DEVNULL, timeout=30)
    (line,) = lines(printed("key", common=common)).values()
    assert key_of(line) == public(tmp_path / name)


def test_a_public_half_that_nobody_knows(refused: Callable[..., str], tmp_path: Path):
    """An encrypted key without its .pub: the error says how to save it."""
    key = make_key(tmp_path / "key", passphrase="secret")
    key.with_name("key.pub").unlink()
    error = refused("key", common={"key_filename": "key"})
    assert f"ssh-keygen -y -f {key} > {key}.pub" in error


def test_without_ssh_keygen(tmp_path: Path):
    """Where OpenSSH is not installed, that is what is said."""
    make_key(tmp_path / "key").with_name("key.pub").unlink()
    config = write_config(tmp_path, {"hosts": ["a"], "key_filename": "key"})
    result = webmon("deploy", "key", "-c", config, env={"PATH": str(tmp_path)})
    assert (result.returncode, result.stdout) == (2, "")
    assert "ssh-keygen is not installed" in result.stderr
    assert "Traceback" not in result.stderr


def test_what_is_no_key_at_all(refused: Callable[..., str], tmp_path: Path):
    """A file that is something else is an error, not a line."""
    (tmp_path / "key").write_text("not a key\n")
    assert str(tmp_path / "key") in refused("key", common={"key_filename": "key"})


def test_only_this_machine(refused: Callable[..., str]):
    """`self` is asked without SSH, so there is nothing to paste anywhere."""
    assert "self" in refused("key", common={"hosts": ["self"]})
