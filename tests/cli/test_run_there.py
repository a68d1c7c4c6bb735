"""`select --cluster -- CMD`: what is handed to the user's own ssh. Here it is one that writes it down."""

from __future__ import annotations

import json
import os

import pytest
from clusters_seen import A6000, card, cluster
from screen import on_a_screen
from servers.command import WEBMON, webmon

from webmon.model import Host
from webmon.store import snapshot

RECORDER = """#!/usr/bin/env python3
import json, os, sys
told = {{"argv": sys.argv[1:], "cuda": os.environ.get("CUDA_VISIBLE_DEVICES")}}
if not sys.stdin.isatty():
    told["stdin"] = sys.stdin.read()
with open({path!r}, "w") as file:
    json.dump(told, file)
sys.exit(int(os.environ.get("ENDS_WITH", "0")))
"""


@pytest.fixture
def ssh(tmp_path):
    """A program called ssh in front of the PATH; returns how to run webmon with it, and what it was told."""
    programs = tmp_path / "bin"
    programs.mkdir()
    record = tmp_path / "told.json"
    (programs / "ssh").write_text(RECORDER.format(path=str(record)))
    (programs / "ssh").chmod(0o755)

    def run(*arguments, env=None, **options):
        changes = {"PATH": f"{programs}:{os.environ['PATH']}", **(env or {})}
        done = webmon(*arguments, env=changes, **options)
        return done, json.loads(record.read_text()) if record.exists() else None

    run.path = f"{programs}:{os.environ['PATH']}"
    run.record = record
    return run


def one_host(data, name):
    """Make a snapshot of one host of this name, with two idle cards."""
    now = cluster().taken_at
    gpus = tuple(card(name, index, A6000, 49140) for index in range(2))
    snapshot.save(
        data, cluster()._replace(hosts=(Host(name, status="up", last_seen=now),), gpus=gpus), keep=3
    )


def test_webmon_becomes_an_ssh_to_that_host(ssh, data):
    """With the GPUs in the environment of the command, there; standard output and exit code are ssh's own."""
    done, told = ssh("select", "--data", data, "--count", "2", "--", "python", "train.py", "--lr", "0.1")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert told["argv"][:-1] == ["-t", "gpu07"]
    assert told["argv"][-1].startswith("exec sh -c ")
    run = "env CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=1,2 python train.py --lr 0.1"
    assert told["argv"][-1].endswith(f" -- {run}")
    assert told["cuda"] is None


def test_without_a_claim_it_is_the_command_alone(ssh, data):
    """Nothing is locked there."""
    _, told = ssh("select", "--data", data, "--no-claim", "-n", "A6000", "--", "./run", "it")
    assert told["argv"][-1] == "exec env CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES=0 ./run it"


def test_with_uuids(ssh, data):
    """CUDA takes them as well."""
    _, told = ssh("select", "--data", data, "-n", "A6000", "--uuid", "--", "./run")
    assert "CUDA_VISIBLE_DEVICES=GPU-mixed:2222-0 ./run" in told["argv"][-1]


def test_on_a_terminal_it_asks_for_one_there(ssh, data):
    """`ssh -t`: Ctrl-C, and a connection that breaks, end the command too."""
    seen = on_a_screen("select", "--data", data, "-n", "A6000", "--", "top", program=WEBMON, PATH=ssh.path)
    assert (seen.code, seen.text.strip()) == (0, "webmon: GPU 0 of mixed:2222")
    assert json.loads(ssh.record.read_text())["argv"][:4] == ["-t", "-p", "2222", "mixed"]


@pytest.mark.parametrize(
    ("host", "reach"),
    [
        ("mixed:2222", ["-t", "-p", "2222", "mixed"]),
        ("[fe80::1]:2222", ["-t", "-p", "2222", "fe80::1"]),
        ("[2001:db8::7]", ["-t", "2001:db8::7"]),
        ("192.0.2.7", ["-t", "192.0.2.7"]),
    ],
)
def test_hosts_as_they_are_written(ssh, data, host, reach):
    """With a port, IPv6 in brackets."""
    one_host(data, host)
    _, told = ssh("select", "--data", data, "-d", "1", "--", "true")
    assert told["argv"][:-1] == reach
    assert ssh("select", "--data", data, "-d", "1")[0].stdout == f"{host}:1\n"


def test_a_name_that_looks_like_an_option_is_refused(ssh, data):
    """A site may have been written by anybody."""
    one_host(data, "-oProxyCommand=touch")
    done, told = ssh("select", "--data", data, "--", "true")
    assert (done.returncode, done.stdout, told) == (1, "", None)
    assert done.stderr == "webmon: '-oProxyCommand=touch' is no name of a host\n"


def test_the_machine_that_polls_itself_needs_no_ssh(ssh, data):
    """`self` is run here, where the data folder is."""
    one_host(data, "self")
    shown = ["--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER; exit 7"]
    done, told = ssh("select", "--data", data, "--count", "2", *shown)
    assert (done.returncode, done.stdout, told) == (7, "0,1 PCI_BUS_ID\n", None)


def test_self_of_a_site_is_somewhere_else(ssh, data, tmp_path, serve):
    """The site does not say which machine that is, so nothing is run, least of all here."""
    from webmon.store import document, snapshot

    one_host(data, "self")
    (tmp_path / "snapshot.json").write_text(document.to_json(snapshot.load(data)))
    for arguments, env in (
        (["--from", serve(tmp_path)], {}),
        (["--cluster"], {"WEBMON_SITE": serve(tmp_path)}),
    ):
        done, told = ssh("select", *arguments, "--", "touch", tmp_path / "run", env=env)
        assert (done.returncode, done.stdout, told) == (1, "", None)
        assert "the monitoring machine itself was picked" in done.stderr
    assert not (tmp_path / "run").exists()


def test_its_exit_code_is_sshs_own(ssh, data):
    """webmon is gone by then."""
    done, _ = ssh("select", "--data", data, "--", "cat", env={"ENDS_WITH": "42"})
    assert done.returncode == 42


def test_verbose_says_where(ssh, data):
    """On standard error."""
    done, _ = ssh("select", "--data", data, "-v", "-n", "A6000", "--", "true")
    assert done.stderr == "webmon: GPU 0 of mixed:2222\n"


def test_nothing_is_run_when_nothing_is_free(ssh, data):
    """Exit 1."""
    done, told = ssh("select", "--data", data, "--count", "3", "--name", "3090", "--", "true")
    assert (done.returncode, done.stdout, told) == (1, "", None)


def test_wait_runs_it_there_too(ssh, data):
    """As select does."""
    done, told = ssh("wait", "--data", data, "-n", "A6000", "--", "./run.sh")
    assert done.returncode == 0
    assert told["argv"][:3] == ["-t", "-p", "2222"]


def test_without_ssh_it_says_so(data, tmp_path):
    """Exit 127, as shells have it."""
    done = webmon("select", "--data", data, "--", "true", env={"PATH": str(tmp_path)})
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == "webmon: ssh: No such file or directory\n"


@pytest.mark.parametrize("words", [["--"], ["python", "x.py"], ["--", "--"]])
def test_a_command_has_to_be_there(ssh, data, words):
    """And behind `--`."""
    done, told = ssh("select", "--data", data, *words)
    if words == ["--", "--"]:
        assert told["argv"][-1].endswith(" --")
        return
    assert (done.returncode, done.stdout, told) == (2, "", None)
    assert "The command comes after it: webmon select -- python train.py" in done.stderr
