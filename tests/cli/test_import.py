"""`webmon history import`: what Web-GPU-Monitor has kept becomes a part of the history."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import pytest
from servers.settings import write_config

from webmon.store import lock, stats
from webmon.store.rollup import Rollups

# As its fetch_data.py writes it; pandas writes who is not there as -1.
LOAD_DATA = """\
,load,gpu_idx,gpu_name,gpu_uuid,hostname,username
0,97.0,0,NVIDIA A100-SXM4-80GB,GPU-11111111-aaaa,gpu01,alice
1,0.0,1,NVIDIA A100-SXM4-80GB,GPU-22222222-bbbb,gpu01,-1
2,55.0,0,NVIDIA GeForce RTX 3090,GPU-33333333-cccc,gpu02,"alice, bob"
"""


@pytest.fixture
def config(tmp_path):
    """A configuration whose data folder is not there yet."""
    return write_config(tmp_path, {"hosts": ["self"]})


@pytest.fixture
def load_data(tmp_path):
    """The file, as of an hour ago."""
    return written(tmp_path / "load_data.csv", LOAD_DATA)


def written(path, text, age=timedelta(hours=1)):
    path.write_text(text)
    time = (datetime.now(UTC) - age).timestamp()
    os.utime(path, (time, time))
    return path


def samples(say, config, host):
    return json.loads(say("history", host, "--json", "-c", config).out)["samples"]


def test_a_file_becomes_a_poll(say, config, load_data):
    """As of the file's time; what it does not tell is not known; a second time adds nothing."""
    said = say("history", "import", load_data, "-c", config)
    assert said == (0, "", "webmon: 3 of 3 samples were new\n")
    first, second = samples(say, config, "gpu01")
    assert first == first | {
        "index": 0, "uuid": "GPU-11111111-aaaa", "name": "NVIDIA A100-SXM4-80GB", "state": "busy",
        "utilization_pct": 97, "memory_used_mib": None, "power_w": None, "users": {"alice": None},
    }  # fmt: skip
    assert (second["state"], second["users"]) == ("free", {})
    assert datetime.fromisoformat(first["time"]).timestamp() == int(load_data.stat().st_mtime)
    assert list(samples(say, config, "gpu02")[0]["users"]) == ["alice", "bob"]
    assert say("history", "import", load_data, "-c", config).err == "webmon: 0 of 3 samples were new\n"
    assert say("history", "import", load_data, "-c", config, "-q") == (0, "", "")
    assert len(samples(say, config, "gpu01")) == 2


def test_it_is_summed_up_with_the_rest(say, config, load_data):
    """`users` and `stats` count it; a card of two users is split; what they have now is not known."""
    say("history", "import", load_data, "-c", config)
    said = say("users", "--json", "-c", config)
    assert "the last poll was 1 hour ago" in said.err
    users = {user["user"]: user for user in json.loads(said.out)["users"]}
    assert set(users) == {"alice", "bob"}
    assert users["alice"]["now"] is None
    hours = {user: one["days"]["1"]["gpu_hours"] for user, one in users.items()}
    assert hours == {"alice": pytest.approx(1.5 / 12, rel=0.01), "bob": pytest.approx(0.5 / 12, rel=0.01)}


def test_the_time_may_be_given(say, config, load_data, tmp_path):
    """With --time, in UTC; a column `time` of the file comes first."""
    day = datetime.now(UTC).date() - timedelta(days=2)
    assert say("history", "import", load_data, "--time", f"{day}T08:05", "-c", config).code == 0
    timed = written(tmp_path / "timed.csv", f"time,load,gpu_idx,hostname\n{day}T09:00:00Z,3,0,gpu03\n")
    assert say("history", "import", timed, "--time", f"{day}T08:05", "-c", config).code == 0
    assert {sample["time"] for sample in samples(say, config, "gpu01")} == {f"{day}T08:05:00Z"}
    assert [sample["time"] for sample in samples(say, config, "gpu03")] == [f"{day}T09:00:00Z"]


def test_several_files_at_once(say, config, load_data, tmp_path):
    """All of them, or none if one is another kind."""
    later = written(tmp_path / "later.csv", LOAD_DATA, timedelta(minutes=30))
    wrong = written(tmp_path / "wrong.csv", "a,b\n1,2\n")
    said = say("history", "import", load_data, later, wrong, "-c", config)
    assert (said.code, (tmp_path / "data").exists()) == (2, False)
    assert say("history", "import", load_data, later, "-c", config).err == "webmon: 6 of 6 samples were new\n"


@pytest.mark.parametrize(
    ("content", "code", "told"),
    [
        ("a,b\n1,2\n", 2, "{} has no column hostname and no column gpu_idx. It is to be a load_data.csv, "),
        ("", 2, "{} has no column hostname and no column gpu_idx. "),
        ("\0\1\2", 2, "{} has no column hostname"),
        ("a" * 200_000, 2, "{}:1: field larger than field limit"),
        (",load,gpu_idx,hostname\n0,1,x,gpu01\n", 2, "{}:2: 'x' is no number of a GPU. Mend the line"),
        ("time,gpu_idx,hostname\nlately,1,a\n", 2, "{}:2: 'lately' is no time: write 2026-11-18T08:05:00Z"),
        ("time,gpu_idx,hostname\n0001-01-01T00:00+14,1,a\n", 2, "{}:2: '0001-01-01T00:00+14' is no time"),
        (",load,gpu_idx,hostname\n", 1, "there are no samples to import: only headers"),
        (None, 2, "{} can't be read: No such file or directory. Check its name, owner and mode"),
    ],
)  # fmt: skip
def test_a_file_that_is_another_kind(say, config, tmp_path, content, code, told):
    """One line, with the file and the line; nothing is added."""
    path = tmp_path / "load_data.csv"
    if content is not None:
        path.write_text(content)
    said = say("history", "import", path, "-c", config)
    assert (said.code, said.out) == (code, "")
    assert said.err.startswith(f"webmon: {told.format(path)}")
    assert not (tmp_path / "data").exists()


def test_not_while_a_fetch_is_at_work(say, config, load_data, tmp_path):
    """Exit 1, and nothing is added."""
    with lock.hold(tmp_path / "data"):
        said = say("history", "import", load_data, "-c", config)
    assert said.code == 1
    assert said.err == (
        f"webmon: a fetch is at work (process {os.getpid()}); nothing imported: try again when it is done\n"
    )
    assert not (tmp_path / "data" / "history").exists()


def test_users_are_masked_as_those_of_a_poll_are(say, tmp_path, load_data):
    """`[privacy] users = "mask"` holds for what is imported; a configuration has to say so."""
    config = write_config(tmp_path, {"hosts": ["self"]}, privacy={"users": "mask"})
    assert say("history", "import", load_data, "-c", config).code == 0
    stored = "".join(path.read_text() for path in (tmp_path / "data" / "history").iterdir())
    assert "gpu01" in stored
    assert "alice" not in stored
    (name,) = samples(say, config, "gpu01")[0]["users"]
    assert name in samples(say, config, "gpu02")[0]["users"]
    said = say("history", "import", load_data, "--data", tmp_path / "data", HOME=str(tmp_path))
    assert (said.code, "no configuration file" in said.err) == (2, True)


def test_what_is_older_than_keep_days(say, config, tmp_path):
    """It is said that the polls themselves will not stay, and their sums will."""
    old = written(tmp_path / "load_data.csv", LOAD_DATA, timedelta(days=120))
    said = say("history", "import", old, "-c", config)
    assert said.code == 0
    assert said.err.splitlines()[1] == (
        "webmon: some are older than [data] keep_days = 90: their days are summed up, and the samples go "
        "with the next fetch"
    )
    assert any((tmp_path / "data" / "rollups").iterdir())


def test_hours_that_are_summed_up_already_get_it_too(say, config, tmp_path):
    """Of today as well: what a render has summed up is not all that there was."""
    for age, name in ((timedelta(hours=3), "early"), (timedelta(0), "late")):
        say("history", "import", written(tmp_path / f"{name}.csv", LOAD_DATA, age), "-c", config)
    data = tmp_path / "data"
    rollups = Rollups(data, stats.last_time(data), save=True)
    rollups.gpus(rollups.today)
    more = written(tmp_path / "more.csv", LOAD_DATA.replace("gpu0", "gpu1"), timedelta(hours=3))
    assert say("history", "import", more, "-c", config).code == 0
    hosts = json.loads(say("stats", "--days", "1", "--json", "-c", config).out)["rows"]
    assert {row["host"] for row in hosts} == {"gpu01", "gpu02", "gpu11", "gpu12"}


def test_a_day_of_which_only_the_sums_are_left_is_left_alone(say, config, tmp_path):
    """Its samples are gone, so that it can't be summed up with more; nothing of it is lost."""
    old = written(tmp_path / "old.csv", LOAD_DATA, timedelta(days=120))
    assert say("history", "import", old, "-c", config).code == 0
    data = tmp_path / "data"
    (day,) = (data / "history").iterdir()
    day.unlink()
    sums = {path: path.read_bytes() for path in (data / "rollups").iterdir()}
    more = written(tmp_path / "more.csv", LOAD_DATA.replace("gpu0", "gpu1"), timedelta(days=120))
    said = say("history", "import", more, "-c", config)
    assert (said.code, said.err.splitlines()[0]) == (0, "webmon: 0 of 3 samples were new")
    assert {path: path.read_bytes() for path in (data / "rollups").iterdir()} == sums


def test_no_time_that_is_yet_to_come(say, config, load_data):
    """A wrong year would be the newest poll for a year."""
    said = say("history", "import", load_data, "--time", "2999-01-01", "-c", config)
    assert (said.code, said.out) == (2, "")
    assert "2999-01-01 00:00 UTC is in the future" in said.err
