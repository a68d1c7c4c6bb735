"""Tables fit the terminal that they are shown on, and keep everything where nobody looks."""

from __future__ import annotations

import re

import pytest
from clusters_seen import A100, card, cluster, process
from screen import columns_of, on_a_screen
from servers.command import webmon

from webmon.model import Gpu, Snapshot
from webmon.store import snapshot

WIDTHS = (200, 120, 80, 60, 40)


def columns(seen):
    return re.split(r"  +", seen.lines[0].strip())


@pytest.mark.parametrize("width", WIDTHS)
def test_no_line_is_wider_than_the_screen(data, width):
    """Whatever the table has to leave out for that."""
    seen = on_a_screen("list", "--data", data, "-q", columns=width)
    assert seen.code == 0
    assert len(seen.lines) == 10
    assert max(map(columns_of, seen.lines)) <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_wide_and_combining_characters_are_counted_as_they_are_shown(tmp_path, width):
    """Chinese, Hangul, Thai and accents of their own: the columns stay where they are."""
    names = (
        "张伟同学的机器学习任务",
        "한국어사용자이름",
        "a\u0301b\u0308c\u0327" * 6,
        "ผู้ใช้งานคนหนึ่ง",
        "🙂🙂🙂🙂🙂🙂",
    )
    whole = cluster()
    gpus = tuple(
        card(f"主机{index}", index, f"NVIDIA 显卡{name}", 81920, used=78000, state="busy", users=(name,))
        for index, name in enumerate(names)
    )
    hosts = tuple(whole.hosts[0]._replace(host=gpu.host, label=None) for gpu in gpus)
    on_them = tuple(
        process(gpu.host, gpu.index, 10, name, f"{name}.py", whole.taken_at)
        for gpu, name in zip(gpus, names, strict=True)
    )
    snapshot.save(tmp_path / "data", Snapshot(whole.taken_at, hosts, gpus, on_them), keep=3)
    seen = on_a_screen("list", "--data", tmp_path / "data", columns=width)
    assert seen.code == 0
    assert max(map(columns_of, seen.lines)) <= width
    start = seen.lines[0].index("status")
    for line in seen.lines[1:]:
        assert columns_of(line[: line.index("[~]")]) == start


def test_what_matters_least_goes_first(data):
    """At 200 columns everything is there; at 40 it is still seen what is free, and who has the rest."""
    at = {width: columns(on_a_screen("list", "--data", data, "-q", columns=width)) for width in WIDTHS}
    assert at[200] == [
        "host", "id", "status", "type", "util.", "mem. used/total", "temp.", "MHz", "power", "users", "since",
        "pids", "cmd",
    ]  # fmt: skip
    assert {"users", "since", "cmd", "type"} <= set(at[120])
    assert {"type", "mem. used/total", "users"} <= set(at[80])
    assert {"mem. used/total", "users"} <= set(at[60])
    assert at[40] == ["host", "id", "status", "util.", "users"]


def test_a_long_list_of_pids_gives_way_before_the_program(data):
    """Seventeen pids on a card tell less than what they run."""
    line = on_a_screen("list", "gpu08", "--data", data, columns=200).lines[1]
    assert "…" in line
    assert "worker0.py, worker1.py, worker2.py" in line


def test_nothing_is_cut_where_nobody_looks(data):
    """In a pipe every pid and every program is there."""
    done = webmon("list", "--data", data)
    assert "…" not in done.stdout
    assert all(f"worker{number}.py" in done.stdout for number in range(17))
    assert all(str(pid) in done.stdout for pid in range(200, 217))


@pytest.mark.parametrize(("columns", "width"), [("50", 50), ("0", 120), ("wide", 120), ("9" * 5000, 120)])
def test_columns_overrules_the_terminal(data, columns, width):
    """$COLUMNS, where it is a number of columns."""
    seen = on_a_screen("list", "--data", data, "-q", columns=120, COLUMNS=columns)
    assert seen.code == 0
    assert width - 10 <= max(map(columns_of, seen.lines)) <= width


def test_a_host_on_a_machine_of_its_own_needs_no_name(here):
    """On a narrow terminal, the list of this machine leaves its name out first."""
    seen = on_a_screen("list", columns=78, **here.environment | {"TERM": "xterm"})
    assert "host" not in columns(seen)
    assert max(map(columns_of, seen.lines)) <= 78


def test_names_that_are_cut_show_it(tmp_path):
    """An ellipsis, and the beginning, which tells most."""
    whole = cluster()
    long = "averyveryverylongname.with.a.domain.example"
    host = whole.hosts[0]._replace(host=long)
    gpus = (Gpu(long, 0, "GPU-0", A100, "busy", users=("somebody-with-a-long-name",)),)
    snapshot.save(tmp_path / "data", Snapshot(whole.taken_at, (host,), gpus, ()), keep=3)
    line = on_a_screen("list", "--data", tmp_path / "data", columns=60).lines[1]
    assert re.match(r"averyv\w*… +0 ", line)
    assert "somebody-…" in line
