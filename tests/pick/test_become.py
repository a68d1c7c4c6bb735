"""`webmon select -- COMMAND` becomes the command: nothing of webmon stands between it and its caller."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from desk import on_a_terminal
from servers.command import WEBMON
from servers.states import uuid

SHOW = "import os, sys; sys.stdout.buffer.write(b'|'.join(map(os.fsencode, sys.argv[1:])))"
STATUS = ["cat", "/proc/self/status"]


def signals(text):
    """Return the signals that a process ignores, catches and blocks, as its status has them."""
    rows = dict(line.split(":\t") for line in text.splitlines() if ":\t" in line)
    return {name: rows[name] for name in ("SigIgn", "SigCgt", "SigBlk")}


def test_the_command_has_the_process_that_was_started(machine):
    """Who started `webmon select` has the command's own pid: to wait for, to kill, to attach to."""
    process = machine().start("select", "--", "sh", "-c", "echo $$")
    out, err = process.communicate()
    assert (int(out), err, process.returncode) == (process.pid, "", 0)


@pytest.mark.parametrize("code", [0, 7, 255])
def test_the_exit_code_is_the_commands(machine, code):
    """Whatever it is; nothing is added to its output."""
    done = machine().webmon("select", "--", "sh", "-c", f"exit {code}")
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV])
def test_a_signal_that_ends_the_command_is_seen_by_the_caller(machine, number):
    """It is not made an exit code."""
    assert machine().webmon("select", "--", "sh", "-c", f"kill -{number.value} $$").returncode == -number


def test_the_command_gets_signals_as_if_webmon_had_not_been_there(machine):
    """Python ignores SIGPIPE, and webmon catches SIGTERM: the command inherits neither."""
    desk = machine()
    with_webmon, without = desk.webmon("select", "--", *STATUS), desk.run(STATUS)
    assert signals(with_webmon.stdout) == signals(without.stdout)
    # Whoever runs the tests may ignore some.
    own = int(signals(Path("/proc/self/status").read_text())["SigIgn"], 16)
    assert not int(signals(with_webmon.stdout)["SigIgn"], 16) & ~own


def test_what_the_caller_ignores_stays_ignored(machine):
    """As `nohup` and a shell's `&` want it."""
    desk = machine()
    done = desk.run(f"trap '' INT HUP TERM; exec webmon select -- {' '.join(STATUS)}")
    ignored = int(signals(done.stdout)["SigIgn"], 16)
    told = 1 << signal.SIGINT - 1 | 1 << signal.SIGHUP - 1 | 1 << signal.SIGTERM - 1
    assert ignored & told == told


def test_a_reader_that_has_had_enough_ends_the_command(machine):
    """`webmon select -- yes | head` is over at once, without a word."""
    done = machine().run("webmon select -- yes | head -n 1", timeout=30)
    assert (done.stdout, done.stderr) == ("y\n", "")


def test_input_and_outputs_are_the_commands_own(machine):
    """The three streams go straight to it: not one byte is read, added or held back."""
    done = machine().webmon(
        "select", "--", "sh", "-c", "cat; echo trouble >&2", stdin=None, input="a\n\x01b without an end"
    )
    assert (done.stdout, done.stderr) == ("a\n\x01b without an end", "trouble\n")


def test_descriptors_are_passed_on_and_none_but_the_claim_is_added(machine):
    """What the caller has opened is there; of webmon's own there is only what holds the claim."""
    desk = machine()
    (desk.folder / "five").write_text("from five")
    script = "cat <&5; echo; for f in /proc/$$/fd/*; do readlink $f; done"
    done = desk.run(f"exec 5<five; exec webmon select -- sh -c '{script}'")
    first, *opened = done.stdout.splitlines()
    assert first == "from five"
    files = sorted(line for line in opened if line.startswith("/"))
    assert files == ["/dev/null", f"{desk.claims}/webmon-claim-{uuid(0)}", f"{desk.folder}/five"]
    assert len(opened) == 5, "input, both outputs, five, the claim"


def test_a_stream_that_the_caller_has_closed_stays_closed(machine):
    """The claim is not taken for the command's input."""
    done = machine().run("webmon select -- sh -c 'readlink /proc/$$/fd/0 || echo none' <&-")
    assert done.stdout == "none\n"


ARGUMENTS = [
    "a b",
    "it's",
    '"',
    "",
    "two\nlines\n",
    "*",
    "$HOME `id`",
    "\\",
    "\\n",
    "--",
    "--count",
    "-h",
    "é ☃",
    "\udcff\udcfe",
    "\t",
]


def test_arguments_arrive_as_they_were_given(machine):
    """No shell is in between: blanks, quotes, newlines, nothing at all, bytes that are no text."""
    desk = machine()
    done = subprocess.run(
        [*WEBMON, "select", "--", sys.executable, "-I", "-S", "-c", SHOW, *ARGUMENTS],
        check=True,
        capture_output=True,
        env=desk.environment,
    )
    assert done.stdout == b"|".join(map(os.fsencode, ARGUMENTS))
    assert done.stderr == b""


def test_options_of_the_command_are_not_webmons(machine):
    """All that stands after the first `--` is the command's."""
    done = machine(2).webmon("select", "--count", "2", "--", "echo", "--count", "9", "--", "--help")
    assert (done.returncode, done.stdout) == (0, "--count 9 -- --help\n")


def test_the_command_sees_its_gpus_and_no_others(machine):
    """By the ids of nvidia-smi, which CUDA only understands when it counts as nvidia-smi does."""
    desk = machine(3)
    show = ["sh", "-c", "echo $CUDA_DEVICE_ORDER $CUDA_VISIBLE_DEVICES $WORD"]
    done = desk.webmon("select", "-d", "2,1", "--", *show, env={"WORD": "kept", "CUDA_VISIBLE_DEVICES": "0"})
    assert done.stdout == "PCI_BUS_ID 1,2 kept\n"
    done = desk.webmon("select", "-d", "1", "--uuid", "--", *show)
    assert done.stdout == f"PCI_BUS_ID {uuid(1)}\n"


def test_the_command_is_looked_for_on_the_path(machine):
    """As a shell does, in the folder where it was called."""
    desk = machine()
    desk.program("train", 'echo "training in $PWD"')
    assert desk.webmon("select", "--", "train").stdout == f"training in {desk.folder}\n"


@pytest.mark.parametrize("program", ["./run.sh", "run.sh"])
def test_a_script_without_a_first_line_is_run_by_sh(machine, program):
    """`./run.sh` without `#!` works in every shell, and with env and nohup."""
    desk = machine()
    script = desk.program("run.sh", "")
    script.write_text('echo "$# $1 on $CUDA_VISIBLE_DEVICES"\n')
    done = desk.webmon("select", "--", program, "a b", "c", cwd=desk.bin)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2 a b on 0\n", "")


@pytest.mark.parametrize(
    ("program", "code", "why"),
    [
        ("no-such-program", 127, "No such file or directory"),
        ("./no-such-program", 127, "No such file or directory"),
        ("", 127, "a command without a name"),
        ("./state.json", 126, "Permission denied"),
        ("./claims", 126, "Permission denied"),
        ("./state.json/x", 126, "Not a directory"),
    ],
)
def test_a_command_that_cannot_be_run_is_said_as_shells_do(machine, program, code, why):
    """127 if it is not there, 126 if it can't be run; the GPU is free again at once."""
    desk = machine()
    done = desk.webmon("wait" if code == 126 else "select", "--", program)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", f"webmon: {program}: {why}\n")
    assert desk.available() == [0]


def test_the_terminal_is_the_commands(machine):
    """It is its controlling terminal, so that shells, editors and progress bars work."""
    desk = machine()
    show = "tty; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all three; : </dev/tty && echo controlling"
    code, seen = on_a_terminal(desk, *WEBMON, "select", "--", "sh", "-c", show)
    assert code == 0
    tty, *words = seen.splitlines()
    assert tty.startswith("/dev/pts/")
    assert words == ["all three", "controlling"]


def test_ctrl_c_reaches_the_command(machine):
    """It may handle it; webmon is gone by then, and prints nothing."""
    script = "trap 'echo caught; exit 3' INT; echo ready; while :; do sleep 0.1; done"
    code, seen = on_a_terminal(
        machine(), *WEBMON, "select", "--", "sh", "-c", script, typed=b"\x03", after=b"ready"
    )
    assert (code, seen.replace("^C", "")) == (3, "ready\ncaught\n")


def test_ctrl_c_ends_a_command_that_does_not_handle_it(machine):
    """By the signal itself."""
    code, _ = on_a_terminal(
        machine(),
        *WEBMON,
        "select",
        "--",
        "sh",
        "-c",
        "echo ready; exec sleep 600",
        typed=b"\x03",
        after=b"ready",
    )
    assert code == -signal.SIGINT


def test_verbose_says_which_gpu_it_was(machine):
    """On standard error, before the command starts; without, nothing is said."""
    done = machine().webmon("select", "-v", "--", "echo", "done")
    assert (done.stdout, done.stderr) == ("done\n", "webmon: GPU 0\n")
