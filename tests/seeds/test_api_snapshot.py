"""`webmon.snapshot()`: the whole cluster, from a data folder, a configuration or the published site."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from servers.states import healthy
from typed import python

from webmon.model import Gpu, Host, Process, Snapshot
from webmon.store import snapshot as store

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime(2026, 11, 18, 8, 5, 0, tzinfo=UTC)
CLUSTER = Snapshot(
    NOW,
    (
        Host("gpu01", status="up", checked_at=NOW, last_seen=NOW, gpus=2, load1=0.5),
        Host("gpu02", status="down", reason="timeout", error="no answer within 20 s", checked_at=NOW),
    ),
    (
        Gpu("gpu01", 0, "GPU-0", "NVIDIA A100-SXM4-80GB", "free", 0, 0, 4, 81920, 31, 51.25, 400.0),
        Gpu("gpu01", 1, "GPU-1", "NVIDIA A100-SXM4-80GB", "busy", 97, 55, 70000, 81920, users=("alice",)),
        Gpu("gpu02", 0, "GPU-2", "NVIDIA H100"),
    ),
    (Process("gpu01", 1, "GPU-1", 4711, "alice", "python", "train.py", 69000, NOW),),
)

TELL = """
print(last.taken_at.isoformat(), [host.host for host in last.hosts])
print([(gpu.host, gpu.index, gpu.state, gpu.users) for gpu in last.gpus])
print([process.user for process in last.processes])
"""
TOLD = [
    "2026-11-18T08:05:00+00:00 ['gpu01', 'gpu02']",
    "[('gpu01', 0, 'free', ()), ('gpu01', 1, 'busy', ('alice',)), ('gpu02', 0, 'unknown', ())]",
    "['alice']",
]


@pytest.fixture
def here(machine, tmp_path):
    """A user's machine; the monitoring machine's data folder, configuration and site lie beside."""
    store.save(tmp_path / "data", CLUSTER, keep=3)
    (tmp_path / "config.ini").write_text("[common]\nhosts = gpu01, gpu02\nuser = me\n[data]\ndir = data\n")
    return machine(healthy(1))


@pytest.fixture
def site(here, tmp_path):
    """The published site, served by webmon itself; its address."""
    done = here.webmon("render", "-c", tmp_path / "config.ini")
    assert done.returncode == 0, done.stderr
    server = here.start("serve", "--site", tmp_path / "site", "--port", "0")
    try:
        yield re.search(r"http://\S+", server.stderr.readline())[0]
    finally:
        server.terminate()
        server.communicate()


def test_from_a_data_folder(here, tmp_path):
    """By a text or a path."""
    for data in ('"data"', '__import__("pathlib").Path("data")'):
        script = f"import webmon\nlast = webmon.snapshot(data={data})\n{TELL}"
        assert python(here, script).stdout.splitlines() == TOLD


def test_from_a_configuration(here, tmp_path):
    """The one that is named, or that of $WEBMON_CONFIG, or the one in the current folder."""
    (tmp_path / "elsewhere").mkdir()
    named = f"import webmon\nlast = webmon.snapshot(config={str(tmp_path / 'config.ini')!r})\n{TELL}"
    assert python(here, named, cwd=tmp_path / "elsewhere").stdout.splitlines() == TOLD
    unnamed = f"import webmon\nlast = webmon.snapshot()\n{TELL}"
    assert python(here, unnamed).stdout.splitlines() == TOLD
    configured = {"WEBMON_CONFIG": str(tmp_path / "config.ini")}
    assert python(here, unnamed, cwd=tmp_path / "elsewhere", env=configured).stdout.splitlines() == TOLD


def test_from_the_site(here, site, tmp_path):
    """By its address, or $WEBMON_SITE: no account on the monitoring machine is needed."""
    (tmp_path / "elsewhere").mkdir()
    for address in (site, site.rstrip("/") + "/index.html", site.rstrip("/") + "/snapshot.json"):
        script = f"import webmon\nlast = webmon.snapshot({address!r})\n{TELL}"
        assert python(here, script, cwd=tmp_path / "elsewhere").stdout.splitlines() == TOLD
    script = f"import webmon\nlast = webmon.snapshot()\n{TELL}"
    environment = {"WEBMON_SITE": site}
    assert python(here, script, cwd=tmp_path / "elsewhere", env=environment).stdout.splitlines() == TOLD


def test_what_is_named_comes_before_the_environment(here):
    """A folder, and a configuration, win over $WEBMON_SITE."""
    for named in ('data="data"', 'config="config.ini"'):
        script = f"import webmon\nlast = webmon.snapshot({named})\n{TELL}"
        done = python(here, script, env={"WEBMON_SITE": "http://127.0.0.1:1/"})
        assert done.stdout.splitlines() == TOLD


def test_frames(here):
    """Three of them: numbers are numbers, times are times in UTC, what is not known is missing."""
    script = """
import webmon
frames = webmon.snapshot(data="data").frames()
print({name: len(frame) for name, frame in frames.items()})
gpus = frames["gpus"]
print(*(gpus[name].dtype for name in ("index", "memory_used_mib", "power_w", "name", "idle_since")))
print(gpus["memory_used_mib"].sum(), gpus["power_w"].isna().tolist(), frames["hosts"]["gpus"].isna().tolist())
print(frames["processes"]["started_at"].iloc[0].isoformat(), gpus["users"].iloc[1])
free = gpus[gpus["state"] == "free"]
print(free.groupby("name")["index"].count().to_dict())
"""
    assert python(here, script).stdout.splitlines() == [
        "{'hosts': 2, 'gpus': 3, 'processes': 1}",
        "Int64 Int64 Float64 string datetime64[us, UTC]",
        "70004 [False, True, True] [False, True]",
        "2026-11-18T08:05:00+00:00 ('alice',)",
        "{'NVIDIA A100-SXM4-80GB': 1}",
    ]


def test_a_snapshot_without_frames_needs_no_pandas(here):
    """Objects are enough for most scripts."""
    script = "import sys, webmon\nwebmon.snapshot(data='data')\nprint('pandas' in sys.modules)"
    assert python(here, script).stdout == "False\n"


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("data='nowhere'", "DataError", "no snapshot yet"),
        ("data='empty'", "DataError", "no snapshot yet"),
        ("data='half'", "DataError", "processes.csv is missing"),
        ("config='nowhere.ini'", "ConfigError", "nowhere.ini"),
        ("'http://127.0.0.1:1/'", "SiteError", "can't be read"),
        ("'not an address'", "WishError", "no address"),
        ("'ftp://127.0.0.1/'", "WishError", "no address"),
        ("", "ConfigError", "no snapshot of the cluster"),
    ],
)
def test_what_cannot_be_read_is_one_clear_exception(here, tmp_path, call, error, text):
    """Its kind says what is wrong, its text where."""
    (tmp_path / "empty").mkdir()
    half: Path = store.save(tmp_path / "half", CLUSTER, keep=3)
    (half / "processes.csv").unlink()
    if not call:
        (tmp_path / "config.ini").unlink()
    script = f"""
import webmon
from webmon import errors
try:
    webmon.snapshot({call})
except errors.{error} as error:
    print(error)
"""
    said = python(here, script).stdout
    assert text in said
    assert said.count("\n") == 1


def test_a_half_written_snapshot_of_a_site_is_refused(here, site, tmp_path):
    """In one line, with the address."""
    published = tmp_path / "site" / "snapshot.json"
    published.write_bytes(published.read_bytes()[:-50])
    script = f"""
import webmon
from webmon.errors import SiteError
try:
    webmon.snapshot({site!r})
except SiteError as error:
    print(error)
"""
    said = python(here, script).stdout
    assert "snapshot.json is not a whole snapshot of webmon" in said
    assert said.count("\n") == 1
