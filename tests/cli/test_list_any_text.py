"""Names are written by other people, and terminals are not all alike: neither does any harm."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess

import pytest
from clusters_seen import EVIL, card, cluster, process
from screen import can_do_harm, on_a_screen
from servers.command import WEBMON, environment, webmon
from servers.states import gpu
from servers.states import process as process_row

from webmon.model import Host, Snapshot
from webmon.store import document, snapshot

LOCALES = (
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"LC_ALL": "POSIX"},
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1"},
    {"PYTHONIOENCODING": "ascii:strict"},
)


def evil_cluster(evils=EVIL):
    """Return a cluster in which every text is meant to do harm."""
    whole = cluster()
    gpus = tuple(
        card("gpu07", index, f"NVIDIA {evil}", 81920, state="busy", users=(evil,))
        for index, evil in enumerate(evils)
    )
    on_them = tuple(
        process("gpu07", index, 10 + index, evil, f"{evil}.py", None) for index, evil in enumerate(evils)
    )
    down = Host("gpu09", EVIL[0], EVIL[1], "down", "timeout", f"it said {EVIL[0]}{EVIL[2]}", whole.taken_at)
    return Snapshot(whole.taken_at, (whole.hosts[0], down), gpus, on_them)


@pytest.fixture
def evil_data(tmp_path):
    """The data folder of such a cluster: not webmon's own, which cleans what it saves."""
    folder = tmp_path / "data"
    snapshot.save(folder, evil_cluster([evil for evil in EVIL if "\r" not in evil]), keep=3)
    return folder


def test_names_can_not_reach_into_the_terminal(evil_data):
    """No escape sequence, no new line, no text that turns around; each card is one line."""
    seen = on_a_screen("list", "--data", evil_data, columns=200)
    assert seen.code == 0
    assert not can_do_harm(seen.text)
    assert len(seen.lines) == 1 + len(EVIL) - 1 + 1
    assert "owned" in seen.text  # the words themselves stay


def test_nor_can_those_of_this_machine(here):
    """The name of a card, or of a program, is what its driver says."""
    for index, evil in enumerate(EVIL[:4]):
        here.state["gpus"][index] = gpu(index, name=f"NVIDIA {evil}")
        here.state["processes"].append(process_row(index, os.getpid(), evil))
    here.save()
    seen = on_a_screen("list", columns=200, **here.environment | {"TERM": "xterm"})
    assert seen.code == 0
    assert not can_do_harm(seen.text)


def test_nor_can_those_of_a_site(tmp_path, serve):
    """Whoever publishes a page need not be trusted with the terminal of who reads it."""
    (tmp_path / "snapshot.json").write_text(document.to_json(evil_cluster()))
    seen = on_a_screen("list", "--from", serve(tmp_path), columns=200)
    assert seen.code == 0
    assert not can_do_harm(seen.text)
    assert "owned" in seen.text
    asked = webmon("list", "--from", serve(tmp_path), "--csv")
    assert not can_do_harm(asked.stdout)


@pytest.mark.parametrize("changes", LOCALES)
def test_a_locale_without_the_characters_is_no_reason_to_fail(tmp_path, changes):
    """They are shown as question marks; what a terminal can show is shown."""
    whole = cluster()
    gpu = card("gpu07", 0, "NVIDIA Größe 显卡", 81920, state="busy", users=("zoë",))
    down = whole.hosts[2]._replace(error="kein Schlüssel für 张伟")
    data = tmp_path / "data"
    snapshot.save(data, Snapshot(whole.taken_at, (whole.hosts[0], down), (gpu,), ()), keep=3)
    done = subprocess.run(
        [*WEBMON, "list", "--data", data], env=environment(**changes), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"gpu07" in done.stdout
    assert b"kein Schl" in done.stderr


@pytest.mark.parametrize("changes", LOCALES)
def test_data_is_utf8_in_any_locale(tmp_path, changes):
    """A program that reads it gets the names as they are."""
    whole = cluster()
    gpu = card("gpu07", 0, "NVIDIA Größe 显卡", 81920, state="busy", users=("zoë",))
    snapshot.save(tmp_path / "data", Snapshot(whole.taken_at, (whole.hosts[0],), (gpu,), ()), keep=3)
    out = {}
    for form in ("--json", "--csv"):
        out[form] = subprocess.run(
            [*WEBMON, "list", "--data", tmp_path / "data", form], env=environment(**changes),
            capture_output=True, check=True,
        ).stdout.decode("utf-8")  # fmt: skip
    assert json.loads(out["--json"])["gpus"][0]["name"] == "NVIDIA Größe 显卡"
    assert next(csv.DictReader(io.StringIO(out["--csv"])))["users"] == "zoë"


def test_whoever_reads_may_stop_reading(tmp_path):
    """`webmon list | head -1`, with more than a pipe holds: nothing is said about it."""
    whole = cluster()
    gpus = tuple(card("gpu07", index, "NVIDIA A100", 81920) for index in range(3000))
    snapshot.save(tmp_path / "data", Snapshot(whole.taken_at, whole.hosts[:1], gpus, ()), keep=3)
    for form in ("", "--json", "--csv"):
        line = f'"$0" -m webmon list --data "$1" {form} | head -1'
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {line}", WEBMON[0], tmp_path / "data"],
            capture_output=True, text=True, check=False, env=environment(),
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
        assert len(done.stdout.splitlines()) == 1


def test_a_full_disk_is_told(data):
    """Half a table must not look like a whole one."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*WEBMON, "list", "--data", data, "--json"], stdout=full, stderr=subprocess.PIPE, text=True,
            check=False, env=environment(),
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "webmon: the output can't be written: No space left on device"
