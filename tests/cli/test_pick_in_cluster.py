"""`available`, `select` and `wait` with --cluster: which GPU of the last snapshot, and on which host."""

from __future__ import annotations

import time

import pytest
from clusters_seen import A100, card, cluster
from servers.command import start, webmon

from webmon.store import snapshot

FREE = ["gpu07:1", "gpu07:2", "gpu08:1", "mixed:2222:0"]


@pytest.mark.parametrize(
    ("arguments", "ids"),
    [
        ([], FREE),
        (["-l", "2"], FREE[:2]),
        (["--name", "a6000"], ["mixed:2222:0"]),
        (["--free-memory", "40G"], ["gpu07:1", "gpu07:2", "mixed:2222:0"]),
        (["--sort", "power"], ["gpu07:1", "gpu07:2", "gpu08:1", "mixed:2222:0"]),
        (["--sort", "name"], ["gpu07:1", "gpu07:2", "gpu08:1", "mixed:2222:0"]),
        (["--sort", "free-memory", "-l", "3"], ["gpu07:1", "gpu07:2", "mixed:2222:0"]),
    ],
)
def test_available_names_host_and_id(data, arguments, ids):
    """One a line, so that `while read` can take them."""
    done = webmon("available", "--data", data, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ids


def test_available_is_empty_when_nothing_is(data):
    """No id, and exit 1."""
    done = webmon("available", "--data", data, "--name", "H100")
    assert (done.returncode, done.stdout.strip(), done.stderr) == (1, "", "webmon: no such GPU is free\n")


def test_select_names_one_host_with_all_of_its_gpus(data):
    """Never some here and some there: a program runs on one machine."""
    for _ in range(5):
        done = webmon("select", "--data", data, "--count", "2")
        assert (done.returncode, done.stdout, done.stderr) == (0, "gpu07:1,2\n", "")


def test_select_takes_any_host_that_has_them(data):
    """At random, so that not everybody gets the same one."""
    got = {webmon("select", "--data", data).stdout.strip() for _ in range(15)}
    assert got <= set(FREE)
    assert len(got) > 1


@pytest.mark.parametrize(
    ("arguments", "out"),
    [
        (["--name", "A6000"], "mixed:2222:0"),
        (["--name", "3090", "--uuid"], "GPU-gpu08-1"),
        (["--count", "2", "--uuid"], "GPU-gpu07-1,GPU-gpu07-2"),
        (["--devices", "1", "--free-memory", "70GiB"], "gpu07:1"),
        (["--sort", "power", "--devices", "0"], "mixed:2222:0"),
        (["--mem_util", "60", "--util", "100", "--processes", "3", "--name", "A100", "--devices", "0"], ""),
    ],
)
def test_the_wishes_are_those_of_one_machine(data, arguments, out):
    """Model, memory, ids, order, UUIDs."""
    done = webmon("select", "--data", data, *arguments)
    if not out:
        assert done.returncode == 2  # devices with a name: a contradiction here as there
        return
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(out)


def test_a_card_that_is_shared_can_be_asked_for(data):
    """As gpuselect has it: limits that somebody raises."""
    done = webmon(
        "select", "--data", data, "-n", "A100", "--util", "97", "--mem-util", "60", "--processes", "2",
        "--count", "3",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("gpu07:")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--count", "2", "--name", "3090"], "Requested 2 GPUs, but 1 matched filters"),
        (["--count", "5"], "None of 5 hosts has so many of them: it will never do"),
        (["--name", "H100"], "None of 5 hosts has so many of them: it will never do"),
    ],
)
def test_not_enough_on_any_host_is_exit_1(data, arguments, told):
    """One line, nothing on standard output; whether waiting would help is told."""
    done = webmon("select", "--data", data, *arguments)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert told in line


def test_a_host_that_is_down_is_never_picked(data):
    """Nor a card that is faulty, unknown or claimed."""
    done = webmon("select", "--data", data, "--name", "A100", "--count", "3")
    assert done.returncode == 1


@pytest.mark.parametrize("command", ["select", "wait"])
@pytest.mark.parametrize(
    "arguments",
    [["--count", "0"], ["--count", "x"], ["--devices", "0,x"], ["--util", "101"], ["--free-memory", "20"],
     ["--cuont", "2"], ["python"], ["--devices", "0", "--name", "x"], ["--count", "3", "-d", "0,1"]],
)  # fmt: skip
def test_what_makes_no_sense_is_exit_2(data, command, arguments):
    """Before anything is looked at."""
    done = webmon(command, "--data", data, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


def test_quiet_prints_nothing(data):
    """Its exit code says it."""
    done = webmon("select", "--data", data, "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_wait_takes_what_is_free(data):
    """At once, when something is."""
    done = webmon("wait", "--data", data, "--name", "A6000")
    assert (done.returncode, done.stdout) == (0, "mixed:2222:0\n")


def test_wait_gets_what_the_next_snapshot_brings(data):
    """As soon as a poll has seen that a card is free."""
    waiting = start("wait", "--data", data, "--name", "A100", "--count", "3", "--every", "0.2")
    try:
        time.sleep(0.8)
        assert waiting.poll() is None
        seen = cluster(minutes_ago=-1)
        gpus = tuple(
            card("gpu07", 3, A100, 81920) if (gpu.host, gpu.index) == ("gpu07", 3) else gpu
            for gpu in seen.gpus
        )
        left = tuple(p for p in seen.processes if p.gpu_uuid != "GPU-gpu07-3")
        snapshot.save(data, seen._replace(gpus=gpus, processes=left), keep=3)
        out, err = waiting.communicate(timeout=20)
    finally:
        waiting.kill()
        waiting.communicate()
    assert (waiting.returncode, out, err) == (0, "gpu07:1,2,3\n", "")


def test_wait_gives_up_in_time(data):
    """Exit 124, as `timeout` has it; the line says what was missing."""
    started = time.monotonic()
    done = webmon("wait", "--data", data, "-n", "A100", "--count", "3", "--timeout", "1s", "--every", "0.3")
    assert 1 <= time.monotonic() - started < 10
    assert (done.returncode, done.stdout) == (124, "")
    assert done.stderr == "webmon: waited 1 s in vain. Requested 3 GPUs, but 2 matched filters\n"


def test_wait_does_not_wait_for_what_will_never_be(data):
    """There is no such model in the cluster."""
    started = time.monotonic()
    done = webmon("wait", "--data", data, "--name", "H100")
    assert time.monotonic() - started < 10
    assert (done.returncode, done.stdout) == (1, "")
    assert "it will never do" in done.stderr


def test_wait_bears_with_a_snapshot_that_can_not_be_read(data, tmp_path):
    """Once it waits, trouble may pass; that a snapshot is old is said once."""
    snapshot.save(data, cluster(minutes_ago=30), keep=3)
    said = tmp_path / "said"
    gpus = data.resolve() / "latest" / "gpus.csv"
    with open(said, "w", encoding="utf-8") as err:
        waiting = start(
            "wait",
            "--data",
            data,
            "-n",
            "A100",
            "--count",
            "3",
            "--every",
            "0.2",
            "--timeout",
            "30",
            stderr=err,
        )
    try:
        # It has read the whole one once it has said how old that is.
        deadline = time.monotonic() + 20
        while not said.read_text().endswith("\n"):
            assert waiting.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        gpus.write_text("half a ta")
        time.sleep(0.8)
        assert waiting.poll() is None
        seen = cluster()
        gone = tuple(p for p in seen.processes if p.gpu_uuid != "GPU-gpu07-3")
        free = tuple(card("gpu07", n, A100, 81920) for n in range(1, 4))
        snapshot.save(data, seen._replace(gpus=free, processes=gone), keep=3)
        out, _ = waiting.communicate(timeout=20)
    finally:
        waiting.kill()
        waiting.communicate()
    assert (waiting.returncode, out) == (0, "gpu07:1,2,3\n")
    assert said.read_text() == "webmon: this snapshot is 30 minutes old: is webmon still run by cron?\n"
