"""The crontab: lines that cron takes, and a command that runs as cron runs it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from servers.command import environment, table
from servers.settings import write_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers.sshd import Sshd

# Minute, hour, day, month, weekday; a command.
_ENTRY = re.compile(r"((?:[0-9*/,-]+ +){5})(.+)")


def entry(crontab: str) -> tuple[str, str]:
    """Return the times and the command of the one entry, the command as cron gives it to sh."""
    lines = [line for line in crontab.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(lines) == 1
    found = _ENTRY.fullmatch(lines[0])
    assert found
    assert not re.search(r"(?<!\\)%", found[2])  # the rest would be the command's input
    return found[1].strip(), found[2].replace(r"\%", "%")


def run_as_cron(command: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in the bare environment that cron gives it."""
    bare = {"HOME": str(home), "LOGNAME": "webmon", "PATH": "/usr/bin:/bin", "SHELL": "/bin/sh"}
    return subprocess.run(
        ["/bin/sh", "-c", command],
        check=False,
        capture_output=True,
        text=True,
        cwd=home,
        env=bare,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )


def test_every_five_minutes(printed: Callable[..., str]):
    """The entry runs all day, every five minutes."""
    assert entry(printed("cron"))[0] == "*/5 * * * *"


def test_the_text_ends_with_a_newline(printed: Callable[..., str]):
    """A crontab whose last line has no newline is refused by cron."""
    assert printed("cron").endswith("\n")


@pytest.mark.parametrize("name", ["plain", "a lab's $HOME; 100%", "-c", "%d%%", "`x` & ü (1) #"])
def test_the_command_runs_as_it_stands(printed: Callable[..., str], sshd: Sshd, tmp_path: Path, name: str):
    """cron's sh runs the command from anywhere, in silence, whatever the folder is called."""
    folder = tmp_path / name
    _, command = entry(printed("cron", common=sshd.common(), folder=folder))
    (tmp_path / "elsewhere").mkdir()
    result = run_as_cron(command, tmp_path / "elsewhere")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert [row["status"] for row in table(folder / "data", "hosts")] == ["up"]
    assert (folder / "site" / "index.html").exists()


def test_what_goes_wrong_is_mailed(printed: Callable[..., str], sshd: Sshd, tmp_path: Path):
    """cron mails what is printed, and that is one line that says what to do."""
    key = tmp_path / "no-key"
    _, command = entry(printed("cron", common=sshd.common(key_filename=str(key))))
    result = run_as_cron(command, tmp_path)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert str(key) in result.stderr


def test_without_the_script_it_is_the_module(tmp_path: Path):
    """Where no `webmon` stands next to the interpreter, the interpreter is told to run the module."""
    python = tmp_path / "a python" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    config = write_config(tmp_path, {"hosts": ["gpu01"]})
    shown = subprocess.run(
        [python, "-m", "webmon", "deploy", "cron", "-c", config],
        check=True,
        capture_output=True,
        text=True,
        env=environment(PYTHONPATH=os.pathsep.join(path for path in sys.path if path)),
    ).stdout
    assert entry(shown)[1] == f"'{python}' -m webmon update -c {config}"


def test_the_configuration_is_named_by_its_real_place(printed: Callable[..., str], tmp_path: Path):
    """`-c ../config.ini` is right where it is typed, and not where cron runs."""
    command = entry(printed("cron", folder=tmp_path / "x" / ".." / "y"))[1]
    assert command.endswith(f"-c {Path(os.path.realpath(tmp_path)) / 'y' / 'config.ini'}")


def test_the_configuration_of_the_environment_is_named_too(tmp_path: Path):
    """The file that $WEBMON_CONFIG names, or that lies in this folder, stands in the entry."""
    write_config(tmp_path, {"hosts": ["gpu01"]})
    shown = subprocess.run(
        [sys.executable, "-m", "webmon", "deploy", "cron"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
    ).stdout
    assert entry(shown)[1].endswith(f" -c {os.path.realpath(tmp_path)}/config.ini")


@pytest.mark.parametrize("name", ["a\nb", 'a"b', "a\\b"])
def test_a_place_that_a_crontab_cannot_name_is_refused(
    refused: Callable[..., str], tmp_path: Path, name: str
):
    """A newline ends an entry, and crons read backslashes differently."""
    folder = tmp_path / name
    assert "another name" in refused("cron", folder=folder)
