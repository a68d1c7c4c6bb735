"""What people see, and what cron mails."""

from __future__ import annotations

import fcntl
import os
import re
import struct
import subprocess
import termios

import pytest
from servers.command import WEBMON, environment, webmon
from servers.hostile import Hostile
from servers.settings import write_config
from servers.sshd import Pretended
from servers.states import healthy


@pytest.fixture
def lab(start_sshd, tmp_path):
    """Three hosts with one, two and three idle cards."""
    sshd = start_sshd([Pretended(healthy(number + 1, number)) for number in range(3)])
    write_config(tmp_path, sshd.common())
    return sshd


def _on_a_terminal(*arguments, columns=80):
    """Run webmon with its standard error on a terminal; return its exit code and both outputs."""
    ours, theirs = os.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    changes = {"COLUMNS": str(columns), "TERM": "xterm"}
    with subprocess.Popen(
        [*WEBMON, *map(str, arguments)], stdout=subprocess.PIPE, stderr=theirs, env=environment(**changes)
    ) as process:
        os.close(theirs)
        seen = b""
        while chunk := _read(ours):
            seen += chunk
        out = process.stdout.read()
    os.close(ours)
    return process.returncode, out.decode(), seen.decode()


def _read(terminal):
    try:
        return os.read(terminal, 65536)
    except OSError:  # the other end has been closed
        return b""


def test_fetch_and_update_are_silent_without_a_terminal(lab, tmp_path):
    """cron mails what is printed: on success that is nothing."""
    for command in ("fetch", "update"):
        done = webmon(command, "-c", tmp_path / "config.ini")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_host_that_is_down_is_no_reason_to_print(lab, tmp_path):
    """That a host does not answer is data: it is on the page, not in a mail."""
    with Hostile(down="refuse") as servers:
        config = write_config(tmp_path, lab.common(hosts=[*lab.names, servers.name("down")]))
        done = webmon("fetch", "-c", config)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_terminal_shows_progress_and_a_summary(lab, tmp_path):
    """The bar is drawn on one line and taken away; what stays is the summary."""
    code, out, seen = _on_a_terminal("fetch", "-c", tmp_path / "config.ini")
    assert (code, out) == (0, "")
    *drawn, rest = seen.split("\r\x1b[K")
    assert re.fullmatch(r"\[#{40}\] 3/3 127\.0\.0\.1[123]:\d+", drawn[-1])
    assert all("\n" not in text for text in drawn)
    assert rest == "3 hosts: 3 up; 6 GPUs: 6 free\r\n"


@pytest.mark.parametrize("columns", [10, 30, 200])
def test_the_bar_fits_the_terminal(lab, tmp_path, columns):
    """A bar that is wider than the terminal would leave a line behind each time."""
    code, _, seen = _on_a_terminal("fetch", "-c", tmp_path / "config.ini", columns=columns)
    assert code == 0
    assert all(len(text) < columns for text in seen.split("\r\x1b[K")[:-1])


def test_quiet_is_quiet_on_a_terminal_too(lab, tmp_path):
    """-q leaves errors only."""
    assert _on_a_terminal("fetch", "-q", "-c", tmp_path / "config.ini") == (0, "", "")


def test_verbose_tells_of_each_host_without_a_terminal(lab, tmp_path):
    """-v names every host, in order, with its time, and the reason of those that are down."""
    with Hostile(down="refuse") as servers:
        config = write_config(tmp_path, lab.common(hosts=[*lab.names, servers.name("down")]))
        done = webmon("fetch", "-v", "-c", config)
        down = servers.name("down")
    assert (done.returncode, done.stdout) == (0, "")
    lines = done.stderr.splitlines()
    assert [line.split(" in ")[0] for line in lines] == [f"{name}: up" for name in lab.names] + [
        f"{down}: down",
        "4 hosts: 3 up, 1 down; 6 GPUs: 6 free",
    ]
    assert "refuses connections" in lines[3]


def test_what_a_host_says_can_not_reach_into_the_terminal(start_sshd, tmp_path):
    """Escape sequences in a host's answer are made harmless before they are printed."""
    evil = r"printf '\033]0;owned\007\033[2J\r\n\302\233 2J'; exit 9"
    sshd = start_sshd([Pretended(nvidia_smi=evil), Pretended(command=evil)])
    code, out, seen = _on_a_terminal("fetch", "-v", "-c", write_config(tmp_path, sshd.common()))
    assert (code, out) == (0, "")
    assert "owned" in seen
    rest = seen.replace("\r\x1b[K", "").replace("\r\n", "\n")
    assert not [char for char in rest if (ord(char) < 32 and char != "\n") or 127 <= ord(char) < 160]
