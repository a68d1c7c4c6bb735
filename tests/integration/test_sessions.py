"""Odd login shells, odd sessions: what a host does between the login and its answer."""

from __future__ import annotations

import time

import pytest
from servers.ask import ask, failure, outcomes
from servers.command import table, webmon
from servers.programs import need
from servers.settings import write_config
from servers.sshd import Pretended
from servers.states import gpu, healthy, process

from webmon.model import Reading

BANNER = "Welcome to $HOME! *** 80% of /home is full ***"


def _asked(sshd, tmp_path, **changes):
    return ask(tmp_path, sshd.common(**changes))


@pytest.mark.parametrize(
    ("shell", "package"),
    [("csh", "tcsh"), ("fish", "fish"), ("dash", "dash"), ("bash", "bash"), ("busybox", "busybox")],
)
def test_any_login_shell_will_do(start_sshd, tmp_path, shell, package):
    """The probe goes to `sh -s` on standard input, so the login shell only has to start that."""
    program = need(shell, package) + (" ash" if shell == "busybox" else "")
    sshd = start_sshd([Pretended(command=f'{program} -c "$SSH_ORIGINAL_COMMAND"')])
    (answer,) = _asked(sshd, tmp_path).values()
    assert isinstance(answer.result, Reading)
    assert (len(answer.result.gpus), answer.result.problem, answer.result.processes) == (1, None, ())


def test_a_noisy_login_does_not_get_into_the_answer(start_sshd, tmp_path):
    """A banner before the login, and a shell start-up that prints without an end of line."""
    (tmp_path / "banner").write_text("Authorized users only!\n" * 500)
    noisy = f"echo '{BANNER}'; printf '@0123456789abcdef gpus\\n0, GPU-no' >&2; printf 'no end of line'; "
    sshd = start_sshd(
        [Pretended(healthy(2), command=f'{noisy} eval "$SSH_ORIGINAL_COMMAND"; echo Bye')],
        settings=[f"Banner {tmp_path}/banner"],
    )
    done = webmon("fetch", "-c", write_config(tmp_path, sshd.common()))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [row["state"] for row in table(tmp_path / "data", "gpus")] == ["free", "free"]


def test_what_a_session_leaves_running_is_not_waited_for(start_sshd, tmp_path):
    """A start-up file that puts something in the background keeps the channel open, but not webmon."""
    sshd = start_sshd([Pretended(command='sleep 30 & eval "$SSH_ORIGINAL_COMMAND"')])
    started = time.monotonic()
    assert outcomes(_asked(sshd, tmp_path)) == ["1 GPUs"]
    assert time.monotonic() - started < 5


@pytest.mark.parametrize(
    ("command", "reason", "said"),
    [
        ("/bin/false", "garbled", "nothing at all"),
        ("echo This account is currently not available.; exit 1", "garbled", "not available"),
        (
            "cat >/dev/null; cat /etc/passwd /dev/null; printf '\\\\033]0;x\\\\007'",
            "garbled",
            "something else",
        ),
        ("/does/not/exist", "garbled", ""),
        ("kill -9 $$", "cut-off", "was ended before"),
        ('eval "$SSH_ORIGINAL_COMMAND" | head -c 300', "cut-off", "ended in the middle"),
        ('eval "$SSH_ORIGINAL_COMMAND" | head -c 0', "garbled", "nothing at all"),
        ("head -c 100000 /dev/urandom", "garbled", "something else"),
        ("head -c 3000000 /dev/zero", "garbled", ""),
        ("yes", "too-much-output", "4 MiB"),
        ("yes >&2", "too-much-output", "4 MiB"),
        ("exec >&- 2>&-; sleep 60", "timeout", "running the probe"),
        ("sleep 60", "timeout", "running the probe"),
        ("while sleep 0.1; do printf .; done", "timeout", "running the probe"),
        ("trap '' TERM HUP; while :; do sleep 1; done", "timeout", "running the probe"),
    ],
)
def test_a_session_that_gives_no_answer_says_why(start_sshd, tmp_path, command, reason, said):
    """Each way to give no answer has its reason, and none of them takes longer than the timeout."""
    sshd = start_sshd([Pretended(command=command)])
    started = time.monotonic()
    error = failure(_asked(sshd, tmp_path, timeout=1.5))
    assert (error.reason, said in error.problem) == (reason, True), error.problem
    assert time.monotonic() - started < 3


def test_the_probe_killed_on_the_host_gives_no_half_answer(start_sshd, tmp_path):
    """A nvidia-smi that kills the probe after its rows have come: no card is told of."""
    state = healthy(2)
    kills = "for _ in timeout probe; do read -r _ _ _ p _ < /proc/$p/stat; done; kill -9 $p"
    rows = 'printf "0, GPU-1, 550, 0, 0, 4, 49140, 31, 21, 300, 30, 210, P8, N/A, A6000\\n"'
    sshd = start_sshd([Pretended(state, nvidia_smi=f"{rows}; p=$$; {kills}")])
    error = failure(_asked(sshd, tmp_path, timeout=5))
    assert error.reason == "cut-off"


@pytest.mark.parametrize("setting", ["MaxSessions 0", "ForceCommand internal-sftp"])
def test_an_account_without_a_shell_says_so(start_sshd, tmp_path, setting):
    """Logging in is one thing, running a command another."""
    sshd = start_sshd([Pretended(settings=[setting])])
    error = failure(_asked(sshd, tmp_path, timeout=3))
    assert error.reason in ("no-shell", "garbled", "timeout")


def test_a_large_honest_answer_is_taken_whole(start_sshd, tmp_path):
    """Sixteen cards and 1,900 processes with long names are far from the cap."""
    state = {
        "gpus": [gpu(index) for index in range(16)],
        "processes": [process(n % 16, 4_000_000 + n, f"/opt/{'x' * 150}/{n}") for n in range(1900)],
    }
    sshd = start_sshd([Pretended(state)])
    (answer,) = _asked(sshd, tmp_path, timeout=20).values()
    assert isinstance(answer.result, Reading)
    assert (len(answer.result.gpus), len(answer.result.processes or ())) == (16, 1900)


def test_the_probe_may_be_a_forced_command(start_sshd, tmp_path):
    """The line of `webmon deploy key` lets the key run the probe and nothing else."""
    sshd = start_sshd([Pretended(healthy(3))])
    config = write_config(tmp_path, sshd.common())
    line = webmon("deploy", "key", "-c", config)
    assert line.returncode == 0
    keys = [text for text in line.stdout.splitlines() if text and not text.startswith("#")]
    sshd.authorized_keys.write_text("\n".join(keys) + "\n")
    assert outcomes(_asked(sshd, tmp_path)) == ["3 GPUs"]


def test_max_startups_is_outlasted(start_sshd, tmp_path):
    """An sshd that drops every second login is asked again, until all of its hosts have answered."""
    sshd = start_sshd([Pretended()] * 12, settings=["MaxStartups 2:50:3"])
    assert outcomes(_asked(sshd, tmp_path, timeout=20)) == ["1 GPUs"] * 12
    assert sshd.connections() >= 12
