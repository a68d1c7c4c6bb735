"""One host's settings: its own section, then [common], then ~/.ssh/config, then the default."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

EVERYTHING = """
user = "other"
port = 2200
key_filename = "keys/other"
timeout = 60
known_hosts = "keys/known"
host_keys = "off"
proxy_jump = "bob@gateway:2222"
nvidia_smi = "/opt/nvidia-smi"
label = "the old DGX"
group = "vision"
hostname = "10.0.0.1"
"""


def test_a_section_of_its_own_overrides_everything(file):
    """For that host, and for no other."""
    text = f'[common]\nhosts = ["gpu01", "gpu02"]\nuser = "alice"\nport = 22\n[host."gpu01"]{EVERYTHING}'
    loaded = file.load(text)
    first, second = loaded.hosts
    base = file.path.parent
    assert (first.name, first.address, first.user, first.port) == ("gpu01", "10.0.0.1", "other", 2200)
    assert (first.key_filename, first.known_hosts) == (base / "keys/other", (base / "keys/known",))
    assert (first.timeout, first.host_keys, first.nvidia_smi) == (60.0, "off", "/opt/nvidia-smi")
    assert (first.label, first.group) == ("the old DGX", "vision")
    (hop,) = first.jumps
    assert (hop.address, hop.user, hop.port) == ("gateway", "bob", 2222)
    assert (second.user, second.port, second.timeout, second.jumps) == ("alice", 22, 20.0, ())
    assert (second.label, second.group, second.address) == (None, None, "gpu02")


@pytest.mark.parametrize(
    ("hosts", "section"),
    [
        ("gpu01", "host.gpu01"),
        ("gpu01", 'host."gpu01"'),
        ("gpu01", "host.'gpu01'"),
        ("gpu01.lab.example", "host.gpu01.lab.example"),
        ("gpu01.lab.example", 'host."gpu01.lab.example"'),
        ("gpu[01-04]", 'host."gpu[01-02]"'),
        ("gpu[01-04]", 'host."gpu[01,03]"'),
        ("gpu[01-04]", "host.gpu[01-02]"),
        ("gpu01:2222", 'host."gpu01:2222"'),
        ("gpu01:2222", "host.gpu01"),
        ("bob@gpu01:2222", 'host."bob@gpu01:2222"'),
        ("bob@gpu01:2222", "host.gpu01"),
        ("bob@gpu01", 'host."bob@gpu01"'),
        ("[::1]:22", 'host."[::1]:22"'),
        ("[::1]:22", 'host."[::1]"'),
        ("[::1]:22", 'host."::1"'),
        ("self", "host.self"),
    ],
)
def test_a_section_finds_its_host(file, hosts, section):
    """By its name, by a range, without its port, with its user, with quotes or without."""
    loaded = file.load(f'[common]\nhosts = "{hosts}"\n[{section}]\nlabel = "this"\n')
    assert loaded.hosts[0].label == "this"


def test_a_host_may_be_named_like_the_domain_of_another(file):
    """TOML nests what has dots in it; here each is a host of its own."""
    text = "[common]\nhosts = lab, lab.gpu01\n[host.lab]\nlabel = one\n[host.lab.gpu01]\nlabel = two\n"
    assert [host.label for host in file.load(text).hosts] == ["one", "two"]


def test_two_ports_of_one_machine_are_two_hosts(file):
    """A section without a port is about both."""
    text = '[common]\nhosts = old:1, old:2\n[host.old]\ngroup = old\n[host."old:2"]\nlabel = second\n'
    first, second = file.load(text).hosts
    assert [(host.name, host.group, host.label) for host in (first, second)] == [
        ("old:1", "old", None),
        ("old:2", "old", "second"),
    ]


def test_the_later_of_two_sections_wins(file):
    """So a range can be said first, and its exceptions after it."""
    text = (
        '[common]\nhosts = gpu[1-3]\n[host."gpu[1-3]"]\ntimeout = 30\ngroup = g\n[host.gpu2]\ntimeout = 60\n'
    )
    assert [(host.timeout, host.group) for host in file.load(text).hosts] == [(30, "g"), (60, "g"), (30, "g")]


@pytest.mark.parametrize(
    ("entry", "section", "user", "port"),
    [
        ("gpu01", "", "alice", 2000),
        ("bob@gpu01", "", "bob", 2000),
        ("gpu01:3000", "", "alice", 3000),
        ("bob@gpu01:3000", "", "bob", 3000),
        ("bob@gpu01:3000", "[host.gpu01]\nuser = carol\nport = 4000", "carol", 4000),
    ],
)
def test_an_entry_of_hosts_beats_common_and_its_section_beats_both(file, entry, section, user, port):
    """The nearer to the host, the stronger."""
    text = f"[common]\nuser = alice\nport = 2000\nhosts = {entry}\n{section}\n"
    (host,) = file.load(text).hosts
    assert (host.user, host.port) == (user, port)


def test_self_is_this_machine(file):
    """It is neither logged in to nor reached through anything."""
    (host,) = file.load("[common]\nhosts = self\nproxy_jump = gateway\n[host.self]\nlabel = here\n").hosts
    assert (host.is_self, host.name, host.jumps, host.label) == (True, "self", (), "here")


def test_several_hops_are_taken_in_their_order(file):
    """`proxy_jump = a, b`: to a, from there to b, from there to the host."""
    hops = file.host("[common]\nhosts = gpu01\nuser = alice\nport = 99\nproxy_jump = a, bob@b:22\n").jumps
    assert [(hop.address, hop.user, hop.port) for hop in hops] == [("a", "alice", 22), ("b", "bob", 22)]


@pytest.mark.parametrize("said", ["none", "None"])
def test_a_host_can_be_reached_without_the_common_hop(file, said):
    """`proxy_jump = none` in its own section."""
    text = f"[common]\nhosts = gpu01, gpu02\nproxy_jump = gateway\n[host.gpu01]\nproxy_jump = {said}\n"
    assert [len(host.jumps) for host in file.load(text).hosts] == [0, 1]


def test_a_gateway_that_is_monitored_is_not_reached_through_itself(file):
    """It is in `hosts` as well as in proxy_jump."""
    text = "[common]\nhosts = gateway, gpu01\nproxy_jump = gateway\n"
    assert [len(host.jumps) for host in file.load(text).hosts] == [0, 1]


def test_a_home_folder_is_meant_by_a_tilde(file, own_home):
    """In every path; without one, ssh's own files are looked for there."""
    (host,) = file.load("[common]\nhosts = gpu01\nkey_filename = ~/keys/id\n").hosts
    assert host.key_filename == own_home / "keys" / "id"
    assert host.identity_files == tuple(
        own_home / ".ssh" / name for name in ("id_ed25519", "id_ecdsa", "id_rsa")
    )
    assert host.known_hosts == (
        own_home / ".ssh" / "known_hosts",
        own_home / ".ssh" / "known_hosts2",
        Path("/etc/ssh/ssh_known_hosts"),
        Path("/etc/ssh/ssh_known_hosts2"),
    )


@pytest.mark.parametrize("socket", ["/run/agent", ""])
def test_the_agent_is_the_one_of_the_environment(file, monkeypatch, socket):
    """An empty variable is none."""
    monkeypatch.setenv("SSH_AUTH_SOCK", socket)
    assert file.host("[common]\nhosts = gpu01\n").identity_agent == (socket or None)


def test_the_user_is_whoever_runs_webmon(file, monkeypatch):
    """Where nobody says another; by the user id, as for ssh, whatever the environment says."""
    monkeypatch.setenv("LOGNAME", "daemon")
    assert file.host("[common]\nhosts = gpu01\n").user == pwd.getpwuid(os.getuid()).pw_name


def test_a_user_that_has_no_name_is_no_obstacle(file, monkeypatch):
    """In a container the user may be a number that nobody knows."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 54321)
    assert file.host("[common]\nhosts = gpu01\n").user == "54321"
