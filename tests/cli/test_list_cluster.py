"""`webmon list --cluster`: the last snapshot, from the data folder that is configured or named."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from clusters_seen import cluster
from servers.command import webmon
from servers.settings import write_config

from webmon.store import snapshot

DOWN = "webmon: gpu09 is down: no answer within 20 s\n"


def listed(text):
    """Return the GPUs of a table as `host:index`, with their status."""
    return {
        f"{host}:{index}": status for host, index, status in re.findall(r"(?m)^(\S+) +(\d+)  (\[.\])", text)
    }


def in_order(text):
    return list(listed(text))


def test_every_gpu_with_its_status(data):
    """Of hosts that are up, and of those that are down as they were; these are told of on standard error."""
    done = webmon("list", "--data", data)
    assert done.returncode == 0
    assert listed(done.stdout) == {
        "gpu07:0": "[~]", "gpu07:1": "[ ]", "gpu07:2": "[ ]", "gpu07:3": "[~]", "gpu08:0": "[~]",
        "gpu08:1": "[ ]", "gpu09:0": "[!]", "mixed:2222:0": "[ ]", "mixed:2222:1": "[!]",
    }  # fmt: skip
    assert done.stderr == DOWN
    first = done.stdout.splitlines()[1]
    assert re.search(r"  alice,bob +2 days ago +102,101 +eval\.py, train\.py$", first)


def test_quiet_leaves_out_what_is_no_error(data):
    """Also that a host is down, and that the snapshot is old."""
    snapshot.save(data, cluster(minutes_ago=100), keep=3)
    assert webmon("list", "--data", data, "-q").stderr == ""


@pytest.mark.parametrize(
    ("patterns", "hosts"),
    [
        (["gpu07"], {"gpu07"}),
        (["gpu0[78]"], {"gpu07", "gpu08"}),
        (["gpu*", "mixed:2222"], {"gpu07", "gpu08", "gpu09", "mixed:2222"}),
        (["mixed:*"], {"mixed:2222"}),
        (["the new one"], {"gpu07"}),
        (["gpu08", "gpu0?", "gpu08"], {"gpu07", "gpu08", "gpu09"}),
    ],
)
def test_hosts_can_be_named(data, patterns, hosts):
    """By name, by pattern, by label; naming one means the cluster."""
    done = webmon("list", *patterns, "--data", data)
    assert done.returncode == 0
    assert {name.rpartition(":")[0] for name in listed(done.stdout)} == hosts


def test_a_host_that_is_not_listed_is_not_told_of(data):
    """Who asks for gpu07 need not know that gpu09 is down."""
    assert webmon("list", "gpu07", "--data", data).stderr == ""


def test_a_host_that_is_not_there_is_an_error(data):
    """With the one that was meant; nothing on standard output."""
    done = webmon("list", "gpu7", "--data", data)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "webmon: there is no host 'gpu7' in the snapshot. Did you mean 'gpu07'?\n"


def test_a_host_without_gpus_has_nothing_to_list(data):
    """Exit 1, as for a host that is down and was never seen."""
    done = webmon("list", "bare", "--data", data)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "webmon: the snapshot has no GPU of these hosts\n"


def test_a_snapshot_without_gpus_has_nothing_to_list(tmp_path):
    """Exit 1 with a line that says so; JSON and CSV are whole without one."""
    snapshot.save(tmp_path / "data", cluster()._replace(gpus=(), processes=()), keep=3)
    done = webmon("list", "--data", tmp_path / "data", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "webmon: the snapshot has no GPU\n")
    done = webmon("list", "--data", tmp_path / "data", "-q", "--json")
    assert (done.returncode, json.loads(done.stdout)["gpus"], done.stderr) == (1, [], "")
    done = webmon("list", "--data", tmp_path / "data", "-q", "--csv")
    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (1, 1, "")


@pytest.mark.parametrize(
    ("order", "first", "last"),
    [
        ("index", "gpu07:0", "mixed:2222:1"),
        ("free-memory", "gpu07:1", "gpu09:0"),
        ("power", "gpu07:0", "gpu09:0"),
        ("name", "gpu07:0", "mixed:2222:0"),
        ("state", "gpu07:1", "gpu09:0"),
    ],
)
def test_each_order(data, order, first, last):
    """The best first; of equals, the one that stands first in the snapshot."""
    got = in_order(webmon("list", "--data", data, "--sort", order).stdout)
    assert len(got) == 9
    assert (got[0], got[-1]) == (first, last)


def test_at_random(data):
    """Some of twelve lists differ."""
    assert (
        len({tuple(in_order(webmon("list", "--data", data, "--sort", "random").stdout)) for _ in range(12)})
        > 1
    )


@pytest.mark.parametrize(
    ("words", "hits"),
    [
        ("free a100", {"gpu07:1", "gpu07:2"}),
        ("ALICE", {"gpu07:0"}),
        ("vision 3090", {"gpu08:0", "gpu08:1"}),
        ("jupyter", {"gpu07:3"}),
        ("held", {"gpu07:3"}),
        ("the new one", {"gpu07:0", "gpu07:1", "gpu07:2", "gpu07:3"}),
        (
            "  ",
            {f"gpu07:{n}" for n in range(4)}
            | {"gpu08:0", "gpu08:1", "gpu09:0", "mixed:2222:0", "mixed:2222:1"},
        ),
    ],
)
def test_words_narrow_the_list(data, words, hits):
    """They are looked for in host, label, group, model, state, users and programs; all have to be there."""
    assert set(listed(webmon("list", "--data", data, "--filter", words).stdout)) == hits


def test_nothing_that_matches_is_exit_1(data):
    """With a line that says so, and not a header alone."""
    done = webmon("list", "--data", data, "--filter", "h200", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "webmon: no GPU matches\n")


def test_json_has_everything_that_is_listed(data):
    """All of the snapshot, in the order of the list, with the hosts that are down and those without a GPU."""
    document = json.loads(webmon("list", "--data", data, "--json", "--sort", "power").stdout)
    whole = cluster()
    assert {host["host"]: host["status"] for host in document["hosts"]} == {
        host.host: host.status for host in whole.hosts
    }
    assert (len(document["gpus"]), len(document["processes"])) == (len(whole.gpus), len(whole.processes))
    limits = [gpu["power_limit_w"] or 0 for gpu in document["gpus"]]
    assert limits == sorted(limits, reverse=True)


def test_json_has_only_what_is_listed(data):
    """No host and no process of a GPU that was left out."""
    document = json.loads(webmon("list", "--data", data, "--json", "--filter", "alice").stdout)
    assert [host["host"] for host in document["hosts"]] == ["gpu07"]
    assert [gpu["index"] for gpu in document["gpus"]] == [0]
    assert [process["user"] for process in document["processes"]] == ["bob", "alice"]
    none = webmon("list", "--data", data, "--json", "--filter", "nobody")
    assert none.returncode == 1
    assert json.loads(none.stdout)["gpus"] == []


def test_csv_is_that_of_the_snapshot(data):
    """Cell for cell, for as much as is listed."""
    printed = webmon("list", "--data", data, "--csv").stdout
    assert printed == (data / "latest" / "gpus.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(webmon("list", "gpu08", "--data", data, "--csv").stdout)))
    assert [row["uuid"] for row in rows] == ["GPU-gpu08-0", "GPU-gpu08-1"]


def test_an_old_snapshot_is_told(tmp_path):
    """A poll comes every few minutes: after a quarter of an hour something is wrong."""
    snapshot.save(tmp_path, cluster(minutes_ago=14), keep=3)
    assert webmon("list", "--data", tmp_path).stderr == DOWN
    snapshot.save(tmp_path, cluster(minutes_ago=200), keep=3)
    done = webmon("list", "--data", tmp_path)
    assert done.returncode == 0
    assert done.stderr == f"webmon: this snapshot is 3 hours old: is webmon still run by cron?\n{DOWN}"


def test_the_configuration_says_where_the_data_is(tmp_path):
    """-c, $WEBMON_CONFIG, ./config.ini: the folder is relative to the file."""
    lab = tmp_path / "lab"
    lab.mkdir()
    config = write_config(lab, {"hosts": ["gpu07"]}, data={"dir": "here"})
    snapshot.save(lab / "here", cluster(), keep=3)
    expected = webmon("list", "--data", lab / "here").stdout
    assert listed(expected)
    assert webmon("list", "--cluster", "-c", config).stdout == expected
    assert webmon("list", "--cluster", env={"WEBMON_CONFIG": str(config)}).stdout == expected
    assert webmon("list", "--cluster", cwd=lab).stdout == expected
    assert webmon("list", "gpu*", "mixed:2222", cwd=lab).stdout == expected


def test_the_limits_of_the_configuration_are_in_force(tmp_path, data):
    """`[free] ignore`: its processes are not listed as users of a GPU."""
    write_config(tmp_path, {"hosts": ["gpu07"]}, free={"ignore": ["python"]})
    done = webmon("list", "--cluster", cwd=tmp_path)
    assert "eval.py" not in done.stdout


def test_the_configuration_of_another_program_is_passed_over(tmp_path):
    """Many folders have a config.ini."""
    (tmp_path / "config.ini").write_text("[DEFAULT]\nhosts == [[[\n[common]\nname: x\n")
    done = webmon("list", "--cluster", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "webmon: no snapshot of the cluster: there is neither a configuration nor a site to read it from. "
        "Say --from URL, with the address of webmon's page, or set $WEBMON_SITE to it\n"
    )


@pytest.mark.parametrize("command", [["list"], ["list", "--cluster"], ["available"], ["select", "--cluster"]])
def test_a_mistake_in_ours_is_an_error(tmp_path, command):
    """With its line, also for the commands that look at this machine: they use its limits."""
    (tmp_path / "config.ini").write_text("[common]\nhosts = a\n[free]\nmax_memory = 5\n")
    done = webmon(*command, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "webmon: config.ini:4: [free] has no key 'max_memory'. Did you mean 'max_memory_pct'?\n"
    )


def test_a_configuration_that_is_named_has_to_be_there(tmp_path):
    """Else another one would be in force in silence."""
    for done in (
        webmon("list", "-c", tmp_path / "no.ini"),
        webmon("list", env={"WEBMON_CONFIG": str(tmp_path / "no.ini")}),
    ):
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{tmp_path}/no.ini: there is no such file" in done.stderr


@pytest.mark.parametrize("command", ["list", "available", "select", "wait"])
def test_a_data_folder_that_is_damaged_is_one_line(data, command):
    """A table that is missing, a row that was cut: exit 2, clean standard output."""
    gpus = data.resolve() / "latest" / "gpus.csv"
    text = gpus.read_text()
    gpus.write_text(text[: len(text) // 2])
    for problem in ("gpus.csv:", "gpus.csv is missing"):
        done = webmon(command, "--data", data)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert problem in line
        assert "Run `webmon fetch`" in line
        gpus.unlink(missing_ok=True)


def test_a_folder_without_a_snapshot_is_one_line(tmp_path):
    """It says what to run."""
    done = webmon("list", "--data", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"webmon: {tmp_path} has no snapshot yet. Run `webmon fetch` first\n"


def test_options_that_contradict_each_other_are_refused(data):
    """--from and --data; --json and --csv."""
    for pair in (["--from", "http://localhost/", "--data", str(data)], ["--json", "--csv"]):
        done = webmon("list", *pair)
        assert (done.returncode, done.stdout) == (2, "")
        assert "not allowed with argument" in done.stderr
