"""~/.ssh/config, as far as it says how a host is reached."""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webmon.config.ssh_config import SshConfig, expand_tokens
from webmon.errors import ConfigError


@pytest.fixture
def ssh(own_home, file):
    """Write ~/.ssh/config, and return what is then in force for gpu01."""

    def in_force(text, hosts="gpu01", rest="", **others):
        (own_home / ".ssh" / "config").write_text(text, encoding="utf-8")
        for name, content in others.items():
            (own_home / ".ssh" / name).write_text(content, encoding="utf-8")
        return file.load(f"[common]\nhosts = {hosts}\n{rest}").hosts[0]

    return in_force


@pytest.fixture
def read(tmp_path):
    """Return what ssh_config files say about a host: `read(text)("gpu01")["user"]`."""

    def reader(*texts):
        files = [tmp_path / f"config{number}" for number in range(len(texts))]
        for path, text in zip(files, texts, strict=True):
            path.write_text(text, encoding="utf-8")
        parsed = SshConfig(files)

        def lookup(host, user=None):
            found = parsed.lookup(host, user)
            return {key: [value.text for value in values] for key, values in found.items()}

        return lookup

    return reader


def test_everything_that_says_how_a_host_is_reached_is_taken(ssh, own_home):
    """HostName, User, Port, IdentityFile, ProxyJump, UserKnownHostsFile, and what goes with them."""
    host = ssh("""
Host gpu01
    HostName 10.0.0.1
    User bob
    Port 2222
    IdentityFile ~/.ssh/id_one
    IdentityFile %d/.ssh/id_%r_%h
    CertificateFile ~/.ssh/one-cert.pub
    IdentitiesOnly yes
    IdentityAgent ~/agent.sock
    UserKnownHostsFile ~/.ssh/mine ~/.ssh/ours
    GlobalKnownHostsFile /etc/everyones
    HostKeyAlias the-gpu
    ProxyJump alice@gateway:2200,second
""")
    assert (host.name, host.address, host.user, host.port) == ("gpu01", "10.0.0.1", "bob", 2222)
    folder = own_home / ".ssh"
    assert host.identity_files == (folder / "id_one", folder / "id_bob_10.0.0.1")
    assert host.certificate_files == (folder / "one-cert.pub",)
    assert host.identities_only
    assert host.identity_agent == str(own_home / "agent.sock")
    assert host.known_hosts == (folder / "mine", folder / "ours", Path("/etc/everyones"))
    assert host.host_key_alias == "the-gpu"
    assert [(hop.address, hop.user, hop.port) for hop in host.jumps] == [
        ("gateway", "alice", 2200),
        ("second", getpass.getuser(), 22),
    ]


def test_what_webmons_file_says_wins(ssh, own_home, file):
    """In [common], in `hosts`, in the host's own section alike."""
    text = "Host gpu*\n User b\n Port 1\n IdentityFile c\n UserKnownHostsFile d\n ProxyJump e\n HostName f\n"
    rest = "user = alice\nport = 2\nkey_filename = k\nknown_hosts = h\nproxy_jump = j\n"
    host = ssh(text, rest=rest)
    base = file.path.parent
    assert (host.user, host.port) == ("alice", 2)
    assert (host.key_filename, host.known_hosts) == (base / "k", (base / "h",))
    assert [hop.name for hop in host.jumps] == ["j"]
    host = ssh(text, hosts="carol@gpu01:3", rest="[host.gpu01]\nhostname = 10.0.0.1\nproxy_jump = none\n")
    assert (host.user, host.port, host.address, host.jumps) == ("carol", 3, "10.0.0.1", ())


def test_the_port_of_webmons_default_does_not_win(ssh):
    """What nobody said in webmon's file is looked for in ssh's."""
    assert ssh("Host gpu01\n Port 2222\n").port == 2222


@pytest.mark.parametrize("port", ["ssh", "", "²", "-1"])
def test_a_port_that_is_no_number_is_passed_over(ssh, port):
    """ssh would refuse the whole file; webmon has a default."""
    assert ssh(f"Host gpu01\n Port {port}\n User bob\n").port == 22


@pytest.mark.parametrize(
    ("patterns", "host", "applies"),
    [
        ("gpu01", "gpu01", True),
        ("GPU01", "gpu01", True),
        ("gpu01", "GPU01", True),
        ("gpu01", "gpu011", False),
        ("gpu*", "gpu01", True),
        ("gpu?", "gpu01", False),
        ("gpu??", "gpu01", True),
        ("*", "anything", True),
        ("a gpu01 b", "gpu01", True),
        ("gpu* !gpu02", "gpu01", True),
        ("gpu* !gpu02", "gpu02", False),
        ("!gpu02 gpu*", "gpu02", False),
        ("!gpu02", "gpu01", False),
        ("* !*.lab", "gpu01.lab", False),
        ("*.lab", "gpu01.lab", True),
        ('"gpu01"', "gpu01", True),
        ("gpu[01]", "gpu0", False),
        ("gpu[01]", "gpu[01]", True),
        ("", "gpu01", False),
    ],
)
def test_a_block_applies_where_its_patterns_match(read, patterns, host, applies):
    """One that is negated excludes, whatever the others say; brackets are nothing special."""
    assert ("user" in read(f"Host {patterns}\n User bob\n")(host)) is applies


def test_the_first_value_wins(read):
    """So the exceptions come first, and `Host *` last; files that add up are added up."""
    found = read(
        "User first\nHost gpu01\n User second\n Port 1\n IdentityFile a\nHost *\n Port 2\n IdentityFile b\n",
        "Host gpu01\n Port 3\n IdentityFile c\n Compression yes\n",
    )("gpu01")
    assert found == {
        "user": ["first"],
        "port": ["1"],
        "identityfile": ["a", "b", "c"],
        "compression": ["yes"],
    }


@pytest.mark.parametrize(
    "line",
    [
        "User bob",
        "user bob",
        "USER=bob",
        "User = bob",
        "User=bob",
        " \tUser\t bob  ",
        'User "bob"',
        "User bob # x",
    ],
)
def test_a_line_can_be_written_in_many_ways(read, line):
    """With = or blanks, quotes, comments, in any case."""
    assert read(f"# x\n\n{line}\r\n")("gpu01") == {"user": ["bob"]}


def test_a_quote_that_is_not_closed_does_no_harm(read):
    """The words are taken as they are."""
    assert read('User bo"b\n')("gpu01") == {"user": ['bo"b']}


def test_a_line_without_a_value_says_nothing(read):
    """The next one that has one does."""
    assert read("User\nPort=\nUser bob\n")("gpu01") == {"user": ["bob"]}


@pytest.mark.parametrize(
    ("criteria", "host", "user", "applies"),
    [
        ("all", "gpu01", None, True),
        ("host gpu*", "gpu01", None, True),
        ("host gpu*,!gpu01", "gpu01", None, False),
        ("originalhost gpu01", "gpu01", None, True),
        ("originalhost gpu02", "gpu01", None, False),
        ("user bob", "gpu01", "bob", True),
        ("user bob", "gpu01", "alice", False),
        ("user bob host gpu01", "gpu01", "bob", True),
        ("user bob host gpu02", "gpu01", "bob", False),
        (f"localuser {getpass.getuser()}", "gpu01", None, True),
        (f"user {getpass.getuser()}", "gpu01", None, True),
        ("localuser nobody-else", "gpu01", None, False),
        ("HOST gpu01", "gpu01", None, True),
        ("exec true", "gpu01", None, False),
        ("exec *", "gpu01", None, False),
        ("host gpu01 exec true", "gpu01", None, False),
        ("final all", "gpu01", None, False),
        ("host", "gpu01", None, False),
        ("", "gpu01", None, False),
    ],
)
def test_match_is_understood_in_part(read, criteria, host, user, applies):
    """A block with any other criterion does not apply; above all, nothing is run for it."""
    assert ("port" in read(f"Match {criteria}\n Port 1\n")(host, user)) is applies


def test_match_host_is_about_the_name_that_was_found(read):
    """HostName of an earlier block counts for `host`, not for `originalhost`; User likewise."""
    text = "Host gpu01\n HostName real\n User bob\nMatch {}\n Port 1\n"
    assert "port" in read(text.format("host real"))("gpu01")
    assert "port" not in read(text.format("host gpu01"))("gpu01")
    assert "port" in read(text.format("originalhost gpu01"))("gpu01")
    assert "port" in read(text.format("user bob"))("gpu01")
    assert "port" in read(text.format("user alice"))("gpu01", "alice")


def test_a_user_of_hosts_counts_for_match(ssh):
    """`bob@gpu01`, or `user` in webmon's file."""
    text = "Match user bob\n Port 2222\n"
    assert ssh(text, hosts="bob@gpu01").port == 2222
    assert ssh(text, rest="user = bob\n").port == 2222
    assert ssh(text, rest="user = alice\n").port == 22


def test_include_is_followed(ssh):
    """Relative to ~/.ssh, with patterns, in the order of the names; the first value still wins."""
    host = ssh(
        "Include conf.d-*\nHost gpu01\n User last\n Port 9\n",
        **{"conf.d-b": "Host gpu01\n User b\n Port 2\n", "conf.d-a": "Host gpu01\n User a\n"},
    )
    assert (host.user, host.port) == ("a", 2)
    assert host.sources["user"] == "~/.ssh/conf.d-a:2"


def test_include_takes_several_files_and_any_path(ssh, tmp_path, own_home):
    """Absolute, in the home folder, or none at all."""
    (tmp_path / "absolute").write_text("User bob\n", encoding="utf-8")
    (own_home / "mine").write_text("Port 2\n", encoding="utf-8")
    host = ssh(f"Include nowhere {tmp_path}/absolute ~/mine")
    assert (host.user, host.port) == ("bob", 2)
    assert (host.sources["user"], host.sources["port"]) == (f"{tmp_path}/absolute:1", "~/mine:1")


def test_an_include_within_a_block_is_about_that_block(ssh):
    """Its own Host lines narrow it further; the block goes on after it."""
    text = "Host gpu*\n Include more\n Port 9\nHost *\n User star\n"
    more = "User bob\nHost gpu02\n Port 2\nHost node1\n Port 3\n"
    for name, known in {"gpu01": ("bob", 9), "gpu02": ("bob", 2), "node1": ("star", 22)}.items():
        host = ssh(text, hosts=name, more=more)
        assert (host.user, host.port) == known


def test_an_include_of_itself_ends(own_home, file):
    """With a warning, as ssh does."""
    (own_home / ".ssh" / "config").write_text("User bob\nInclude config\n", encoding="utf-8")
    loaded = file.load("[common]\nhosts = gpu01\n")
    assert loaded.hosts[0].user == "bob"
    assert loaded.warnings == (f"{own_home}/.ssh/config: Include goes deeper than 16 files",)


def test_a_file_that_can_not_be_read_is_a_warning(tmp_path):
    """One that is not there is not even that."""
    config = SshConfig([tmp_path, tmp_path / "nowhere"])
    assert config.warnings == [f"{tmp_path}: Is a directory"]
    assert config.lookup("gpu01") == {}


def test_a_hop_has_settings_of_its_own(ssh, own_home):
    """Its own block says its address and its key, and what is on the way to it."""
    text = """
Host gpu01
  ProxyJump gateway
Host gateway
  HostName 10.0.0.1
  User carol
  IdentityFile ~/.ssh/id_gateway
  ProxyJump bastion
"""
    before, hop = ssh(text, rest="port = 2222\n").jumps
    assert (hop.address, hop.user, hop.port) == ("10.0.0.1", "carol", 22)
    assert hop.identity_files == (own_home / ".ssh" / "id_gateway",)
    assert before.name == "bastion"


def test_a_hop_has_the_user_of_its_own_block_rather_than_that_of_common(ssh):
    """[common] user is about the hosts; ~/.ssh/config knows the gateway."""
    text = "Host gateway\n User carol\n"
    assert ssh(text, rest="user = alice\nproxy_jump = gateway\n").jumps[0].user == "carol"
    assert ssh(text, rest="user = alice\nproxy_jump = other\n").jumps[0].user == "alice"
    assert ssh(text, rest="user = alice\nproxy_jump = bob@gateway\n").jumps[0].user == "bob"


def test_each_hop_on_the_way_has_its_own_user(ssh):
    """However many there are, with a user in ~/.ssh/config or without."""
    text = "Host first\n User carol\n ProxyJump second\nHost second\n User dave\n ProxyJump third\n"
    hops = ssh(text, rest="user = alice\nproxy_jump = first\n").jumps
    assert [(hop.name, hop.user) for hop in hops] == [
        ("third", "alice"),
        ("second", "dave"),
        ("first", "carol"),
    ]


def test_a_hop_for_everything_does_not_lead_to_itself(ssh):
    """`Host *` with a ProxyJump is about the gateway, too; ssh leaves it out there as well."""
    assert [hop.jumps for hop in ssh("Host *\n ProxyJump gateway\n").jumps] == [()]


@pytest.mark.parametrize("said", ["none", "NONE"])
def test_what_is_none_is_none(ssh, said, monkeypatch):
    """`ProxyJump none` in front of a later `Host *`."""
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    host = ssh(
        f"Host gpu01\n ProxyJump {said}\n IdentityAgent {said}\n UserKnownHostsFile {said}\n"
        f" GlobalKnownHostsFile {said}\n ProxyCommand {said}\nHost *\n ProxyJump gateway\n ProxyCommand nc\n"
    )
    assert (host.jumps, host.identity_agent, host.known_hosts, host.proxy_command) == ((), None, (), None)


def test_a_proxy_command_is_told(ssh):
    """webmon does not run it, and says so when it asks the host; a ProxyJump comes before it."""
    text = "Host gpu01\n ProxyCommand nc %h %p\n"
    assert ssh(text).proxy_command == "nc %h %p"
    assert ssh(text, rest="proxy_jump = gateway\n").proxy_command is None


def test_a_circle_of_hops_is_an_error(ssh, own_home):
    """With the line that leads back."""
    with pytest.raises(ConfigError, match=r"^~/\.ssh/config:4: b is to be reached through itself"):
        ssh("Host a\n ProxyJump b\nHost b\n ProxyJump a\n", hosts="gpu01", rest="proxy_jump = a\n")


def test_a_way_of_more_than_nine_hops_is_an_error(ssh):
    """Nobody has one; it is a mistake in patterns that make ever new names."""
    hops = "".join(f"Host hop{n}\n ProxyJump hop{n + 1}\n" for n in range(20))
    with pytest.raises(ConfigError, match="hop8 is to be reached through itself"):
        ssh(hops, rest="proxy_jump = hop0\n")


def test_a_proxy_jump_that_is_no_host_is_an_error(ssh):
    """With its line."""
    with pytest.raises(ConfigError, match=r"^~/\.ssh/config:2: ProxyJump: 'a/b' is not a host name"):
        ssh("Host gpu01\n ProxyJump a/b\n")


@pytest.mark.parametrize(
    ("said", "agent"),
    [("SSH_AUTH_SOCK", "/run/agent"), ("$OTHER", "/run/other"), ("$MISSING", None), ("%d/x", "{home}/x")],
)
def test_the_agent_can_be_another_one(ssh, own_home, monkeypatch, said, agent):
    """A path, a variable, or the usual one."""
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    monkeypatch.setenv("OTHER", "/run/other")
    expected = agent and agent.format(home=own_home)
    assert ssh(f"IdentityAgent {said}\n").identity_agent == expected


def test_self_is_not_looked_up(ssh):
    """There is no SSH on the way to it."""
    assert ssh("Host *\n User bob\n ProxyJump gateway\n", hosts="self").jumps == ()


def test_an_address_is_looked_up_without_its_port_and_user(ssh):
    """As ssh does with what is written on its command line."""
    assert ssh("Host old\n HostName 10.0.0.9\n", hosts="bob@old:2222").address == "10.0.0.9"


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("~/x", "{home}/x"),
        ("%d/%u", "{home}/{me}"),
        ("%h-%n-%r-%p", "real-alias-bob-22"),
        ("100%%h", "100%h"),
        ("%i", str(os.getuid())),
        ("%l", socket.gethostname()),
        ("%x%", "%x%"),
        ("", ""),
    ],
)
def test_tokens_are_expanded(own_home, text, expanded):
    """As ssh_config(5) has them; those that it does not have stay."""
    done = expand_tokens(text, host="real", original="alias", user="bob", port=22)
    assert done == expanded.format(home=own_home, me=getpass.getuser())


def test_ten_thousand_blocks_are_read_quickly(read):
    """Each host is found in one step, however many there are."""
    text = "".join(f"Host gpu{n}\n HostName 10.0.{n // 256}.{n % 256}\n" for n in range(10_000))
    lookup = read(text)
    assert all(lookup(f"gpu{n}")["hostname"] == [f"10.0.{n // 256}.{n % 256}"] for n in range(10_000))


@given(
    st.text(max_size=80)
    | st.lists(st.sampled_from(["Host a", "Match host", "Include", "User", "=", '"', "!"])).map("\n".join)
)
def test_any_text_is_read_without_an_error(tmp_path_factory, text):
    """What makes no sense is left out, as a file of an ssh of the future would."""
    path = tmp_path_factory.getbasetemp() / "any_ssh_config"
    path.write_bytes(text.encode())
    SshConfig([path]).lookup("a", "b")
