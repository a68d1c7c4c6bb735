"""`select --cluster -- CMD` through the real ssh to a real sshd, whatever the login shell is there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import pytest
from clusters_seen import A6000, card, cluster
from screen import on_a_screen
from servers import processes
from servers.command import WEBMON, environment
from servers.programs import need
from servers.sshd import Pretended

from webmon.model import Host
from webmon.store import snapshot

# Each shell takes the command as its login shell does: `shell -c COMMAND`.
SHELLS = {"sh": "dash", "bash": "bash", "csh": "tcsh", "fish": "fish", "zsh": "zsh"}

ARGUMENTS = [
    "", " ", "two words", "  tabs\tand  spaces ", "it's", '"quoted"', "'", "''", "\\", "\\\\", "back\\slash",
    "\\'", "a\\", "'\\", "!", "!!", "history!event", "'!'", "\\!", "$HOME", "${HOME}", "$(touch owned)",
    "`touch owned`", "*", "?", "[a-z]*", "~", "~root", "a;b", "a&b", "a|b", ">out", "<in", "#comment", "a #b",
    "{a,b}", "(x)", "%1", "%self", "=ls", "^a^b", "-n", "--", "a=b", "@", "ümläut 张伟", "\x01\x7f",
    "line\rreturn", "http://x/?a=b&c=d", "\\n", "$'\\n'",
]  # fmt: skip
WITH_NEWLINES = ["two\nlines", "\n", "\n\n'\\!$(touch owned)\n", "last\n", *ARGUMENTS]

SHOW = "import json, sys, os; print(json.dumps([sys.argv[1:], os.environ['CUDA_VISIBLE_DEVICES']]))"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A host for each shell, ~/.ssh/config of a user who gets onto them, and the snapshot of them."""
    from servers.sshd import Sshd

    hosts = [
        Pretended(command=f'exec {shutil.which(shell) or "/bin/false"} -c "$SSH_ORIGINAL_COMMAND"')
        for shell in SHELLS.values()
    ]
    with Sshd(tmp_path_factory.mktemp("sshd"), hosts) as sshd:
        folder = tmp_path_factory.mktemp("user")
        (folder / ".ssh").mkdir(mode=0o700)
        config = [
            f"Port {sshd.port}", f"IdentityFile {sshd.key}", f"UserKnownHostsFile {sshd.known_hosts}",
            f"User {sshd.user}", "IdentitiesOnly yes", "LogLevel ERROR", "StrictHostKeyChecking yes",
        ]  # fmt: skip
        blocks = [
            f"Host {name}\n  HostName {address}" for name, address in zip(SHELLS, sshd.addresses, strict=True)
        ]
        (folder / ".ssh" / "config").write_text("\n".join([*blocks, "Host *", *config]) + "\n")
        # OpenSSH takes the home from the password database, not from $HOME.
        ssh = folder / "bin" / "ssh"
        ssh.parent.mkdir()
        real = need("ssh", "openssh-client")
        ssh.write_text(f'#!/bin/sh\nexec {real} -F {folder}/.ssh/config "$@"\n')
        ssh.chmod(0o755)
        now = cluster().taken_at
        seen = cluster()._replace(
            hosts=tuple(Host(name, status="up", last_seen=now) for name in SHELLS),
            gpus=tuple(card(name, 0, f"{A6000} at {name}.", 49140) for name in SHELLS),
            processes=(),
        )
        snapshot.save(folder / "data", seen, keep=3)
        yield folder


def there(lab, name, *command, **options):
    """Run a command on the host with this shell, and return how it went."""
    if name != "sh":
        need(SHELLS[name], SHELLS[name])
    options = {"text": True, **options}
    if "input" not in options:
        options["stdin"] = subprocess.DEVNULL
    return subprocess.run(
        [*WEBMON, "select", "--data", lab / "data", "-q", "-n", f"at {name}.", "--", *command],
        capture_output=True,
        check=False,
        timeout=60,
        cwd=lab,
        env=environment(PATH=f"{lab / 'bin'}:{os.environ['PATH']}"),
        **options,
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_every_argument_arrives_as_it_is(lab, shell):
    """Spaces, quotes, backslashes, `!`, `$`: no shell on the way reads anything into them."""
    done = there(lab, shell, sys.executable, "-c", SHOW, *ARGUMENTS)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [ARGUMENTS, "0"]


@pytest.mark.parametrize("shell", SHELLS)
def test_newlines_arrive_too(lab, shell):
    """csh can't be told of one in quotes, so the command travels in another form."""
    done = there(lab, shell, sys.executable, "-c", SHOW, *WITH_NEWLINES)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [WITH_NEWLINES, "0"]


@pytest.mark.parametrize("shell", SHELLS)
def test_its_exit_code_is_the_commands(lab, shell):
    """Through ssh, as through everything else."""
    for code in (0, 1, 7, 124):
        assert there(lab, shell, "sh", "-c", f"exit {code}").returncode == code


def test_bytes_go_both_ways_unaltered(lab):
    """Without a terminal nothing is translated, and nothing is said about it."""
    sent = bytes(range(256)) * 100
    done = there(lab, "sh", "cat", input=sent, text=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, sent, b"")


def test_on_a_terminal_the_command_has_one(lab):
    """`ssh -t`, so that an editor or a debugger works there."""
    seen = on_a_screen(
        "select", "--data", lab / "data", "-n", "at sh.", "--", "sh", "-c", "test -t 0 && test -t 1 && tty",
        PATH=f"{lab / 'bin'}:{os.environ['PATH']}",
    )  # fmt: skip
    assert seen.code == 0, seen.text
    assert seen.lines[0] == "webmon: GPU 0 of sh"
    assert seen.lines[1].startswith("/dev/pts/")


def test_a_command_that_is_not_there_is_127(lab):
    """Said by the host, in its own words."""
    done = there(lab, "sh", "no-such-program")
    assert done.returncode == 127
    assert "no-such-program" in done.stderr


def test_a_host_that_is_gone_since_then_is_sshs_own_error(lab, tmp_path):
    """Exit 255, as ssh has it."""
    seen = cluster()
    host = Host("127.0.0.99:1", status="up", last_seen=seen.taken_at)
    gpus = (card("127.0.0.99:1", 0, A6000, 49140),)
    snapshot.save(tmp_path / "data", seen._replace(hosts=(host,), gpus=gpus, processes=()), keep=3)
    done = subprocess.run(
        [*WEBMON, "select", "--data", tmp_path / "data", "--", "true"], capture_output=True, text=True,
        check=False, stdin=subprocess.DEVNULL, env=environment(PATH=f"{lab / 'bin'}:{os.environ['PATH']}"),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (255, "")


def test_an_ssh_that_is_ended_ends_the_command_there(lab):
    """Who ends it, or closes the window that it is in, does not leave a program on the GPU."""
    import signal

    ours, theirs = os.openpty()
    mark = f"WEBMON_TEST_MARK={os.urandom(8).hex()}"
    process = subprocess.Popen(
        [*WEBMON, "select", "--data", lab / "data", "-n", "at sh.", "--", "env", mark, "sleep", "60"],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        env=environment(PATH=f"{lab / 'bin'}:{os.environ['PATH']}", TERM="xterm"),
    )  # fmt: skip
    os.close(theirs)
    try:
        deadline = time.monotonic() + 20
        while not (found := processes.marked(mark)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert found
        os.kill(process.pid, signal.SIGTERM)
        assert processes.wait_until_gone(found, 10) == []
    finally:
        process.kill()
        process.wait()
        processes.kill(*processes.marked(mark))
        os.close(ours)


@pytest.fixture
def card_there(lab, tmp_path):
    """A snapshot of one host with cards that no other test has; their claims are removed afterwards."""

    def save(number):
        own = tuple(f"GPU-{uuid4()}" for _ in range(number))
        now = cluster().taken_at
        cards = tuple(card("sh", index, A6000, 49140)._replace(uuid=uuid) for index, uuid in enumerate(own))
        hosts = (Host("sh", status="up", last_seen=now),)
        snapshot.save(tmp_path / "data", cluster()._replace(hosts=hosts, gpus=cards, processes=()), keep=3)
        uuids.extend(own)
        return tmp_path / "data"

    uuids: list[str] = []
    yield save
    for folder in ("/run/lock", "/tmp"):
        for uuid in uuids:
            Path(folder, f"webmon-claim-{uuid}").unlink(missing_ok=True)


def select_there(lab, data, *words):
    return subprocess.Popen(
        [*WEBMON, "select", "--data", data, "-q", *words],
        text=True,
        cwd=lab,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(PATH=f"{lab / 'bin'}:{os.environ['PATH']}"),
    )


def test_the_gpu_is_claimed_there(lab, card_there):
    """Two who see the same snapshot don't get the same GPU; the claim ends with the command."""
    data = card_there(1)
    shown = ["sh", "-c", "echo on $CUDA_VISIBLE_DEVICES; read line"]
    with select_there(lab, data, "--", *shown) as first:
        assert first.stdout.readline() == "on 0\n"
        with select_there(lab, data, "--", "echo", "mine too") as second:
            out, said = second.communicate(timeout=60)
        assert (second.returncode, out) == (1, "")
        assert "webmon: somebody has just claimed this GPU: GPU-" in said
        with select_there(lab, data, "--no-claim", "--", "echo", "all the same") as careless:
            assert careless.communicate(timeout=60)[0] == "all the same\n"
        first.communicate("\n", timeout=60)
    assert first.returncode == 0
    with select_there(lab, data, "--", "echo", "mine now") as third:
        assert third.communicate(timeout=60)[0] == "mine now\n"


def test_many_gpus_are_claimed_there(lab, card_there):
    """More than sh has descriptors for; the command runs on all."""
    data = card_there(10)
    shown = ["sh", "-c", "echo $CUDA_VISIBLE_DEVICES; read line"]
    with select_there(lab, data, "--count", "10", "--", *shown) as run:
        assert run.stdout.readline() == "0,1,2,3,4,5,6,7,8,9\n"
        for last in ("6", "7", "9"):
            with select_there(lab, data, "-d", last, "--", "true") as late:
                assert "somebody has just claimed this GPU" in late.communicate(timeout=60)[1]
            assert late.returncode == 1
        run.communicate("\n", timeout=60)
