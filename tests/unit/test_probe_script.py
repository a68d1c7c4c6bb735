"""The text of the probe: fit for `sh -s` and for one line in authorized_keys alike."""

from __future__ import annotations

import re
import subprocess

import pytest
from machine import Machine, shell
from probe_answers import TOKEN
from servers.programs import need
from servers.states import healthy

from webmon.collect import probe


def test_no_line_holds_what_a_login_shell_would_take_amiss():
    """No quote that would end the one around it, no history of csh, no escaped quote."""
    text = probe.script()
    assert not set("'!") & set(text)
    assert '\\"' not in text.replace('\\n"', "")
    assert "\\'" not in text
    assert text.isascii()


def test_no_comment_and_no_placeholder_is_sent():
    """The lines are joined to one, where a comment would swallow the rest."""
    text = probe.script()
    assert not re.search(r"(?:^|\s)#", text)
    assert not re.search(r"@[A-Z_]+@", text)


def test_the_forced_command_is_one_line():
    """As authorized_keys wants it."""
    line = probe.forced_command()
    assert "\n" not in line
    assert line.count("'") == 2
    assert line.startswith("exec sh -c '")


@pytest.mark.parametrize("timeout", [1, 2.5, 3, 5, 10, 20, 60, 600])
def test_both_questions_together_end_before_the_caller_gives_up(timeout):
    """So that a host whose nvidia-smi hangs can still say so."""
    seconds = [int(n) for n in re.findall(r"limited (\d+) ", probe.script(timeout=timeout))]
    assert len(seconds) == 3  # the cards, the cards once more to learn which field is refused, the processes
    assert min(seconds) >= 1
    assert seconds[0] + seconds[2] <= max(2, timeout - 1)


def test_nvidia_smi_may_be_a_path_or_a_few_words():
    """`nvidia_smi = "sudo -n /opt/nvidia-smi"`."""
    assert 'smi="sudo -n /opt/nvidia-smi"' in probe.script("sudo -n /opt/nvidia-smi")


def test_shellcheck_finds_nothing_wrong():
    """But for words that are split on purpose."""
    done = subprocess.run(
        [need("shellcheck", "shellcheck"), "--shell=sh", "--exclude=SC2086", "-"],
        input=probe.script(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["dash", "bash", "busybox"])
@pytest.mark.parametrize(
    "token",
    [
        "",
        "x",
        TOKEN[:-1],
        TOKEN + "0",
        TOKEN.upper(),
        TOKEN[:-1] + "*",
        "; touch pwned",
        "$(touch pwned)",
        "../etc",
    ],
)
def test_without_a_proper_token_nothing_is_run(tmp_path, name, token):
    """Exit 64, and a line that says what this key is for."""
    machine = Machine(tmp_path).says(healthy())
    done = machine.run([*shell(name), "-s", token], probe.script())
    assert (done.returncode, done.stdout) == (64, b"")
    assert done.stderr == b"This key runs the webmon probe and nothing else.\n"
    assert machine.calls("nvidia-smi") == []
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("asked", ["", "rm -rf /", f"sh -s {TOKEN}x", f"{TOKEN}; touch pwned", "exec sh -s"])
def test_a_forced_command_runs_nothing_else_whatever_is_asked_for(tmp_path, asked):
    """The key is good for the probe only."""
    machine = Machine(tmp_path).says(healthy())
    done = machine.run(["/bin/sh", "-c", probe.forced_command()], SSH_ORIGINAL_COMMAND=asked)
    assert (done.returncode, done.stdout) == (64, b"")
    assert machine.calls("nvidia-smi") == []
    assert not (tmp_path / "pwned").exists()
