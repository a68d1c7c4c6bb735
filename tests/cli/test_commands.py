"""The commands as a person types them: help, mistakes, and what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from servers.command import environment, webmon

from webmon import __version__

COMMANDS = (
    "list", "available", "select", "wait", "users", "stats", "history",
    "fetch", "render", "update", "config", "deploy", "completion", "serve", "demo",
)  # fmt: skip


def refused(*arguments):
    """Check that a call is a mistake, told in one line, and return the line."""
    done = webmon(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("webmon")
    return line


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command):
    """--help ends with 0 and shows how the command is used."""
    done = webmon(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"webmon {command}" in done.stdout
    assert "examples:" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [[], *([command] for command in ("list", "available", "select", "wait", "users", "stats", "history"))],
)
def test_help_fits_a_terminal_of_80_columns(arguments):
    """What is said beside an example that is long stands below it."""
    lines = webmon(*arguments, "--help", env={"COLUMNS": "80"}).stdout.splitlines()
    assert [line for line in lines if len(line) > 80] == []
    if arguments == ["select"]:
        at = lines.index("  webmon select -- python train.py --lr 0.1")
        assert lines[at + 1] == "      on any free GPU, claimed for as long as it runs"


def test_the_version_is_told():
    """One line, on standard output."""
    assert webmon("--version").stdout == f"webmon {__version__}\n"


def test_help_lists_all_commands():
    """On standard output, in a few words each."""
    done = webmon("--help")
    assert (done.returncode, done.stderr) == (0, "")
    for command in COMMANDS:
        assert re.search(rf"^    {command}  +\w+ \w+", done.stdout, re.MULTILINE), command


@pytest.mark.parametrize(
    "arguments",
    [["fetchh"], ["fetch", "--confg", "x"], ["fetch", "--con", "x"], ["deploy"], ["deploy", "ngnix"],
     ["serve", "--port", "x"], ["serve", "--port", "70000"], ["demo", "--every", "0"], ["fetch", "-q", "-v"]],
)  # fmt: skip
def test_mistyped_commands_and_options_are_errors(arguments):
    """Exit 2 and one line, which says where the help is."""
    command = arguments[0] if arguments[0] in COMMANDS else ""
    assert refused(*arguments).endswith(f" See `webmon {command}{' ' if command else ''}--help`")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["wait", "--util", "x"],
         "webmon wait: argument -u/--util: 'x' is not a percentage (0 to 100). See `webmon wait --help`"),
        (["lst"], "webmon: there is no command 'lst'; did you mean `list`? See `webmon --help`"),
        (["gpu07"], "webmon: there is no command 'gpu07'. See `webmon --help`"),
        ([""], "webmon: there is no command ''. See `webmon --help`"),
        (["fetch", "--datta", "x"],
         "webmon fetch: unrecognized arguments: --datta x; did you mean --data? See `webmon fetch --help`"),
        (["fetch", "a\n\x1b[2Jb"],
         "webmon fetch: unrecognized arguments: a��[2Jb. See `webmon fetch --help`"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_that_says_what_was_meant(arguments, line):
    """Of the command that it is in; harmless, whatever was typed."""
    assert refused(*arguments) == line


@pytest.mark.parametrize("command", ["select", "wait"])
@pytest.mark.parametrize(
    "arguments", [["--lr", "2"], ["--lr=2"], ["python", "train.py", "--lr", "2"], ["--lr", "--", "true"]]
)
def test_an_option_of_the_users_own_command_is_not_taken_for_one_of_ours(command, arguments):
    """No option of webmon's is suggested that is not much like it; where it belongs is said."""
    line = refused(command, *arguments)
    assert "did you mean" not in line
    assert "--lr" in line
    assert "the options of a command of your own come after `--`. See" in line


def test_what_runs_no_command_says_nothing_of_its_options():
    """`list` has no `--`."""
    assert refused("list", "--lr").startswith("webmon list: unrecognized arguments: --lr. See")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["-q", "select", "--", "true"], "select -q"),
        (["-v", "list"], "list -v"),
        (["-c", "x", "fetch"], "fetch -c"),
        (["--cluster", "-q", "available"], "available --cluster"),
        (["--filter", "list", "wait"], "wait --filter"),
    ],
)
def test_options_before_the_command_are_a_mistake(arguments, told):
    """They are not taken for the short form of `list`, with the command as a host."""
    line = f"webmon: options come after the command: `webmon {told} …`. See `webmon --help`"
    assert refused(*arguments) == line


def test_the_short_form_takes_options(data, tmp_path):
    """Where a value is called as a command is, too; what stands after `--` is none."""
    listed = webmon("list", "--data", data).stdout
    assert listed
    (tmp_path / "list").symlink_to(data)
    for arguments in (["--data", data], ["--data", "list"], ["--data=list"], ["--data", data, "--", "*"]):
        assert webmon(*arguments, cwd=tmp_path).stdout == listed
    done = webmon("--data", data, "--filter", "list")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "webmon: no GPU matches")
    done = webmon("--data", data, "--", "list")
    assert "there is no host 'list' in the snapshot" in done.stderr


def test_without_a_configuration_it_says_where_it_looked(tmp_path):
    """And what to do."""
    done = webmon("fetch", cwd=tmp_path)
    assert done.returncode == 2
    assert "config.ini" in done.stderr
    assert "/etc/webmon/config.ini" in done.stderr
    assert "Copy config.example.ini" in done.stderr


@pytest.mark.parametrize("command", ["fetch", "render", "update", "config", "deploy"])
def test_an_error_in_the_configuration_is_one_line_with_a_suggestion(tmp_path, command):
    """File, line, what is wrong, what was meant; exit 2."""
    (tmp_path / "config.ini").write_text("[common]\nhosts = a\nusr = bob\n")
    done = webmon(command, *(["cron"] if command == "deploy" else []), cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "webmon: config.ini:3: [common] has no key 'usr'. Did you mean 'user'?\n"


def test_render_before_any_fetch_says_what_to_run(tmp_path):
    """One line, exit 2, no site."""
    (tmp_path / "config.ini").write_text("[common]\nhosts = self\n")
    done = webmon("render", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"webmon: {tmp_path}/data has no snapshot yet. Run `webmon fetch` first\n"
    assert not (tmp_path / "site").exists()


def test_the_example_can_be_printed_and_used(tmp_path):
    """`webmon config --example > config.ini` is a start."""
    example = webmon("config", "--example").stdout
    (tmp_path / "config.ini").write_text(example)
    shown = webmon("config", "--json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    hosts = json.loads(shown.stdout)["hosts"]
    assert next(iter(hosts)) == "gpu01.lab.example"
    assert hosts["old.lab.example:2222"]["user"] == {"value": "bob", "source": "config.ini:7"}


def test_a_host_that_is_not_there_is_named(tmp_path):
    """`webmon config HOST` suggests the one that was meant."""
    (tmp_path / "config.ini").write_text("[common]\nhosts = gpu[01-03]\n")
    done = webmon("config", "gpu1", cwd=tmp_path)
    assert done.returncode == 2
    assert "Did you mean 'gpu01'?" in done.stderr


def test_the_commands_import_what_they_need_and_no_more(tmp_path):
    """`webmon config` imports neither paramiko nor pandas nor jinja2; render, which sums up, no paramiko."""
    (tmp_path / "config.ini").write_text("[common]\nhosts = self\n")
    code = (
        "import sys; from webmon.cli import main; main(sys.argv[1:]); "
        "print([m for m in ('paramiko', 'pandas', 'jinja2', 'numpy') if m in sys.modules], file=sys.stderr)"
    )

    def imported(*arguments):
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=True, env=environment(),
        )  # fmt: skip
        return done.stderr.splitlines()[-1]

    assert imported("config") == "[]"
    assert imported("fetch") == "['pandas', 'numpy']"
    assert imported("render") == "['pandas', 'jinja2', 'numpy']"


def test_it_runs_as_a_module_and_as_a_script():
    """`python -m webmon` and `webmon` are the same."""
    from pathlib import Path

    script = Path(sys.executable).parent / "webmon"
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == webmon("--version").stdout


def test_help_is_a_command_too():
    """`webmon help select` is what many try."""
    assert webmon("help").stdout == webmon("--help").stdout
    assert webmon("help", "select").stdout == webmon("select", "--help").stdout


def test_the_name_of_this_machine_means_this_machine(tmp_path):
    """The table shows it, so it may be typed; no snapshot is asked for."""
    done = webmon("list", os.uname().nodename, cwd=tmp_path, env={"PATH": str(tmp_path)})
    assert done.returncode == 1
    assert "nvidia-smi was not found" in done.stderr
