"""The newest samples of a host: whole from the kept snapshots, older ones from the history."""

from __future__ import annotations

import json
import shutil

import pytest
from polls import are_whole, at, newest, numbers, poll, save

from webmon.errors import DataError
from webmon.publish import past
from webmon.publish.states import entry, joined
from webmon.store import history, snapshot


@pytest.fixture
def data(tmp_path):
    """Twelve polls, the newest four of which are kept as snapshots."""
    save(tmp_path, *map(poll, range(12)), keep=4)
    return tmp_path


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 11, 12])
def test_there_are_exactly_so_many(data, count):
    """The newest ones, the oldest first, without a gap where the snapshots end and the history begins."""
    samples = newest(data, count)["gpu01"]
    assert numbers(samples) == list(range(12))[-count:]
    assert are_whole(samples) == ([False] * 8 + [True] * 4)[-count:]
    assert [one["timestamp"] for one in samples] == sorted(one["timestamp"] for one in samples)


@pytest.mark.parametrize("count", [13, 5000])
def test_there_may_be_fewer(data, count):
    """All that there is."""
    assert numbers(newest(data, count)["gpu01"]) == list(range(12))


def test_a_sample_of_the_history_says_what_is_known(data):
    """The processes are not, as with pids, so they are null and not none; all else is as it was."""
    old, new = (newest(data, count)["gpu01"][0] for count in (5, 4))
    assert (old["timestamp"], new["timestamp"]) == (20261118083500, 20261118084000)
    card = new["gpu_data"]["gpu:0"]
    assert card["processes"] == [{"name": "train.py", "pid": 4711, "used_memory": 77000, "user": "alice"}]
    assert old["gpu_data"]["gpu:0"] == {
        **card, "gpu_volatile": 7, "processes": None, "timestamp": "2026/11/18 08:35:00.000"
    }  # fmt: skip


def test_it_goes_back_over_midnight(tmp_path):
    """Into the days that are compressed."""
    save(tmp_path, *(poll(number, time=at(number * 100)) for number in range(9)), keep=2)
    assert len(history.days(tmp_path)) == 4
    for count in (3, 5, 8):
        assert numbers(newest(tmp_path, count)["gpu01"]) == list(range(9))[-count:]


@pytest.mark.parametrize("damage", ["cut", "emptied", "garbage", "missing"])
def test_a_snapshot_that_can_not_be_read_leaves_no_gap(data, damage):
    """It is found in the history, and what was before it, too."""
    table = snapshot.kept(data)[2] / "gpus.csv"
    content = {"cut": table.read_bytes()[:-20], "emptied": b"", "garbage": b"\xff\x00"}
    table.unlink()
    if damage in content:
        table.write_bytes(content[damage])
    # The host that is cut off is the last one in the file.
    for count in (1, 2, 3, 6):
        samples = newest(data, count, "gpu02")["gpu02"]
        assert numbers(samples) == [6, 7, 8, 9, 10, 11][-count:]
        assert are_whole(samples) == ([False] * 5 + [True])[-count:]


def test_a_snapshot_that_has_gone_is_in_the_history(data):
    """Somebody may have made room."""
    shutil.rmtree(snapshot.kept(data)[2])
    samples = newest(data, 6)["gpu01"]
    assert numbers(samples) == [6, 7, 8, 9, 10, 11]
    assert are_whole(samples) == [False, False, True, True, False, True]


def test_without_snapshots_there_is_the_history(data):
    """And without a history there are the snapshots, and without both there is nothing."""
    shutil.copytree(data, data / "copy")
    shutil.rmtree(data / "copy" / "snapshots")
    assert numbers(newest(data / "copy", 3)["gpu01"]) == [9, 10, 11]
    shutil.rmtree(data / "history")
    assert numbers(newest(data, 30)["gpu01"]) == [8, 9, 10, 11]
    assert newest(data / "nothing", 3) == {"gpu01": []}


def test_a_host_that_was_down_had_no_cards_to_read(tmp_path):
    """Its polls count, with nothing in them, whether from the history or from the snapshots."""
    save(tmp_path, *(poll(number, down=["gpu01"] if number in (1, 4) else ()) for number in range(6)), keep=3)
    found = newest(tmp_path, 6, "gpu01", "gpu02")
    assert numbers(found["gpu01"]) == [0, None, 2, 3, None, 5]
    assert numbers(found["gpu02"]) == [0, 1, 2, 3, 4, 5]


def test_a_card_without_memory_of_its_own_is_no_host_that_is_down(tmp_path):
    """Its state may be unknown, and it has a temperature."""
    polls = [
        one._replace(gpus=tuple(gpu._replace(state="unknown", memory_total_mib=None) for gpu in one.gpus))
        for one in map(poll, range(4))
    ]
    save(tmp_path, *polls, keep=2)
    assert numbers(newest(tmp_path, 4)["gpu01"]) == [0, 1, 2, 3]


def test_a_host_that_is_new_has_what_there_is_of_it(tmp_path):
    """The others have all they should have."""
    save(tmp_path, *(poll(number, hosts=["gpu01"]) for number in range(4)), keep=3)
    save(tmp_path, *(poll(number, hosts=["gpu01", "gpu02"]) for number in range(4, 8)), keep=3)
    found = newest(tmp_path, 6, "gpu01", "gpu02", "never")
    assert numbers(found["gpu01"]) == [2, 3, 4, 5, 6, 7]
    assert numbers(found["gpu02"]) == [4, 5, 6, 7]
    assert found["never"] == []


def test_a_clock_that_was_ahead_does_not_show_the_future_for_ever(tmp_path):
    """What is later than the last poll is left out; it would be the newest for years."""
    save(tmp_path, poll(0), poll(1))
    save(tmp_path, poll(50, time=at(0).replace(year=2126)), poll(2), poll(3))
    assert len(snapshot.kept(tmp_path)) == 5
    assert numbers(newest(tmp_path, 2)["gpu01"]) == [2, 3]
    assert numbers(newest(tmp_path, 9)["gpu01"]) == [0, 1, 2, 3]
    save(tmp_path, poll(4), poll(5), keep=3)  # the snapshot of 2126 has gone by now, its day has not
    assert numbers(newest(tmp_path, 9)["gpu01"]) == [0, 1, 2, 3, 4, 5]


def test_two_polls_of_one_second_are_one(tmp_path):
    """The later one counts, and no card is there twice."""
    save(tmp_path, poll(0), poll(1), poll(2, time=at(1)), poll(3), keep=1)
    samples = newest(tmp_path, 9)["gpu01"]
    assert numbers(samples) == [0, 2, 3]
    assert [list(one["gpu_data"]) for one in samples] == [["gpu:0"]] * 3


def document(*hosts):
    """Return a file of states/ as `render` writes it."""
    return joined([entry(host, "up", "10.0.0.1", ['{"gpu_data": {}, "timestamp": 7}']) for host in hosts])


def test_the_answer_has_the_shape_of_the_file(data):
    """All hosts of the file, with their status and address, and more samples."""
    answer = json.loads(past.with_samples(document("gpu01", "gpu02").encode(), data, 3))
    assert {host: (one["status"], one["ip_address"]) for host, one in answer.items()} == {
        "gpu01": ("up", "10.0.0.1"),
        "gpu02": ("up", "10.0.0.1"),
    }
    assert [numbers(one["data"]) for one in answer.values()] == [[9, 10, 11]] * 2


def test_of_a_host_without_a_past_there_is_what_the_file_has(data):
    """Such as one without cards, or if the data folder is not there."""
    for folder, host in ((data, "other"), (data / "nothing", "gpu01")):
        answer = json.loads(past.with_samples(document(host).encode(), folder, 3))
        assert answer[host]["data"] == [{"gpu_data": {}, "timestamp": 7}]


def test_an_answer_has_its_limit(data):
    """For all its hosts together, and the error says what it is."""
    hosts = [f"gpu{number:02}" for number in range(10)]
    past.with_samples(document(*hosts).encode(), data, past.MOST // 10)
    with pytest.raises(ValueError, match=f"fetch_num is {past.MOST // 10} at most for 10 hosts"):
        past.with_samples(document(*hosts).encode(), data, past.MOST // 10 + 1)
    with pytest.raises(ValueError, match=f"fetch_num is {past.MOST} at most for 1 host"):
        past.with_samples(document("gpu01").encode(), data, past.MOST + 1)
    assert past.with_samples(b"{}", data, 5) == "{}\n"


def test_it_has_one_in_bytes_too(data, monkeypatch):
    """However long a host's names are."""
    monkeypatch.setattr(past, "MOST_BYTES", 2000)
    assert len(newest(data, 3)["gpu01"]) == 3
    with pytest.raises(ValueError, match="more than 0 MB: ask for fewer"):
        newest(data, 12)


def test_and_in_time(data, monkeypatch):
    """Whoever asks for more than there is would have all days read."""
    monkeypatch.setattr(past, "_SEARCH_S", 0)
    with pytest.raises(ValueError, match="not found within 0 s: ask for fewer"):
        newest(data, 12)


@pytest.mark.parametrize("damaged", [b"", b"[]", b"{", b'{"gpu01": 5}', b'{"gpu01": {"data": []}}', b"\xff"])
def test_a_damaged_file_of_the_site_is_named(data, damaged):
    """It is the server's fault, not that of whoever asks."""
    with pytest.raises(DataError, match=r"the site's states are damaged\. Run `webmon render`"):
        past.with_samples(damaged, data, 3)


def test_the_last_sample_is_what_the_page_of_states_has(make_site, tmp_path, snapshot):
    """fetch_num=1 is the same as none: every host, every state, odd names."""
    save(tmp_path / "data", snapshot)
    file = make_site() / "states" / "index.json"
    assert json.loads(past.with_samples(file.read_bytes(), tmp_path / "data", 1)) == json.loads(
        file.read_bytes()
    )
