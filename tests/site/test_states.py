"""states/: the newest sample of each host, with the keys that vesta's clients read."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from any_lab import labs, quick
from clusters import NOW, RTX3090, gpu, host, lab, process
from hypothesis import given
from texts import look, readme
from unit.snapshots import SNAPSHOTS

from webmon.model import CLAIM, Gpu, Snapshot
from webmon.publish import lab as arrange
from webmon.publish.states import entry, joined, sample, states, written

KEYS = {
    "available_memory": int,
    "device_num": int,
    "gpu_name": str,
    "gpu_volatile": int,
    "processes": list,
    "state": str,
    "temperature": int,
    "timestamp": str,
    "total_memory": int,
    "used_memory": int,
    "uuid": str,
}
PROCESS_KEYS = {"name": str, "pid": int, "used_memory": int, "user": str}


def files(snapshot, addresses=None):
    """Return each document, read."""
    made = states(arrange.lab(snapshot, addresses), look())
    return {path: json.loads(text) for path, text in made}


def gpus(snapshot, name):
    """Return a host's cards in its one sample."""
    (one,) = files(snapshot)["states/index.json"][name]["data"]
    return one["gpu_data"]


def test_it_is_what_clients_know():
    """Keys, values and their order as elsewhere; beside them the states. Numbers are numbers."""
    snapshot = readme()
    snapshot = snapshot._replace(taken_at=snapshot.taken_at.replace(minute=0, second=0))
    made = files(snapshot, {"mau_local_19e5d26c": "127.0.0.1"})
    assert made["states/index.json"] == {
        "mau_local_19e5d26c": {
            "data": [
                {
                    "gpu_data": {
                        "gpu:0": {
                            "available_memory": 3151,
                            "device_num": 0,
                            "gpu_name": "NVIDIA GeForce GTX 1080 Ti",
                            "gpu_volatile": 92,
                            "processes": [
                                {"name": "train1", "pid": 31415, "used_memory": 6400, "user": "root"},
                                {"name": "train2", "pid": 27182, "used_memory": 1618, "user": "user1"},
                            ],
                            "state": "busy",
                            "temperature": 80,
                            "timestamp": "2019/03/24 20:00:00.000",
                            "total_memory": 11169,
                            "used_memory": 8018,
                            "uuid": "GPU-0",
                        },
                        "gpu:1": {
                            "available_memory": 11170,
                            "device_num": 1,
                            "gpu_name": "GeForce GTX 1080 Ti",
                            "gpu_volatile": 0,
                            "processes": [],
                            "state": "busy",
                            "temperature": 38,
                            "timestamp": "2019/03/24 20:00:00.000",
                            "total_memory": 11172,
                            "used_memory": 2,
                            "uuid": "GPU-1",
                        },
                    },
                    "timestamp": 20190324200000,
                }
            ],
            "ip_address": "127.0.0.1",
            "status": "up",
        }
    }


def test_a_host_s_file_is_its_entry():
    """And no other's."""
    made = files(lab())
    whole = made["states/index.json"]
    assert sorted(whole) == ["gpu10", "gpu11", "gpu2", "split", "wild", "zero"]
    for name, one in whole.items():
        assert made[f"states/{name}/index.json"] == {name: one}


@pytest.mark.parametrize(
    "name", ["mixed:2222", "[fe80::1%eth0]:22", "..", "a/b", "índex", "index.json", "数据"]
)
def test_a_host_of_any_name_has_its_file(name):
    """Its name is the key as it is; in paths there is nothing that means something there."""
    made = files(Snapshot(NOW, (host(name), host("other"))))
    (path,) = [path for path in made if path.startswith("states/") and list(made[path]) == [name]]
    assert re.fullmatch(r"states/[A-Za-z0-9._-]+/index\.json", path)
    assert ".." not in path.split("/")
    assert path != "states/index.json/index.json"


def test_a_host_that_is_down_has_a_sample_without_cards():
    """What they were is not what they are."""
    one = files(lab())["states/index.json"]["gpu11"]
    assert one == {
        "data": [{"gpu_data": {}, "timestamp": int(f"{NOW:%Y%m%d%H%M%S}")}],
        "ip_address": None,
        "status": "down",
    }


def test_the_time_is_that_of_the_poll():
    """In UTC, the same for all hosts, and the same as in the history."""
    taken_at = datetime(2026, 1, 2, 3, 4, 5, 999000, tzinfo=UTC)
    known, unknown = host("a", checked_at=taken_at + timedelta(seconds=9)), host("b", checked_at=None)
    snapshot = Snapshot(taken_at, (known, unknown), (gpu("a", 0), gpu("b", 0)))
    made = files(snapshot)["states/index.json"]
    assert [made[name]["data"][0]["timestamp"] for name in "ab"] == [20260102030405] * 2
    assert [gpus(snapshot, name)["gpu:0"]["timestamp"] for name in "ab"] == ["2026/01/02 03:04:05.000"] * 2


@pytest.mark.parametrize(
    ("status", "reason", "state", "processes"),
    [
        ("up", None, "free", []),
        ("up", None, "busy", []),
        ("up", None, "unknown", None),
        ("degraded", "lost-gpu", "faulty", None),
        ("degraded", "no-processes", "busy", None),
        ("degraded", "lost-gpu", "free", []),
    ],
)
def test_processes_that_are_not_known_are_null(status, reason, state, processes):
    """An empty list says that there is none."""
    snapshot = Snapshot(NOW, (host("a", status, reason=reason),), (gpu("a", 0, state=state),))
    assert gpus(snapshot, "a")["gpu:0"]["processes"] == processes


def test_processes_that_were_seen_are_told_whatever_the_card_says():
    """A card may be lost while they still hang on it."""
    card = gpu("a", 0, state="faulty")
    snapshot = Snapshot(NOW, (host("a", "degraded"),), (card,), (process(card, None, name=CLAIM),))
    (one,) = gpus(snapshot, "a")["gpu:0"]["processes"]
    assert one == {"name": "claimed, train.py", "pid": 4711, "used_memory": 1024, "user": None}


def test_what_is_not_known_is_null():
    """And never 0."""
    card, other = Gpu("a", 3), gpu("a", 0)
    made = gpus(Snapshot(NOW, (host("a"),), (card, other)), "a")["gpu:3"]
    known = {name: value for name, value in made.items() if value is not None}
    assert known == {"device_num": 3, "state": "unknown", "timestamp": f"{NOW:%Y/%m/%d %H:%M:%S}.000"}
    nameless = process(card, None, None, name=None, memory_mib=None)
    (one,) = gpus(Snapshot(NOW, (host("a"),), (card, other), (nameless,)), "a")["gpu:3"]["processes"]
    assert one == {"name": None, "pid": 4711, "used_memory": None, "user": None}


def test_two_cards_of_one_index_are_both_there():
    """Their keys differ, their number does not."""
    cards = (gpu("a", 0), gpu("a", 0, RTX3090), gpu("a", 1))
    made = gpus(Snapshot(NOW, (host("a"),), cards), "a")
    assert {key: (one["device_num"], one["gpu_name"]) for key, one in made.items()} == {
        "gpu:0": (0, cards[0].name),
        "gpu:0_2": (0, RTX3090[0]),
        "gpu:1": (1, cards[2].name),
    }


def test_samples_stand_in_the_order_they_are_given():
    """From the oldest to the newest, as clients expect."""
    one = arrange.lab(lab()).hosts[0]
    samples = [sample(one, NOW), written({"gpu_data": {}, "timestamp": 1})]
    document = json.loads(joined([entry('a"b', "up", None, samples), entry("c", "down", None, [])]))
    assert document['a"b']["data"] == [json.loads(text) for text in samples]
    assert document["c"] == {"data": [], "ip_address": None, "status": "down"}


def test_what_is_not_there_is_said_as_elsewhere():
    """In JSON, with the status in it; a lab without hosts has no sample."""
    made = files(Snapshot(NOW))
    assert made == {
        "states/index.json": {},
        "404.json": {"status": "ERROR", "status_code": 404, "info": "not found"},
    }


@quick
@given(SNAPSHOTS | labs())
def test_it_is_json_of_these_types_whatever_is_in_it(snapshot):
    """Each host has a file of its own, and each card of one that answered a key."""
    made = files(snapshot)
    whole = made.pop("states/index.json")
    assert set(whole) == {one.host for one in snapshot.hosts}
    assert len(made) == len(whole) + 1
    for one in snapshot.hosts:
        assert whole[one.host]["status"] == one.status
        (newest,) = whole[one.host]["data"]
        assert re.fullmatch(r"\d{14}", str(newest["timestamp"]))
        there = 0 if one.status == "down" else sum(card.host == one.host for card in snapshot.gpus)
        assert len(newest["gpu_data"]) == there
        for card in newest["gpu_data"].values():
            _check(card, KEYS)
            for running in card["processes"] or ():
                _check(running, PROCESS_KEYS)


def _check(value, types):
    assert list(value) == list(types)
    for key, kind in types.items():
        assert value[key] is None or type(value[key]) is kind
