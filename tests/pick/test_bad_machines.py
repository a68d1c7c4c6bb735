"""Machines and wishes that make no sense: one line on standard error, the right exit code, nothing else."""

from __future__ import annotations

import os

import pytest
from servers import processes
from servers.settings import write_config
from servers.states import NO_DRIVER, gpu, healthy, uuid

COMMANDS = [("select", "--", "echo", "never"), ("wait",), ("available",), ("list",)]
each_command = pytest.mark.parametrize("command", COMMANDS, ids=" ".join)


def refusal(done, code=1):
    """Return the one line that was said."""
    assert done.returncode == code, done
    assert done.stdout.strip() == "", "standard output is for ids only"
    (line,) = done.stderr.splitlines()
    assert line.startswith("webmon: ")
    return line


@each_command
def test_a_machine_without_nvidia_smi(machine, command):
    """It has no NVIDIA driver, or none where it is looked for."""
    desk = machine()
    (desk.bin / "nvidia-smi").unlink()
    config = write_config(desk.folder, {"hosts": ["self"], "nvidia_smi": "/does/not/exist"})
    name, *rest = command
    line = refusal(desk.webmon(name, "-c", config, *rest))
    assert "/does/not/exist" in line or "nvidia-smi" in line
    assert desk.tickets() == []


@each_command
def test_a_machine_without_a_gpu(machine, command):
    """The driver is there, and says so."""
    desk = machine({"failure": {"text": "No devices were found\n", "exit": 6}})
    assert "no devices" in refusal(desk.webmon(*command)).lower()


@each_command
def test_a_driver_that_lists_nothing(machine, command):
    """No failure, and no GPU."""
    desk = machine({"gpus": [], "processes": []})
    refusal(desk.webmon(*command))


@each_command
def test_a_broken_driver(machine, command):
    """What nvidia-smi says of itself is passed on."""
    desk = machine(NO_DRIVER)
    assert "driver" in refusal(desk.webmon(*command))


@each_command
def test_a_driver_of_another_version(machine, command):
    """As after an upgrade without a reboot."""
    text = "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.54\n"
    desk = machine({"failure": {"text": text, "exit": 18}})
    assert "mismatch" in refusal(desk.webmon(*command)).lower()


@pytest.mark.parametrize("command", [("wait", "--", "echo", "never"), ("list",)], ids=" ".join)
def test_a_driver_that_hangs(machine, command):
    """It is given up after the timeout of the configuration, and nothing of it is left."""
    desk = machine({"hangs": True})
    config = write_config(desk.folder, {"hosts": ["self"], "timeout": 2})
    name, *rest = command
    refusal(desk.webmon(name, "-c", config, *rest))
    left = processes.marked(f"WEBMON_STANDIN={desk.folder}/state.json\0")
    assert processes.wait_until_gone(left) == []


def _lost(index):
    return f"Unable to determine the device handle for GPU{index}: 0000:0{index}:00.0: GPU is lost.\n"


def test_of_a_machine_with_a_lost_gpu_the_others_are_picked(machine):
    """It has fallen off the bus; what is left works, and the lost one is never given."""
    desk = machine(healthy(3) | {"complaint": {"text": _lost(2), "exit": 15}})
    desk.state["gpus"] = [gpu(0), gpu(1)]
    desk.save()
    assert desk.available() == [0, 1]
    assert desk.webmon("select", "--count", "2").stdout == "0,1\n"
    assert desk.webmon("wait", "--count", "2", "--timeout", "9").stdout == "0,1\n"
    done = desk.webmon("list")
    assert ["[ ]" in line for line in done.stdout.splitlines()] == [False, True, True, False]
    assert "[!]" in done.stdout.splitlines()[3]
    assert "lost" in done.stderr


def test_a_gpu_with_an_error_is_not_picked(machine):
    """Its readings are errors; the others are not."""
    broken = dict.fromkeys(gpu(0), "[GPU requires reset]") | {"index": "0", "uuid": uuid(0)}
    desk = machine({"gpus": [broken, gpu(1)], "processes": []})
    assert desk.available() == [1]
    assert desk.webmon("select", "-u", "100").stdout == "1\n"
    assert "0 matched" in refusal(desk.webmon("select", "-d", "0"))


def test_without_a_list_of_processes_nothing_is_picked(machine):
    """Idle or not can't be told: unknown is not idle."""
    desk = machine(healthy(2) | {"process_failure": {"text": "Failed to query\n", "exit": 1}})
    assert desk.webmon("available").returncode == 1
    for wish in ((), ("-u", "100", "-p", "9")):
        assert "0 matched" in refusal(desk.webmon("select", *wish))


@pytest.mark.parametrize("command", ["select", "wait"])
@pytest.mark.parametrize(
    ("wish", "says"),
    [
        (("-d", "9"), "Invalid device ID 9. This machine has 0, 1"),
        (("-d", "0,9"), "Invalid device ID 9. This machine has 0, 1"),
        (("-d", "0", "--name", "A6000"), "Use only one of 'devices' and 'name'."),
        (("-d", "0", "--count", "2"), "2 GPUs can't be picked from the 1 named."),
        (("python", "train.py"), "'python' stands before `--`."),
        (("python", "--", "train.py"), "'python' stands before `--`."),
        (("--",), "nothing stands after `--`."),
    ],
)
def test_a_wish_that_makes_no_sense(machine, command, wish, says):
    """Exit code 2: whoever asked has to change the question."""
    line = refusal(machine(2).webmon(command, *wish), code=2)
    assert line.startswith(f"webmon: {says}")


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        (("--count", "0"), "'0' is not a number of GPUs (1 or more)"),
        (("--count", "-1"), "--count"),
        (("--count", "two"), "'two' is not a number of GPUs (1 or more)"),
        (("-d", "0,"), "'0,' is no list of GPUs: write 0 or 0,2"),
        (("-d", "GPU-1"), "'GPU-1' is no list of GPUs: write 0 or 0,2"),
        (("-u", "101"), "'101' is not a percentage (0 to 100)"),
        (("-u", "nan"), "'nan' is not a percentage (0 to 100)"),
        (("-p", "-1"), "-p"),
        (("--free-memory", "20"), "'20' is no memory: write 20G, 20GiB, 20GB or 20000M"),
        (("--sort", "best"), "invalid choice: 'best'"),
        (("--cuont", "2"), "unrecognized arguments: --cuont; did you mean --count?"),
        (("--utl=5",), "unrecognized arguments: --utl=5; did you mean --util?"),
        (("--coun", "2", "--", "echo"), "did you mean --count?"),
    ],
)
def test_a_mistyped_option_is_no_command(machine, wish, says):
    """It is an error of usage, said in the last line, and never run or taken for something similar."""
    desk = machine(2)
    for command in ("select", "wait"):
        done = desk.webmon(command, *wish)
        assert (done.returncode, done.stdout) == (2, "")
        assert says in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize("given", ["", "2", "h", "1h30", "-5", "1.5h", "nan"])
def test_a_timeout_is_a_time(machine, given):
    """Only what is surely meant is taken: a bare number is seconds."""
    done = machine(1).webmon("wait", f"--timeout={given}")
    code = 0 if given in ("2", "1h30") else 2
    assert (done.returncode, done.stdout) == (code, "" if code else "0\n")


def test_the_folder_of_the_claims_is_not_touched_by_a_look(machine):
    """Only who picks leaves files there, and only empty ones."""
    desk = machine(1)
    desk.webmon("list")
    desk.webmon("available")
    desk.webmon("select", "-d", "7")
    desk.webmon("wait", "--count", "7")
    assert os.listdir(desk.claims) == []
    desk.webmon("wait")
    assert sorted(os.listdir(desk.claims)) == [f"webmon-claim-{uuid(0)}", "webmon-picking"]
    assert all(file.stat().st_size == 0 for file in desk.claims.iterdir())
