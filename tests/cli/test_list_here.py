"""`webmon list`, and `webmon` alone: the GPUs of this machine and who is on them."""

from __future__ import annotations

import csv
import getpass
import io
import json
import os
import re

import pytest
from servers.states import HANGS, MODEL, NO_DRIVER, gpu, process, uuid

from webmon.model import Gpu


def rows(text):
    """Return the rows of a table: status by id."""
    return dict(re.findall(r"^\S+ +(\d+)  (\[.\])", text, re.MULTILINE))


def test_free_cards_and_those_in_use_and_whose(here):
    """`[ ]` is free; `[~]` is in use, with user, age, pid and program."""
    here.state["processes"] = [process(1, os.getpid())]
    here.state["gpus"][1] = gpu(1, utilization__gpu="97", memory__used="20000", clocks__sm="1410")
    here.save()
    done = here.webmon("list")
    assert (done.returncode, done.stderr) == (0, "")
    header, *lines = done.stdout.splitlines()
    assert re.split(r"  +", header) == [
        "host", "id", "status", "type", "util.", "mem. used/total", "temp.", "MHz", "power", "users", "since",
        "pids", "cmd",
    ]  # fmt: skip
    assert rows(done.stdout) == {"0": "[ ]", "1": "[~]", "2": "[ ]", "3": "[ ]"}
    for told in (
        os.uname().nodename,
        "RTX A6000",
        "97 %",
        "20000 /  49140 MiB",
        "31 C",
        "1410",
        "22 / 300 W",
    ):
        assert told in lines[1]
    assert getpass.getuser() in lines[1]
    assert str(os.getpid()) in lines[1]
    assert re.search(r"(s|minutes?|hours?|days?) ago", lines[1])


def test_webmon_alone_is_the_short_form(here):
    """Options of `list` may follow."""
    assert here.webmon().stdout == here.webmon("list").stdout != ""
    calls = (here.webmon("--csv"), here.webmon("list", "--csv"))
    short, long = (re.sub(r"T[0-9:]+Z", "", done.stdout) for done in calls)
    assert short == long != ""


def test_a_process_whose_owner_is_not_known_is_marked(here):
    """`[!]`, with a question mark for the user."""
    here.state["processes"] = [process(2, 2**22 - 7)]  # a pid that is gone, or in another namespace
    here.save()
    done = here.webmon("list")
    assert rows(done.stdout)["2"] == "[!]"
    assert " ? " in done.stdout.splitlines()[3]


def test_a_card_that_is_lost_leaves_the_others_in_the_list(here):
    """`[!]` for it, what is wrong on standard error, and exit 0: there is something to see."""
    lost = "Unable to determine the device handle for GPU2: 0000:41:00.0: GPU is lost.  Reboot the system.\n"
    del here.state["gpus"][2]
    here.state["complaint"] = {"text": lost, "exit": 15}
    here.save()
    done = here.webmon("list")
    assert done.returncode == 0
    assert rows(done.stdout) == {"0": "[ ]", "1": "[ ]", "2": "[!]", "3": "[ ]"}
    assert "1 of 4 GPUs" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_ignored_processes_use_nothing(here, tmp_path):
    """A card on which only an X server runs is free, and nobody is named for it."""
    here.state["processes"] = [process(0, os.getpid(), "/usr/lib/xorg/Xorg")]
    here.save()
    done = here.webmon("list")
    assert rows(done.stdout)["0"] == "[ ]"
    assert str(os.getpid()) not in done.stdout


def test_a_claimed_card_says_by_whom(here):
    """It is in use from the moment that somebody has picked it."""
    claimed = here.start("select", "--devices", "1", "--", "sh", "-c", "echo ready; exec sleep 60")
    try:
        assert claimed.stdout.readline() == "ready\n"
        done = here.webmon("list")
    finally:
        claimed.kill()
        claimed.communicate()
    assert rows(done.stdout) == {"0": "[ ]", "1": "[~]", "2": "[ ]", "3": "[ ]"}
    assert "claimed, sleep" in done.stdout.splitlines()[2]
    assert str(claimed.pid) in done.stdout


def test_json_is_the_snapshot_of_this_machine(here):
    """In the form of the site's snapshot.json."""
    document = json.loads(here.webmon("list", "--json").stdout)
    assert document["schema"] == 1
    assert [host["host"] for host in document["hosts"]] == [os.uname().nodename]
    assert [row["uuid"] for row in document["gpus"]] == [uuid(index) for index in range(4)]
    assert document["gpus"][0]["memory_used_mib"] == 4
    assert document["gpus"][0]["mig_mode"] is None


def test_csv_has_the_columns_of_gpus_csv(here):
    """One row a card; what is not known is empty."""
    got = list(csv.DictReader(io.StringIO(here.webmon("list", "--csv").stdout)))
    assert list(got[0]) == list(Gpu._fields)
    assert [(row["index"], row["name"], row["state"], row["mig_mode"]) for row in got] == [
        (str(index), MODEL, "free", "") for index in range(4)
    ]


@pytest.mark.parametrize("command", [["list"], ["list", "--json"], ["available"], ["select"], ["wait"], []])
@pytest.mark.parametrize(
    ("state", "problem", "remedy"),
    [
        (NO_DRIVER, "couldn't communicate with the NVIDIA driver", "nvidia"),
        ({"gpus": []}, "nvidia-smi lists no GPU", "For the GPUs of the other machines, say --cluster"),
    ],
)
def test_a_machine_without_gpus_says_so_in_one_line(here, command, state, problem, remedy):
    """Exit 1, nothing on standard output, the remedy behind it."""
    here.state = state
    here.save()
    done = here.webmon(*command)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("webmon: ")
    assert problem in line
    assert remedy in line


@pytest.mark.parametrize("command", ["list", "available", "select", "wait"])
def test_where_there_is_no_nvidia_smi_the_cluster_is_offered(here, command):
    """Most people who say `webmon list` on such a machine mean the cluster."""
    here.program("nvidia-smi", "exit 127")
    done = here.webmon(command)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("webmon: nvidia-smi was not found. ")
    assert line.endswith("For the GPUs of the other machines, say --cluster")


def test_an_nvidia_smi_that_hangs_is_given_up(here, tmp_path):
    """After `timeout` of the configuration."""
    here.state = HANGS
    here.save()
    (tmp_path / "config.ini").write_text("[common]\nhosts = self\ntimeout = 1\n")
    done = here.webmon("list", timeout=20)
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1


def test_what_does_not_match_is_left_out(here):
    """--filter takes words; all have to be there. Exit 1 if nothing is left."""
    here.state["gpus"][1] = gpu(1, name="NVIDIA H100 PCIe")
    here.save()
    assert list(rows(here.webmon("list", "--filter", "h100 FREE").stdout)) == ["1"]
    document = json.loads(here.webmon("list", "--filter", "h100", "--json").stdout)
    assert [row["index"] for row in document["gpus"]] == [1]
    none = here.webmon("list", "--filter", "h100 busy")
    assert (none.returncode, none.stdout, none.stderr) == (1, "", "webmon: no GPU matches\n")
