"""~/.ssh/config is honoured, as ssh would; what webmon's own file says wins."""

from __future__ import annotations

import json

import pytest
from servers.ask import ask, failure, outcomes
from servers.command import webmon
from servers.settings import write_config
from servers.ssh_keys import make_key, public
from servers.sshd import Pretended
from servers.states import healthy


@pytest.fixture
def ssh_folder(tmp_path, monkeypatch):
    """An empty ~/.ssh."""
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".ssh"
    folder.mkdir()
    return folder


def _aliases(sshd, names):
    return "".join(f"Host {n}\n  HostName {a}\n" for n, a in zip(names, sshd.addresses, strict=True))


def test_a_host_is_found_by_its_alias(sshd, ssh_folder, tmp_path):
    """HostName, Port, User, IdentityFile and UserKnownHostsFile do without anything in webmon's file."""
    (ssh_folder / "config").write_text(
        f"""
        Host gpu*   # a comment
          User {sshd.user}
          Port={sshd.port}
          IdentityFile "{sshd.key}"
          UserKnownHostsFile {tmp_path}/none {sshd.known_hosts}
        Host gpu01
          HostName {sshd.addresses[0]}
        """
    )
    assert outcomes(ask(tmp_path, {"hosts": ["gpu01"], "timeout": 10})) == ["1 GPUs"]


def test_the_first_value_wins_and_tokens_are_replaced(sshd, ssh_folder, tmp_path):
    """What stands first is in force; %h, %p, %r and ~ mean what they mean to ssh."""
    (ssh_folder / f"{sshd.user}@{sshd.addresses[0]}:{sshd.port}").write_bytes(sshd.key.read_bytes())
    (ssh_folder / "known").write_bytes(sshd.known_hosts.read_bytes())
    (ssh_folder / "config").write_text(
        f"""
        Host !gpu02 gpu*
          HostName 127.0.0.%n
        Host 11
          HostName 127.0.0.%h
        Host *
          Port {sshd.port}
          Port 1
          HostName nowhere.invalid
          User {sshd.user}
          IdentityFile ~/.ssh/%r@%h:%p
          UserKnownHostsFile ~/.ssh/known
        """
    )
    assert outcomes(ask(tmp_path, {"hosts": ["11"], "timeout": 10})) == ["1 GPUs"]


def test_includes_are_followed(sshd, ssh_folder, tmp_path):
    """Include takes patterns, relative to ~/.ssh, also below a Host line."""
    (ssh_folder / "lab.d").mkdir()
    (ssh_folder / "lab.d" / "hosts.conf").write_text(_aliases(sshd, ["gpu01"]))
    (ssh_folder / "lab.d" / "user.conf").write_text(f"User {sshd.user}\nIdentityFile {sshd.key}\n")
    (ssh_folder / "lab.d" / "loop.conf").write_text("Include lab.d/loop.conf\n")
    (ssh_folder / "config").write_text(
        f"Include lab.d/h*.conf\nHost gpu*\n  Include lab.d/user.conf lab.d/no.conf\n  Port {sshd.port}\n"
        f"  UserKnownHostsFile {sshd.known_hosts}\nInclude lab.d/loop.conf\n"
    )
    assert outcomes(ask(tmp_path, {"hosts": ["gpu01"], "timeout": 10})) == ["1 GPUs"]


def test_match_blocks_are_understood(sshd, ssh_folder, tmp_path):
    """Match originalhost, user and all apply; Match exec runs nothing."""
    (ssh_folder / "config").write_text(
        f"""
        Match exec "touch {tmp_path}/executed"
          Port 1
        Match originalhost gpu01 user {sshd.user}
          HostName {sshd.addresses[0]}
        Match all
          Port {sshd.port}
          IdentityFile {sshd.key}
          UserKnownHostsFile {sshd.known_hosts}
        """
    )
    common = {"hosts": ["gpu01"], "user": sshd.user, "timeout": 10}
    assert outcomes(ask(tmp_path, common)) == ["1 GPUs"]
    assert not (tmp_path / "executed").exists()


def test_the_ports_and_keys_of_webmons_own_file_win(sshd, ssh_folder, tmp_path):
    """[common] beats ~/.ssh/config, and `user@host:port` beats both."""
    (ssh_folder / "config").write_text(
        f"Host gpu01\n  HostName {sshd.addresses[0]}\n  Port 1\n  User nobody-at-all\n"
        f"  IdentityFile /nowhere\n  UserKnownHostsFile /nowhere\n"
    )
    common = sshd.common(hosts=[f"{sshd.user}@gpu01:{sshd.port}"], port=2, user="another")
    assert outcomes(ask(tmp_path, common)) == ["1 GPUs"]


def test_a_proxy_jump_of_the_ssh_config_is_used(start_sshd, ssh_folder, tmp_path):
    """The gateway has its own block, with its own key; it is logged in to once."""
    lab = start_sshd([Pretended(healthy(2))] * 3)
    gateway = start_sshd(first_address=31)
    known = ssh_folder / "known_hosts"
    known.write_text("\n".join([*lab.known_lines(), *gateway.known_lines()]) + "\n")
    (ssh_folder / "config").write_text(
        f"{_aliases(lab, ['gpu01', 'gpu02', 'gpu03'])}"
        f"Host door\n  HostName {gateway.addresses[0]}\n  Port {gateway.port}\n"
        f"  IdentityFile {gateway.key}\n  ProxyJump none\n"
        f"Host gpu*\n  Port {lab.port}\n  IdentityFile {lab.key}\n  ProxyJump {gateway.user}@door\n"
    )
    common = {"hosts": ["gpu[01-03]"], "user": lab.user, "timeout": 10}
    assert outcomes(ask(tmp_path, common)) == ["2 GPUs"] * 3
    assert gateway.connections() == 1


def test_a_host_key_alias_is_the_name_in_known_hosts(sshd, ssh_folder, tmp_path):
    """HostKeyAlias names the host for known_hosts, without a port."""
    (ssh_folder / "known_hosts").write_text(f"the-gpu-box {public(sshd.host_keys['ed25519'])}\n")
    (ssh_folder / "config").write_text(f"{_aliases(sshd, ['gpu01'])}  HostKeyAlias The-GPU-Box\n")
    common = sshd.common(hosts=["gpu01"], port=sshd.port, known_hosts=None)
    assert outcomes(ask(tmp_path, common)) == ["1 GPUs"]


def test_identities_only_keeps_the_agents_keys_back(sshd, ssh_folder, tmp_path, agent):
    """With IdentitiesOnly the agent's other keys are not shown to a host."""
    agent.add(sshd.key)
    make_key(ssh_folder / "id_ed25519")
    common = sshd.common(key_filename=None)
    assert outcomes(ask(tmp_path, common)) == ["1 GPUs"]
    (ssh_folder / "config").write_text("IdentitiesOnly yes\n")
    assert outcomes(ask(tmp_path, common)) == ["auth"]


def test_an_identity_agent_of_the_ssh_config_is_asked(sshd, ssh_folder, tmp_path, agent, monkeypatch):
    """IdentityAgent names a socket, or none at all."""
    agent.add(sshd.key)
    common = sshd.common(key_filename=None)
    (ssh_folder / "config").write_text("IdentityAgent none\n")
    assert outcomes(ask(tmp_path, common)) == ["key"]
    monkeypatch.delenv("SSH_AUTH_SOCK")
    (ssh_folder / "config").write_text(f"IdentityAgent {agent.socket}\n")
    assert outcomes(ask(tmp_path, common)) == ["1 GPUs"]


def test_a_proxy_command_is_not_run(sshd, ssh_folder, tmp_path):
    """It says so, and names what to use instead."""
    (ssh_folder / "config").write_text(f"ProxyCommand touch {tmp_path}/executed\n")
    error = failure(ask(tmp_path, sshd.common()))
    assert (error.reason, "proxy_jump" in error.remedy) == ("config", True)
    assert not (tmp_path / "executed").exists()


def test_webmon_config_tells_where_each_value_comes_from(sshd, ssh_folder, tmp_path):
    """`webmon config --json` names ~/.ssh/config and the line."""
    (ssh_folder / "config").write_text(_aliases(sshd, ["gpu01"]))
    config = write_config(tmp_path, sshd.common(hosts=["gpu01"]))
    said = webmon("config", "--json", "-c", config)
    assert said.returncode == 0
    assert "~/.ssh/config:2" in json.dumps(json.loads(said.stdout))


def test_an_ssh_config_that_is_rubbish_does_no_harm(sshd, ssh_folder, tmp_path):
    """Neither bytes that are no text, nor open quotes, nor a folder, end the poll."""
    (ssh_folder / "config").write_bytes(b'\xff\x00\nHost "gpu\nPort\n=\nMatch\nInclude\n' + b"x" * 100_000)
    assert outcomes(ask(tmp_path, sshd.common())) == ["1 GPUs"]
    (ssh_folder / "config").unlink()
    (ssh_folder / "config").mkdir()
    assert outcomes(ask(tmp_path, sshd.common())) == ["1 GPUs"]
