"""`webmon users` and `webmon stats`: who used how much, as a table, JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from clusters_seen import A100, EVIL, card, process
from past_seen import last_poll, past
from screen import can_do_harm, columns_of
from servers.settings import write_config

from webmon.model import Host, Snapshot
from webmon.store import history, snapshot
from webmon.store.history import Sample

ROOT = Path(__file__).resolve().parents[2]

BY = ("user", "host", "model", "group", "state")


def close(value):
    """Return what is equal to a value but for what a poll at the edge stands for."""
    return pytest.approx(value, rel=0.01, abs=0.12)


def table(said):
    """Return the rows of a table as lists of cells, its header first, without what stands above it."""
    lines = said.lines[said.lines.index("") + 1 :]
    return [re.split(r" {2,}", line.strip()) for line in lines]


def rows_of(said):
    return list(csv.DictReader(io.StringIO(said.out), strict=True))


def by_user(said):
    return {user["user"]: user for user in json.loads(said.out)["users"]}


def one_card(folder, users, *, state="busy", name=A100):
    """Write the data folder of one card with some users, as of now and for the hour before."""
    now = datetime.now(UTC).replace(microsecond=0)
    seen = {"status": "up", "checked_at": now, "last_seen": now}
    named = tuple(user for user in users if user is not None)
    gpu = card("gpu01", 0, name, 81920, used=8000, state=state, users=named)
    running = tuple(process("gpu01", 0, 100 + n, user, "x", None) for n, user in enumerate(users))
    snapshot.save(folder, Snapshot(now, (Host("gpu01", gpus=1, **seen),), (gpu,), running), keep=3)
    texts = tuple(f"{user}=" for user in named)
    history.add(
        folder,
        [
            Sample(now - timedelta(minutes=5 * ago), "gpu01", 0, "GPU-1", name, state, 50, users=texts)
            for ago in range(12)
        ],
    )
    return folder


def test_who_has_what_now_and_who_used_how_much(say, known):
    """The largest user first; of each day how much of it is known; processes that are ignored don't count."""
    said = say("users", "--data", known)
    assert (said.code, said.err) == (0, "")
    assert re.fullmatch(
        r"last 1 day, since \d{4}-\d\d-\d\d \d\d:\d\d UTC: 100\.0 % polled, 80\.0 % known", said.lines[0]
    )
    assert [line.split(",")[0] for line in said.lines[:4]] == [
        "last 1 day", "last 7 days", "last 30 days", "last 365 days",
    ]  # fmt: skip
    header, *rows = table(said)
    assert header == [
        "user", "GPUs", "memory", "processes", "on", "GPU-h 1d", "GPU-h 7d", "GPU-h 30d", "GPU-h 365d",
        "held h 30d", "kWh 30d",
    ]  # fmt: skip
    assert [row[0] for row in rows] == ["alice", "chen", "bob", "eva"]
    assert rows[0][:6] == ["alice", "2", "74.2 GB", "2", "gpu07:0 old:2222:0", "42.0"]
    assert rows[2][:6] == ["bob", "1", "19.5 GB", "1", "gpu07:0", "6.0"]
    assert rows[3][:4] == ["eva", "0", "0.0 GB", "0"]


def test_numbers_stand_at_the_right(say, known):
    """One below the other, under the end of their heading."""
    said = say("users", "--days", "1", "--data", known)
    header, *lines = said.lines[said.lines.index("") + 1 :]
    for heading in ("GPUs", "memory", "GPU-h 1d", "held h 1d", "kWh 1d"):
        end = header.index(heading) + len(heading)
        assert all(re.fullmatch(r".*[\dB](  .*)?", line[:end]) for line in lines), heading
        assert all(line[end : end + 1] in ("", " ") for line in lines), heading


def test_the_last_days_in_detail(say, known):
    """With --days: alone and shared beside all, utilization, held hours, energy."""
    said = say("users", "--days", "1", "--data", known)
    header, *rows = table(said)
    assert header[4:] == [
        "on", "GPU-h 1d", "sole h", "shared h", "utilization", "held h 1d", "kWh 1d",
    ]  # fmt: skip
    assert rows[0][5:] == ["42.0", "24.0", "18.0", "63 %", "0.0", "5.5"]
    assert rows[1][5:] == ["24.0", "24.0", "0.0", "0 %", "24.0", "1.5"]
    assert [row[0] for row in rows] == ["alice", "chen", "bob"]


def test_users_as_json(say, known):
    """Numbers are numbers, what is not known is null; the windows say what they have of the time."""
    said = say("users", "--json", "--data", known)
    document = json.loads(said.out)
    assert list(document) == ["schema", "until", "windows", "users"]
    assert document["schema"] == 1
    assert [window["days"] for window in document["windows"]] == [1, 7, 30, 365]
    assert list(document["windows"][0]) == ["days", "since", "polled_pct", "coverage_pct"]
    assert (document["windows"][0]["polled_pct"], document["windows"][0]["coverage_pct"]) == (100, 80)
    assert document["windows"][1]["polled_pct"] == close(100 * 26 / 168)
    since = datetime.fromisoformat(document["windows"][0]["since"])
    assert datetime.fromisoformat(document["until"]) - since == timedelta(days=1)
    alice = by_user(said)["alice"]
    assert alice["now"] == {
        "gpus": 2, "memory_mib": 76000, "processes": 2, "on": {"gpu07": [0], "old:2222": [0]},
    }  # fmt: skip
    assert list(alice["days"]) == ["1", "7", "30", "365"]
    assert alice["days"]["1"] == {
        "gpu_hours": 42, "sole_hours": 24, "shared_hours": 18, "shared_cards_hours": 24, "held_hours": 0,
        "utilization_pct": pytest.approx(100 * 26.4 / 42), "kwh": 5.5314,
    }  # fmt: skip
    eva = by_user(said)["eva"]
    assert eva["now"] == {"gpus": 0, "memory_mib": 0, "processes": 0, "on": {}}
    assert (eva["days"]["1"]["gpu_hours"], eva["days"]["1"]["kwh"]) == (0, None)
    assert eva["days"]["30"]["kwh"] == close(0.2)


def test_users_as_csv(say, known):
    """A row for each user; a number of days more or less changes the columns."""
    said = say("users", "--csv", "--data", known)
    assert (said.code, said.err) == (0, "")
    rows = rows_of(said)
    assert list(rows[0]) == [
        "user", "gpus", "memory_mib", "processes", "on", "gpu_hours_1d", "gpu_hours_7d", "gpu_hours_30d",
        "gpu_hours_365d", "held_hours_30d", "kwh_30d",
    ]  # fmt: skip
    assert rows[1] == rows[1] | {"user": "chen", "gpus": "1", "memory_mib": "40000", "gpu_hours_1d": "24.0"}
    assert float(rows[1]["held_hours_30d"]) == float(rows[1]["gpu_hours_30d"]) == close(26)
    assert "utilization_pct" in rows_of(say("users", "--days", "14", "--csv", "--data", known))[0]


@pytest.mark.parametrize("by", BY)
def test_stats_say_the_same_in_every_form(say, known, by):
    """Table, JSON and CSV, for whatever a row is about."""
    options = ("--by", by, "--days", "1", "--data", known)
    document = json.loads(say("stats", *options, "--json").out)
    rows = rows_of(say("stats", *options, "--csv"))
    header, *shown = table(say("stats", *options))
    assert list(document) == ["schema", "until", "windows", "by", "rows"]
    assert (document["by"], len(document["rows"])) == (by, len(rows))
    assert header[:2] == [by, "GPU-h"]
    for row, as_data, cells in zip(rows, document["rows"], shown, strict=True):
        assert list(row) == list(as_data)
        assert row == {name: "" if value is None else str(value) for name, value in as_data.items()}
        assert cells[:2] == [as_data[by] or "-", f"{as_data['gpu_hours']:.1f}"]


def test_hosts_and_models_and_groups(say, known):
    """How much of the known time they were in use; what has no group, or is gone, at the end."""

    def rows(*options):
        said = say("stats", "--json", "--data", known, *options)
        return {row[json.loads(said.out)["by"]]: row for row in json.loads(said.out)["rows"]}

    hosts = rows("--days", "1")
    assert list(hosts) == ["gpu07", "old:2222"]
    assert hosts["gpu07"] == {
        "host": "gpu07", "gpu_hours": 48, "occupancy_pct": 66.6667, "utilization_pct": 26.6667,
        "free_pct": 33.3333, "held_pct": 33.3333, "kwh": 9.336, "coverage_pct": 100,
    }  # fmt: skip
    assert (hosts["old:2222"]["kwh"], hosts["old:2222"]["coverage_pct"]) == (None, 50)
    assert list(rows()) == ["gone", "gpu07", "old:2222"]
    assert list(rows("--by", "model")) == [A100, "NVIDIA GeForce RTX 3090", "NVIDIA TITAN V"]
    groups = rows("--by", "group")
    assert list(groups) == ["vision", None]
    assert groups[None]["gpu_hours"] == close(27)


def test_the_states_make_up_all_hours(say, known):
    """Each with its part, unknown ones too."""
    rows = json.loads(say("stats", "--by", "state", "--days", "1", "--json", "--data", known).out)["rows"]
    assert {row["state"]: row["gpu_hours"] for row in rows} == {
        "free": 24, "busy": 48, "held": 24, "faulty": 0, "unknown": 24,
    }  # fmt: skip
    assert sum(row["share_pct"] for row in rows) == pytest.approx(100)


@pytest.mark.parametrize("width", [80, 60, 40])
@pytest.mark.parametrize(
    "command", [("users",), ("users", "--days", "1"), *(("stats", "--by", by, "--days", "1") for by in BY)]
)
def test_no_line_is_wider_than_the_screen(say, known, command, width):
    """What matters least is left out; who it is about, and GPU-hours, never."""
    said = say(*command, "--data", known, COLUMNS=str(width))
    assert said.code == 0
    assert max(map(columns_of, said.lines)) <= width
    assert re.match(rf"{'user' if command[0] == 'users' else command[2]} .*GPU-h", " ".join(table(said)[0]))


def test_names_can_do_nothing_to_a_terminal(say, tmp_path):
    """Whatever a user is called; JSON and CSV have it as it is."""
    # No line of the history has two; and `;` stands between users there.
    names = [name for name in EVIL if len(name.splitlines()) == 1 and ";" not in name]
    folder = one_card(tmp_path, names)
    for command in (["users"], ["stats", "--by", "user"], ["stats", "--by", "model"]):
        said = say(*command, "--data", folder)
        assert said.code == 0
        assert can_do_harm(said.out) == []
    assert set(by_user(say("users", "--json", "--data", folder))) == set(names)
    assert {row["user"] for row in rows_of(say("users", "--csv", "--data", folder))} == set(names)


def test_an_owner_that_is_not_known_is_no_user_with_a_question_mark(say, tmp_path):
    """null in JSON, an empty cell in CSV; who is called so keeps the name."""
    nobody = one_card(tmp_path / "nobody", (None,))
    assert table(say("users", "--days", "1", "--data", nobody))[1][:2] == ["?", "1"]
    assert list(by_user(say("users", "--json", "--data", nobody))) == [None]
    (row,) = rows_of(say("stats", "--by", "user", "--csv", "--data", nobody))
    assert (row["user"], row["gpu_hours"]) == ("", "1.0")
    called_so = one_card(tmp_path / "called", ("?",))
    assert list(by_user(say("users", "--json", "--data", called_so))) == ["?"]
    (row,) = json.loads(say("stats", "--by", "user", "--json", "--data", called_so).out)["rows"]
    assert row["user"] == "?"


def test_nobody_used_anything(say, tmp_path):
    """Exit 1: said in words to a person, by empty rows to a program."""
    folder = one_card(tmp_path, (), state="free")
    for command in (["users"], ["stats", "--by", "user"]):
        said = say(*command, "--data", folder)
        assert (said.code, said.err) == (1, "webmon: nobody used a GPU, as far as is known\n")
        said = say(*command, "--data", folder, "--csv")
        assert (said.code, said.err, len(said.lines)) == (1, "", 1)
        said = say(*command, "--data", folder, "--json")
        assert (said.code, json.loads(said.out).get("users", json.loads(said.out).get("rows"))) == (1, [])


@pytest.mark.parametrize("days", ["0", "-1", "x", "1.5", "36501", "9" * 5000, "", "٣"])
@pytest.mark.parametrize("command", ["users", "stats"])
def test_days_are_a_whole_number_of_them(say, known, command, days):
    """Exit 2, in one line."""
    said = say(command, f"--days={days}", "--data", known)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"webmon {command}: argument --days: ")
    assert "is no number of days (1 to 36500)" in said.err


def test_the_examples_of_the_readme_and_of_the_help_work(say, known):
    """As they stand, but for where the data are, and for what they are piped into."""
    texts = [
        (ROOT / "README.md").read_text(),
        *(say(name, "--help").out for name in ("users", "stats", "history")),
    ]
    lines = [
        re.split(r"  |[|>]", line.strip())[0]
        for text in texts
        for line in (text.partition("examples:")[2] or text).splitlines()
        if re.match(r" *webmon (users|stats|history)\b(?! import)", line)
    ]
    assert len(lines) >= 12
    for line in lines:
        _, *arguments = shlex.split(line)
        said = say(*arguments, "--data", known)
        assert (said.code, said.err) == (0, ""), line


def test_the_document_shows_what_is_printed(say, known):
    """docs/data-format.md: the same keys, in the same order."""
    told = (ROOT / "docs" / "data-format.md").read_text().split("## What users, stats and history print")[1]
    users, stats, past_of_one = (json.loads(text) for text in re.findall(r"(?s)```json\n(.*?)```", told)[:3])
    printed = [
        json.loads(say(*command, "--json", "--data", known).out)
        for command in (["users", "--days", "30"], ["stats"], ["history", "gpu07", "-n", "1"])
    ]
    for example, document in zip((users, stats, past_of_one), printed, strict=True):
        assert list(example) == list(document)
        for name in ("windows", "users", "rows", "samples"):
            for row in example.get(name, ()):
                assert list(row) == list(document[name][0])
    alice, shown = users["users"][0], printed[0]["users"][0]
    assert list(alice["now"]) == list(shown["now"])
    assert list(alice["days"]["30"]) == list(shown["days"]["30"])
    for by in BY:
        said = say("stats", "--by", by, "--csv", "--data", known)
        for column in said.lines[0].split(",")[1:]:
            assert f"`{column}`" in told or f"| {column}" in told or f", {column}" in told, column


def test_more_days_than_there_are(say, known):
    """A hundred years are mostly not known."""
    said = say("stats", "--days", "36500", "--json", "--data", known)
    assert said.code == 0
    assert json.loads(said.out)["windows"][0]["coverage_pct"] < 0.01


def test_where_the_data_are_is_in_the_configuration(say, known, tmp_path, monkeypatch):
    """-c names it; --data comes first; without either it is said what to do."""
    config = write_config(tmp_path, {"hosts": ["self"]}, data={"dir": str(known)})
    assert say("users", "-c", config).out == say("users", "--data", known).out
    assert say("stats", "-c", config, "--data", tmp_path / "none").code == 1
    monkeypatch.chdir(tmp_path.parent)
    for command in (["users"], ["stats"], ["history", "gpu07"]):
        said = say(*command)
        assert (said.code, said.out) == (2, "")
        assert said.err == (
            "webmon: where the data are is not known: there is no configuration. Name it with -c, or the "
            "data folder with --data; users.html and history.html need neither\n"
        )  # fmt: skip


def test_no_history_yet(say, tmp_path, data):
    """Exit 1, and what fills it; also where there is a snapshot of before there was a history."""
    for folder in (tmp_path / "none", data):
        for command in (["users"], ["stats"], ["history", "gpu07"]):
            said = say(*command, "--data", folder)
            assert (said.code, said.out) == (1, "")
            assert (
                said.err == f"webmon: {folder} has no history yet: `webmon fetch` adds to it with each poll\n"
            )


def test_no_poll_in_the_days_that_are_asked_for(say, known, tmp_path):
    """A snapshot, and a history that ended long before."""
    snapshot.save(tmp_path, last_poll(datetime.now(UTC)), keep=3)
    sample = Sample(datetime.now(UTC) - timedelta(days=9), "gpu01", 0, "GPU-1", A100, "free")
    history.add(tmp_path, [sample])
    said = say("stats", "--days", "7", "--data", tmp_path)
    assert (said.code, said.out, said.err) == (1, "", f"webmon: {tmp_path} has no poll of the last 7 days\n")


@pytest.mark.parametrize("command", [["users"], ["stats"], ["history", "gpu07"]])
def test_a_folder_that_cannot_be_read(say, tmp_path, command):
    """Exit 2, which one, and why: no traceback."""
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").mkdir()
    (tmp_path / "loop" / "history").symlink_to("history")
    for folder, why in (("file", "Not a directory"), ("loop", "Too many levels of symbolic links")):
        said = say(*command, "--data", tmp_path / folder)
        assert (said.code, said.out) == (2, "")
        what = tmp_path / folder / "history"
        assert said.err == f"webmon: {what} can't be read: {why}. Check its owner and mode\n"


def test_a_snapshot_that_is_damaged(say, tmp_path):
    """What users have now is not known, which is said; what they used is there."""
    past(tmp_path)
    (tmp_path / "latest" / "gpus.csv").write_text("junk\n")
    said = say("users", "--json", "--data", tmp_path)
    assert said.code == 0
    assert re.fullmatch(
        r"webmon: the last snapshot is not used: .*gpus\.csv:1: .*\. Run `webmon fetch` .*\n", said.err
    )
    assert by_user(said)["alice"]["now"] is None
    assert by_user(said)["alice"]["days"]["1"]["gpu_hours"] == 42
    said = say("users", "-q", "--csv", "--data", tmp_path)
    assert (said.err, rows_of(said)[0]["gpus"], rows_of(said)[0]["on"]) == ("", "", "")
    assert table(say("users", "-q", "--data", tmp_path))[1][1:4] == ["-", "-", "-"]


@pytest.mark.parametrize("command", [["users"], ["stats"], ["history", "gpu07"]])
def test_that_the_last_poll_was_long_ago_is_said(say, tmp_path, command):
    """On standard error, as `list` does; -q leaves it out."""
    past(tmp_path, datetime.now(UTC).replace(microsecond=0) - timedelta(hours=2, minutes=5))
    said = say(*command, "--data", tmp_path)
    assert (said.code, said.err) == (
        0,
        "webmon: the last poll was 2 hours ago: is webmon still run by cron?\n",
    )
    assert say(*command, "-q", "--data", tmp_path) == (0, said.out, "")
