"""`webmon completion SHELL`, in the real shells: commands, options, values, files, the user's command."""

from __future__ import annotations

import os
import shlex
import subprocess

import pytest
from servers.command import webmon
from servers.programs import need
from test_commands import COMMANDS

SHELLS = ("bash", "zsh", "fish")

BASH = """
{script}
compopt() {{ :; }}
COMP_WORDS=({words}) COMP_CWORD={at}
_webmon
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# zsh completes only where somebody types, so somebody types: `compadd` writes down what it is told.
ZSH = """
zmodload zsh/zpty
zpty shell "TERM=dumb zsh -f -i"
zpty -w shell 'PS1= PS2= RPROMPT=; unsetopt zle_bracketed_paste 2>/dev/null'
zpty -w shell 'autoload -Uz compinit; compinit -u -D'
zpty -w shell 'source {script}'
zpty -w shell 'compadd () {{ local -a hits; builtin compadd -O hits "$@"; print -rl -- $hits >> {out}'
zpty -w shell 'builtin compadd "$@" }}'
zpty -w shell 'done-now () {{ print -r -- END >> {out} }}; zle -N done-now; bindkey "^X^E" done-now'
zpty -w shell 'bindkey "^I" complete-word; print ready > {ready}'
while [[ ! -s {ready} ]]; do sleep 0.05; done
zpty -n -w shell {line}$'\\t\\x18\\x05'
integer n=0
while ! grep -q '^END$' {out} 2>/dev/null && (( n++ < 200 )); do sleep 0.05; zpty -r -t shell ignored; done
zpty -d shell
"""


class Shell:
    """Tells what a shell offers for a line that ends where the cursor is."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.program = need(name, name)
        done = webmon("completion", name)
        assert (done.returncode, done.stderr) == (0, "")
        self.text = done.stdout
        self.script = folder / f"webmon.{name}"
        self.script.write_text(done.stdout)

    def offers(self, line):
        return getattr(self, f"_{self.name}")(line)

    def _run(self, script, *options):
        done = subprocess.run(
            [self.program, *options, "-c", script], cwd=self.folder, capture_output=True, text=True,
            timeout=60, check=False, stdin=subprocess.DEVNULL, env={**os.environ, "HOME": str(self.folder)},
        )  # fmt: skip
        assert done.stderr == "", done.stderr
        return {word.rstrip("/") for word in done.stdout.split("\n") if word}

    def _bash(self, line):
        words = shlex.split(line.replace("=", " = ")) + ([""] if line.endswith((" ", "=")) else [])
        script = BASH.format(script=self.text, words=shlex.join(words), at=len(words) - 1)
        return self._run(script, "--norc", "--noprofile")

    def _fish(self, line):
        got = self._run(f"source {self.script}; complete -C {shlex.quote(line)}", "--no-config")
        words = {word.split("\t")[0] for word in got}
        return {word.rpartition("=")[2] for word in words} if "=" in line else words

    def _zsh(self, line):
        out, ready = self.folder / "out", self.folder / "ready"
        for left in (out, ready):
            left.unlink(missing_ok=True)
        self._run(ZSH.format(script=self.script, out=out, ready=ready, line=shlex.quote(line)), "-f")
        words = set(out.read_text().split("\n")) - {"", "END"}
        return {word.split(":")[0].rstrip("/=") for word in words}


@pytest.fixture(params=SHELLS)
def shell(request, tmp_path):
    """One of the three, in a folder with two files and a folder."""
    (tmp_path / "lab one.ini").write_text("")
    (tmp_path / "lab2.ini").write_text("")
    (tmp_path / "labs").mkdir()
    return Shell(request.param, tmp_path)


def test_commands_are_completed(shell):
    """All of them, and those that begin with what was typed."""
    assert set(COMMANDS) <= shell.offers("webmon ")
    assert shell.offers("webmon se") == {"select", "serve"}


def test_options_are_completed(shell):
    """Those of the command, and none of another."""
    offered = shell.offers("webmon list --")
    assert {"--cluster", "--from", "--data", "--sort", "--json", "--csv", "--filter", "--config"} <= offered
    assert not offered & {"--count", "--timeout", "--port"}
    assert "--timeout" in shell.offers("webmon wait --t")


def test_the_short_form_is_completed_as_list(shell):
    """`webmon --cl` is `webmon list --cl`."""
    assert shell.offers("webmon --cl") == {"--cluster"}
    assert "free-memory" in shell.offers("webmon --cluster --sort ")


def test_values_that_are_one_of_a_few_are_completed(shell):
    """--sort, and what `deploy` and `completion` print."""
    assert shell.offers("webmon select --sort ") == {"index", "free-memory", "power", "name", "random"}
    assert shell.offers("webmon list --sort=n") == {"name"}
    assert shell.offers("webmon deploy ng") == {"nginx"}
    assert {"bash", "zsh", "fish"} <= shell.offers("webmon completion ")


def test_files_and_folders_are_completed(shell):
    """Files for --config, also with a space in their names; folders for --data."""
    assert {"lab one.ini", "lab2.ini"} <= {
        name.replace("\\ ", " ") for name in shell.offers("webmon list -c ")
    }
    assert {"lab2.ini"} <= shell.offers("webmon list --config lab2")
    assert "labs" in shell.offers("webmon list --data l")


def test_what_the_past_is_asked_by_is_completed(shell):
    """What a row of `stats` is about; files for `history import`, and only there."""
    assert shell.offers("webmon stats --by ") == {"user", "host", "model", "group", "state"}
    assert {"--days", "--data", "--json", "--csv"} <= shell.offers("webmon users --")
    assert {"--since", "--time", "--data"} <= shell.offers("webmon history --")
    assert shell.offers("webmon history im") == {"import"}
    assert "lab2.ini" in shell.offers("webmon history import lab2")
    assert "lab2.ini" not in shell.offers("webmon history lab2")
    assert not shell.offers("webmon history gpu07 --since ")


def test_a_value_that_can_be_anything_is_left_alone(shell):
    """No file is offered for a name or a number."""
    assert not shell.offers("webmon select --name l")
    assert not shell.offers("webmon select --count ")


def test_the_users_command_is_completed_as_such(shell):
    """After `--`: programs, then whatever they take; no option of webmon's."""
    offered = shell.offers("webmon select --count 2 -- whoa")
    assert "whoami" in offered
    assert "--cluster" not in shell.offers("webmon select -- ls --cl")


def test_a_shell_reads_it_without_a_word(shell):
    """It is eval'ed whenever a shell starts."""
    before = "autoload -Uz compinit; compinit -u -D; " if shell.name == "zsh" else ""
    options = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell.name]
    source = f"source {shell.script}" if shell.name == "fish" else f'eval "$(cat {shell.script})"'
    assert shell._run(before + source, *options) == set()


def test_shellcheck_has_nothing_to_say_about_the_one_for_bash(tmp_path):
    """But that words are split on purpose."""
    (tmp_path / "webmon.bash").write_text(webmon("completion", "bash").stdout)
    done = subprocess.run(
        [need("shellcheck", "shellcheck"), "-s", "bash", "-e", "SC2207", tmp_path / "webmon.bash"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout == ""


def test_zsh_takes_it_from_a_folder_of_functions_too(tmp_path):
    """As `_webmon` in $fpath, where compinit finds it by its first line."""
    zsh = need("zsh", "zsh")
    functions = tmp_path / "functions"
    functions.mkdir()
    (functions / "_webmon").write_text(webmon("completion", "zsh").stdout)
    script = f"fpath=({functions} $fpath); autoload -Uz compinit; compinit -u -D; print $_comps[webmon]"
    done = subprocess.run([zsh, "-f", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "_webmon\n"
