"""`webmon history HOST[:GPU]`: what one host or GPU did; and that its numbers are those of the pages."""

from __future__ import annotations

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from clusters_seen import A100, EVIL
from past_seen import STEP, past
from screen import can_do_harm, columns_of
from servers.settings import write_config

from webmon.store import history, snapshot
from webmon.store.history import Sample


def samples_of(said):
    return json.loads(said.out)["samples"]


def cards(said):
    return {f"{sample['host']}:{sample['index']}" for sample in samples_of(said)}


def times(said):
    return sorted({sample["time"] for sample in samples_of(said)})


def last(folder):
    return snapshot.latest_time(folder)


def test_the_newest_polls_of_a_host(say, known):
    """Twelve of them, all its GPUs, the newest at the end."""
    said = say("history", "gpu07", "--data", known)
    assert (said.code, said.err, len(said.lines)) == (0, "", 1 + 12 * 3)
    assert re.split(r" {2,}", said.lines[0]) == [
        "time (UTC)", "GPU", "state", "util.", "mem. used/total", "power", "temp.", "users", "model",
    ]  # fmt: skip
    assert [re.split(r" {2,}", line)[1:] for line in said.lines[-3:]] == [
        ["0", "busy", "80 %", "80000 /", "81920 MiB", "307 W", "60 C", "alice,bob", "A100-SXM4-80GB"],
        ["1", "free", "0 %", "4 /", "81920 MiB", "20 W", "60 C", "A100-SXM4-80GB"],
        ["2", "held", "0 %", "41000 /", "81920 MiB", "62 W", "60 C", "chen", "A100-SXM4-80GB"],
    ]
    assert said.lines[-1].startswith(f"{last(known):%Y-%m-%d %H:%M:%S}  ")


@pytest.mark.parametrize(
    ("what", "found"),
    [
        ("gpu07", {"gpu07:0", "gpu07:1", "gpu07:2"}),
        ("gpu07:2", {"gpu07:2"}),
        ("gpu07:GPU-gpu07-1", {"gpu07:1"}),
        ("gpu07:GPU-gpu07-", {"gpu07:0", "gpu07:1", "gpu07:2"}),
        ("old:2222", {"old:2222:0", "old:2222:1"}),
        ("old:2222:0", {"old:2222:0"}),
        ("old:2222:GPU-old:2222-1", set()),
        ("gone", {"gone:0"}),
        ("gone:0", {"gone:0"}),
        ("gone:GPU-gone", {"gone:0"}),
    ],
)
def test_a_host_or_one_of_its_gpus(say, known, what, found):
    """With a port in the name; by index, or how the uuid begins; also a host that is gone by now."""
    said = say("history", what, "-n", "1", "--json", "--data", known)
    assert (cards(said) if said.code == 0 else set()) == found


def test_a_host_with_a_port_that_is_gone(say, tmp_path):
    """Without a snapshot that has it, both that `old:2222` can mean are looked for."""
    now = datetime.now(UTC).replace(microsecond=0)
    history.add(tmp_path, [Sample(now, "old:2222", n, f"GPU-{n}", A100, "free") for n in range(2)])
    history.add(tmp_path, [Sample(now, "lone", 2222, "GPU-9", A100, "free")])
    assert cards(say("history", "old:2222", "--json", "--data", tmp_path)) == {"old:2222:0", "old:2222:1"}
    assert cards(say("history", "old:2222:1", "--json", "--data", tmp_path)) == {"old:2222:1"}
    assert cards(say("history", "lone:2222", "--json", "--data", tmp_path)) == {"lone:2222"}


@pytest.mark.parametrize(
    ("options", "polls"),
    [(["-n", "1"], 1), ([], 12), (["-n", "150"], 150), (["-n", "9999"], 156), (["--since", "65m"], 7),
     (["--since", "65m", "-n", "2"], 2), (["--since", "30d"], 156)],
)  # fmt: skip
def test_so_many_polls(say, known, options, polls):
    """-n is how many, --since how far back, and both the newest of these; over midnight too."""
    said = say("history", "old:2222:0", "--json", "--data", known, *options)
    assert len(times(said)) == len(samples_of(said)) == pytest.approx(polls, abs=1 if "65m" in options else 0)
    assert times(said)[-1] == f"{last(known):%Y-%m-%dT%H:%M:%SZ}"


def test_since_is_a_moment(say, known):
    """A day, a time, in UTC unless it says otherwise; the poll of that very moment is in it."""
    third = last(known) - 2 * STEP
    plus_two = (third + timedelta(hours=2)).replace(tzinfo=None).isoformat()
    for since in (
        third.strftime("%Y-%m-%dT%H:%M:%S"),
        third.strftime("%Y-%m-%d %H:%M:%SZ"),
        f"{plus_two}+02:00",
    ):
        assert len(times(say("history", "gpu07:0", "--since", since, "--json", "--data", known))) == 3
    for day in (f"{third:%Y-%m-%d}", f"{third:%Y%m%d}"):
        found = times(say("history", "gpu07:0", "--since", day, "--json", "--data", known))
        assert found
        assert {time[:10] for time in found} <= {f"{third:%Y-%m-%d}", f"{last(known):%Y-%m-%d}"}


@pytest.mark.parametrize(
    "since", ["", "x", "2026", "99", "2026-13-01", "2h ago", "0001-01-01T00:00+14:00", "-2h"]
)
def test_what_is_no_moment(say, known, since):
    """Exit 2, and how it is written; a number alone is no time."""
    said = say("history", "gpu07", f"--since={since}", "--data", known)
    assert (said.code, said.out) == (2, "")
    assert "is no time: write 2h, 30d, 2026-11-17 or 2026-11-17T08:00. See" in said.err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["gpu07", "--since", "9999-01-01"],
         "--since 9999-01-01 00:00 UTC is yet to come. It is a time in the past"),
        (["gpu07", "gpu08"], "one host or GPU at a time. `webmon stats --by host` has all of them"),
        (["gpu07", "--time", "2h"], "--time goes with `webmon history import`. Did you mean --since?"),
        (["import"], "no file is named. Say `webmon history import load_data.csv`"),
        (["import", "x.csv", "--json"],
         "-n, --since, --json and --csv are for looking. Import first, and look then"),
    ],
)  # fmt: skip
def test_a_call_that_makes_no_sense(say, known, arguments, told):
    """Exit 2, in one line, and what to do."""
    assert say("history", *arguments, "--data", known) == (2, "", f"webmon: {told}\n")


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("gpu7", "gpu7; did you mean gpu07?"),
        ("old:2223:0", "old:2223:0; did you mean old:2222?"),
        ("gpu07:9", "gpu07:9; gpu07 has 0, 1, 2"),
        ("gpu07:GPU-x", "gpu07:GPU-x; gpu07 has 0, 1, 2"),
        ("\x1b[2Jx", "\N{REPLACEMENT CHARACTER}[2Jx"),
        ("whatever", "whatever"),
    ],
)
def test_what_the_history_does_not_have(say, known, what, told):
    """Exit 1, and what may have been meant: of hosts, and of the GPUs of one."""
    assert say("history", what, "--data", known) == (1, "", f"webmon: the history has nothing of {told}\n")


def test_nothing_since_then(say, known):
    """Exit 1: it was there before."""
    said = say("history", "gone", "--since", "2h", "--json", "--data", known)
    assert (said.code, said.out) == (1, "")
    assert re.fullmatch(r"webmon: the history has nothing of gone since [-\d]+ [:\d]+ UTC\n", said.err)


def test_the_rows_as_data(say, known):
    """JSON with the memory of each user; CSV with the columns of the history's own files."""
    said = say("history", "gpu07:0", "-n", "1", "--json", "--data", known)
    document = json.loads(said.out)
    assert list(document) == ["schema", "host", "samples"]
    assert (document["schema"], document["host"]) == (1, "gpu07")
    assert document["samples"][0] == {
        "time": f"{last(known):%Y-%m-%dT%H:%M:%SZ}", "host": "gpu07", "index": 0, "uuid": "GPU-gpu07-0",
        "name": A100, "state": "busy", "utilization_pct": 80, "memory_used_mib": 80000,
        "memory_total_mib": 81920, "power_w": 307.3, "temperature_c": 60,
        "users": {"alice": 60000, "bob": 20000},
    }  # fmt: skip
    old = samples_of(say("history", "old:2222", "-n", "1", "--json", "--data", known))
    assert (old[0]["users"], old[0]["power_w"], old[1]["utilization_pct"]) == ({"alice": None}, None, None)
    said = say("history", "old:2222", "-n", "1", "--csv", "--data", known)
    assert said.lines[0] == ",".join(Sample._fields)
    assert next(csv.DictReader(io.StringIO(said.out)))["users"] == "alice="
    assert said.lines[2].endswith(",unknown,,,,,,")


@pytest.mark.parametrize("width", [100, 80, 60, 40])
def test_no_line_is_wider_than_the_screen(say, known, width):
    """When, which and what it did are always there."""
    said = say("history", "old:2222", "--data", known, COLUMNS=str(width))
    assert max(map(columns_of, said.lines)) <= width
    assert re.match(r"time \(UTC\) +GPU  state +util\.", said.lines[0])


def test_colours_are_those_of_the_states(say, known):
    """Where they are wanted; NO_COLOR is stronger."""
    coloured = say("history", "gpu07", "-n", "1", "--data", known, FORCE_COLOR="1")
    assert re.findall(r"\x1b\[(\d+)m2", coloured.out) == ["34", "32", "33"]
    plain = say("history", "gpu07", "-n", "1", "--data", known, FORCE_COLOR="1", NO_COLOR="1")
    assert plain.out == re.sub(r"\x1b\[\d+m", "", coloured.out)


def test_names_can_do_nothing_to_a_terminal(say, tmp_path):
    """Whatever a user, or a model, is called."""
    names = tuple(f"{name}=1" for name in EVIL if len(name.splitlines()) == 1)
    now = datetime.now(UTC).replace(microsecond=0)
    history.add(tmp_path, [Sample(now, "gpu01", 0, "GPU-1", EVIL[0], "busy", users=names)])
    said = say("history", "gpu01", "--data", tmp_path)
    assert (said.code, len(said.lines), can_do_harm(said.out)) == (0, 2, [])


def test_a_day_that_is_damaged_is_read_as_far_as_it_goes(say, tmp_path):
    """Lines of junk are passed over, and so is what comes after a hole in a compressed file."""
    end = past(tmp_path)
    path = tmp_path / "history" / f"{end:%Y-%m-%d}.csv"
    path.write_bytes(b"junk\n\xff\xfe,,,\n" + path.read_bytes() + b"2026-11-1")
    assert len(samples_of(say("history", "gpu07:0", "-n", "1", "--json", "--data", tmp_path))) == 1
    gone = end - timedelta(days=10)
    (tmp_path / "history" / f"{gone:%Y-%m-%d}.csv").unlink()
    (tmp_path / "history" / f"{gone:%Y-%m-%d}.csv.gz").write_bytes(b"no gzip")
    assert say("history", "gpu07", "-n", "9999", "--data", tmp_path).code == 0


def test_pages_tables_json_and_csv_have_the_same_numbers(say, tmp_path):
    """GPU-hours, held hours and energy of a user, and how much of its time a host was in use."""
    past(tmp_path / "data")
    config = write_config(tmp_path, {"hosts": ["self"]}, site={"price_per_kwh": 0.5})
    assert say("render", "-c", config).code == 0
    page = table_of(tmp_path / "site" / "users.html", "days-30")
    users = json.loads(say("users", "--days", "30", "--json", "-c", config).out)["users"]
    users_csv = by_first(say("users", "--days", "30", "--csv", "-c", config))
    stats_csv = by_first(say("stats", "--by", "user", "--csv", "-c", config))
    lines = {line.split()[0]: line for line in say("users", "--days", "30", "-c", config).lines[3:]}
    assert [user["user"] for user in users] == ["alice", "chen", "bob", "eva"]
    for user in users:
        name, number = user["user"], user["days"]["30"]
        shown = page[name]
        told = {
            "gpu_hours": shown["GPU-hours"], "sole_hours": shown["alone"], "shared_hours": shown["shared"],
            "held_hours": shown["held, idle"], "kwh": shown["kWh"],
        }  # fmt: skip
        assert re.split(r" {2,}", lines[name])[-6:] == [
            *list(told.values())[:3], shown["utilization"], *list(told.values())[3:]
        ]  # fmt: skip
        # Numbers for programs have four digits; here they are rounded once more.
        assert {key: float(text) for key, text in told.items()} == pytest.approx(
            {key: number[key] for key in told}, abs=0.051
        )
        assert float(shown["cost"]) == pytest.approx(number["kwh"] * 0.5, abs=0.0051)
        assert {key: float(stats_csv[name][key]) for key in told} == {key: number[key] for key in told}
        assert float(users_csv[name]["gpu_hours_30d"]) == number["gpu_hours"]
        assert float(users_csv[name]["held_hours_30d"]) == number["held_hours"]
    hosts = table_of(tmp_path / "site" / "history.html", "by-host")
    rows = json.loads(say("stats", "--json", "-c", config).out)["rows"]
    assert [row["host"] for row in rows] == ["gone", "gpu07", "old:2222"]
    for row in rows:
        shown = hosts[row["host"]]
        assert float(shown["in use"].rstrip(" %")) == pytest.approx(row["occupancy_pct"], abs=0.51)
        assert float(shown["GPU-hours used"]) == pytest.approx(row["gpu_hours"], abs=0.051)
        assert float(shown["known"].rstrip(" %")) == pytest.approx(row["coverage_pct"], abs=0.051)


def by_first(said):
    """Return the rows of a CSV by their first cell."""
    return {next(iter(row.values())): row for row in csv.DictReader(io.StringIO(said.out))}


def table_of(path, anchor):
    """Return the rows of a section's table by what heads them, their cells by the heads of the columns."""
    html = path.read_text().split(f'id="{anchor}"')[1].split("</section>")[0]
    head, body = html.split("</thead>")
    _, *names = texts(head, "th")
    rows = re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    return {texts(row, "th")[0]: dict(zip(names, texts(row, "td"), strict=True)) for row in rows}


def texts(html, tag):
    """Return what stands in elements, with plain spaces."""
    cells = re.findall(rf"<{tag}\b[^>]*>(.*?)</{tag}>", html, re.DOTALL)
    return [re.sub(r"<[^>]*>", "", cell).replace("\u202f", " ").strip() for cell in cells]
