"""`load_data.csv` of Web-GPU-Monitor, as pandas writes it, and its variants."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from webmon import pipeline
from webmon.errors import DataError
from webmon.store import history, load_data

TIME = datetime(2026, 11, 3, 8, 5, tzinfo=UTC)
HEADER = ",load,gpu_idx,gpu_name,gpu_uuid,hostname,username\n"
REAL = HEADER + (
    "0,97,0, NVIDIA A100-SXM4-80GB, GPU-1234,gpu01,alice\n"
    "1,0,1, NVIDIA A100-SXM4-80GB, GPU-5678,gpu01,\n"
    '2,4,0,"NVIDIA H100, 80 GB",GPU-9,gpu02,bob\n'
)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "load_data.csv"

    def write(text):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        os.utime(path, (TIME.timestamp() + 0.7, TIME.timestamp() + 0.7))
        return path

    return write


def read(path, time=None):
    return load_data.read(path, time)


def test_what_pandas_wrote(file):
    """An index without a name, spaces before names, no user on a free card; the time is the file's."""
    first, second, third = read(file(REAL))
    assert first == history.Sample(
        TIME, "gpu01", 0, "GPU-1234", "NVIDIA A100-SXM4-80GB", "busy", 97, users=("alice=",)
    )
    assert (second.state, second.index, second.users) == ("free", 1, ())
    assert (third.name, third.users) == ("NVIDIA H100  80 GB", ("bob=",))
    assert {one.time for one in read(file(REAL), TIME.replace(hour=9))} == {TIME.replace(hour=9)}


@pytest.mark.parametrize(
    ("cell", "users"),
    [
        ("alice", ["alice"]),
        ('"alice, bob"', ["alice", "bob"]),
        ("\"['bob', 'alice']\"", ["alice", "bob"]),
        ("bob;alice;bob", ["alice", "bob"]),
        ("-1", []),
        ("nan", []),
        ("[]", []),
        ("", []),
        ("a\x1bb", ["a�b"]),
    ],
)
def test_one_user_several_or_none(file, cell, users):
    """Lists as Python writes them too."""
    (sample,) = read(file(f"{HEADER}0,50,0,A100,GPU-1,gpu01,{cell}\n"))
    assert list(sample.users) == [f"{user}=" for user in users]


@pytest.mark.parametrize(
    ("load", "used", "user", "state"),
    [
        ("4", "0 MiB", "", "free"),
        ("5", "0 MiB", "", "busy"),
        ("0", "1600 MiB", "", "free"),
        ("0", "1700 MiB", "", "busy"),
        ("0", "", "alice", "busy"),
        ("", "", "", "unknown"),
        ("[N/A]", "", "", "unknown"),
        ("-1", "", "", "unknown"),
        ("999999999", "", "", "unknown"),
        ("nan", "", "alice", "busy"),
    ],
)
def test_what_was_free_there(file, load, used, user, state):
    """Less than 5 % load, no more than 2 % of the memory, and nobody on it."""
    header = "load,gpu_idx,hostname,username,memory.used [MiB],memory.total [MiB]\n"
    (sample,) = read(file(f"{header}{load},0,gpu01,{user},{used},81920 MiB\n"))
    assert sample.state == state
    assert sample.memory_total_mib == 81920
    assert sample.utilization_pct is None or 0 <= sample.utilization_pct <= 100


def test_columns_in_any_order_with_a_time_power_and_temperature(file):
    """By the names of nvidia-smi; a BOM and empty lines don't matter."""
    text = (
        "\ufefftimestamp,hostname,index,power.draw [W],temperature.gpu,utilization.gpu [%],user\r\n"
        "2026-11-01T10:00:00+02:00,gpu01,7,389.5 W,71,97 %,alice\r\n\r\n"
        "2026-11-01 08:05:00Z,gpu01,7,1e308,71,97 %,alice\r\n"
    )
    first, second = read(file(text))
    assert (first.time, first.index) == (TIME.replace(day=1, minute=0), 7)
    assert (first.power_w, first.temperature_c, first.utilization_pct) == (389.5, 71, 97)
    assert (second.time, second.power_w) == (TIME.replace(day=1), None)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no column hostname and no column gpu_idx"),
        ("load,gpu_idx\n", "no column hostname"),
        (HEADER + "0,1,x,A100,GPU-1,gpu01,a\n", ":2: 'x' is no number"),
        (REAL + "3,1,-1,A100,GPU-1,gpu01,a\n", ":5: "),
        (REAL + "3,1,5000000,A100,GPU-1,gpu01,a\n", ":5: "),
        (REAL + "3,1,1,A100,GPU-1,,a\n", ":5: "),
        ("time," + HEADER + "yesterday,0,1,0,A,G,gpu01,a\n", ":2: 'yesterday' is no time"),
        ("time," + HEADER + "0001-01-01T00:00:00+14:00,0,1,0,A,G,gpu01,a\n", ":2: "),
        (HEADER + '0,1,0,"A100,GPU-1,gpu01,a\n' + "x" * 200_000 + "\n", "load_data.csv"),
    ],
)
def test_what_is_wrong_is_said_with_the_line(file, text, said):
    """And what to do."""
    path = file(text)
    with pytest.raises(DataError) as error:
        read(path)
    assert error.value.problem.startswith(str(path))
    assert said in error.value.problem
    assert error.value.remedy


def test_a_file_that_is_not_there(tmp_path):
    """Is named."""
    for path in (tmp_path / "nothing.csv", tmp_path):
        with pytest.raises(DataError, match=path.name):
            read(path)


def config(users="show"):
    return SimpleNamespace(privacy=SimpleNamespace(command="name", users=users))


def test_importing_twice_adds_nothing(file, tmp_path):
    """The samples are in the day that they are of, and it is summed up."""
    samples = read(file(REAL))
    data = tmp_path / "data"
    assert [pipeline.add_to_history(config(), data, samples) for _ in range(2)] == [3, 0]
    assert len(history.read(data, {"gpu01", "gpu02"}, TIME.date())) == 3
    assert (data / "rollups" / "2026-11-03.csv").exists()


def test_masked_users_stay_masked(file, tmp_path):
    """As those of the polls are, with the same key."""
    data = tmp_path / "data"
    pipeline.add_to_history(config("mask"), data, read(file(REAL)))
    users = [user for one in history.read(data, {"gpu01", "gpu02"}, TIME.date()) for user in one.users]
    assert len(set(users)) == 2
    assert all(user.startswith("user-") and user.endswith("=") for user in users)
    everything = b"".join(path.read_bytes() for path in data.rglob("*.csv"))
    assert b"alice" not in everything
    assert b"bob" not in everything
