"""Two callers never get the same GPU, whoever they are."""

from __future__ import annotations

import os
import select
import subprocess
from pathlib import Path

import pytest
from desk import PATIENCE_S, eventually
from people import become, environment, everybody, me, open_to_all, others
from servers.states import uuid

# Tells which GPUs it was given, and holds them until the test closes the pipe.
HOLD = ["sh", "-c", 'echo "$CUDA_VISIBLE_DEVICES"; exec cat >/dev/null']


class Crowd:
    """Many that call `webmon select` at the same moment, and hold what they get."""

    def __init__(self, desk, number, *wish):
        command = open_to_all(desk)
        users = everybody()
        end, self.hold = os.pipe()
        self.callers = [
            subprocess.Popen(
                [*become(users[i % len(users)]), *command, "select", *wish, "--", *HOLD],
                stdin=end,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                cwd="/",
                env=environment(desk),
            )
            for i in range(number)
        ]
        os.close(end)

    def __enter__(self):
        return self

    def answers(self):
        """Return what each winner was given, and the exit code and words of each loser."""
        given, refused = [], []
        for caller in self.callers:
            assert select.select([caller.stdout], [], [], PATIENCE_S * 2)[0], "it neither gets a GPU nor ends"
            if line := caller.stdout.readline():
                given.append([int(part) for part in line.split(",")])
            else:
                refused.append((caller.wait(PATIENCE_S), caller.stderr.read()))
        return given, refused

    def end(self):
        """Let the winners end, and return their exit codes."""
        os.close(self.hold)
        self.hold = None
        return {caller.wait(PATIENCE_S) for caller in self.callers}

    def __exit__(self, *_):
        if self.hold is not None:
            os.close(self.hold)
        for caller in self.callers:
            if caller.poll() is None:
                caller.kill()
            caller.wait()
            caller.stdout.close()
            caller.stderr.close()


def test_fifty_callers_of_several_users_share_eight_gpus(machine):
    """Eight of them get one each, all different; the others are told so; afterwards all are free again."""
    desk = machine(8)
    for _ in range(2):
        with Crowd(desk, 50) as crowd:
            given, refused = crowd.answers()
            assert sorted(given) == [[index] for index in range(8)]
            assert refused == [(1, "webmon: Requested 1 GPUs, but 0 matched filters\n")] * 42
            assert crowd.end() == {0, 1}
    assert desk.available() == list(range(8))


def test_of_those_who_want_most_of_the_gpus_one_gets_them(machine):
    """Two that want five of eight never get a part each, and nothing."""
    desk = machine(8)
    with Crowd(desk, 12, "--count", "5") as crowd:
        given, refused = crowd.answers()
        assert [len(set(gpus)) for gpus in given] == [5]
        assert [code for code, _ in refused] == [1] * 11
        crowd.end()


def test_what_another_user_has_claimed_is_respected(machine):
    """And seen: by whom, and that it is claimed."""
    (nobody,) = others(1)
    desk = machine(2)
    command = open_to_all(desk)
    with subprocess.Popen(
        [*become(nobody), *command, "select", "-d", "1", "--", *HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd="/",
        env=environment(desk),
    ) as theirs:
        assert theirs.stdout.readline() == b"1\n"
        assert desk.available() == [0]
        done = desk.webmon("select", "-d", "1", "--", "true")
        assert (done.returncode, done.stdout) == (1, "")
        (row,) = [line for line in desk.webmon("list").stdout.splitlines() if nobody in line.split()]
        assert "[~]" in row
        assert row.endswith(("claimed, sh", "claimed, cat"))
        theirs.stdin.close()
    assert eventually(lambda: desk.available() == [0, 1])


def test_the_files_of_claims_are_shared_whoever_made_them(machine):
    """Each user can claim a GPU that another one has claimed before, and has given up."""
    users = [me(), *others(2), me()]
    desk = machine(1)
    command = open_to_all(desk)
    for user in users:
        done = desk.run(
            [*become(user), "sh", "-c", 'umask 077; exec "$@"', "sh", *command, "select", "--", "id", "-un"],
            cwd="/",
            env=environment(desk),
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{user}\n", "")
    (file,) = desk.claims.glob("webmon-claim-*")
    assert file.stat().st_mode & 0o777 == 0o444


def test_a_claim_file_that_is_closed_to_others_takes_one_gpu_out(machine):
    """Somebody has made it so; the other GPUs can be picked, and the error says what to do."""
    (nobody,) = others(1)
    desk = machine(2)
    command = open_to_all(desk)
    closed = desk.claims / f"webmon-claim-{uuid(0)}"
    closed.touch()
    closed.chmod(0o600)

    def theirs(*wish):
        return desk.run(
            [*become(nobody), *command, "select", *wish, "--", "sh", "-c", "echo $CUDA_VISIBLE_DEVICES"],
            cwd="/",
            env=environment(desk),
        )

    for _ in range(3):
        assert theirs().stdout == "1\n"
    done = theirs("-d", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"webmon: {closed} can't be used to claim a GPU: Permission denied. "
        "Remove it (root can), or say --no-claim to do without\n"
    )
    assert theirs("-d", "0", "--no-claim").stdout == "0\n"


@pytest.mark.parametrize("command", ["select", "wait"])
def test_a_folder_that_is_not_open_to_all_is_said(machine, command):
    """One line, before anything is started; without claims it works."""
    (nobody,) = others(1)
    desk = machine(1)
    words = [*become(nobody), *open_to_all(desk), command]
    desk.claims.chmod(0o755)
    done = desk.run([*words, "--", "echo", "never"], cwd="/", env=environment(desk))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"webmon: claims can't be kept: {desk.claims} can't be written to (Permission denied). "
        "Name a folder that all users may write to in $WEBMON_CLAIMS, or say --no-claim\n"
    )
    done = desk.run([*words, "--no-claim", "--", "echo", "done"], cwd="/", env=environment(desk))
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
    assert list(Path(desk.claims).iterdir()) == []
