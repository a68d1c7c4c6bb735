"""docs/python.md is true: every public name has its heading, and every block of it runs."""

from __future__ import annotations

import inspect
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from servers.states import healthy
from typed import python

import webmon
from webmon.model import Gpu, Host, Process, Snapshot
from webmon.store import snapshot as store

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
SITE = "http://monitor.lab/gpus/"
NOW = datetime(2026, 11, 18, 8, 5, 0, tzinfo=UTC)


def section(name):
    """Return what stands below the heading of a name."""
    return re.split(r"^## ", TEXT.split(f"## `{name}`\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def test_every_public_name_has_its_heading():
    """And every heading with a name is one."""
    assert sorted(re.findall(r"^## `(\w+)`$", TEXT, re.MULTILINE)) == sorted(webmon.__all__)


@pytest.mark.parametrize("name", webmon.__all__)
def test_every_argument_and_field_is_documented(name):
    """In the section of its name."""
    thing = getattr(webmon, name)
    words = thing._fields if name == "GpuInfo" else inspect.signature(thing).parameters
    for word in words:
        assert re.search(rf"`[^`\n]*\b{word}\b", section(name)), word


@pytest.mark.parametrize("name", ["gpuselect", "select"])
def test_the_documented_defaults_are_the_real_ones(name):
    """As the table has them."""
    documented = {
        argument: default.strip("` ")
        for arguments, default in re.findall(r"^\| ([^|]*) \| ([^|]*) \|", section(name), re.MULTILINE)
        for argument in re.findall(r"`(\w+)`", arguments)
    }
    real = {
        name: argument.default
        for name, argument in inspect.signature(getattr(webmon, name)).parameters.items()
    }
    assert set(documented) == set(real)
    for argument, default in real.items():
        shown = "None" if default == () else f'"{default}"' if isinstance(default, str) else str(default)
        assert documented[argument] == shown, argument


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_runs(machine, tmp_path, block):
    """By itself, where there are enough GPUs; the site is a real one, under another address."""
    here = machine(healthy(4))
    (tmp_path / "torch.py").touch()
    gpus = (
        Gpu("gpu01", 0, "GPU-0", "A100", "free"),
        Gpu("gpu01", 1, "GPU-1", "A100", "busy", 97, power_w=300.5),
    )
    processes = (Process("gpu01", 1, "GPU-1", 4711, "alice", memory_mib=2048),)
    (tmp_path / "lab").mkdir()
    config = tmp_path / "lab" / "config.ini"
    config.write_text("[common]\nhosts = gpu01\nuser = me\n")
    store.save(
        tmp_path / "lab" / "data", Snapshot(NOW, (Host("gpu01", status="up"),), gpus, processes), keep=1
    )
    assert here.webmon("render", "-c", config).returncode == 0
    server = here.start("serve", "-c", config, "--port", "0")
    try:
        address = re.search(r"http://\S+", server.stderr.readline())[0]
        done = python(here, block.replace(SITE, address))
    finally:
        server.terminate()
        server.communicate()
    if ".groupby" in block:
        assert re.search(r"^A100 +1$", done.stdout, re.MULTILINE)
        assert re.search(r"^gpu01 +300\.5$", done.stdout, re.MULTILINE)
        assert re.search(r"^alice +2\.0$", done.stdout, re.MULTILINE)
    elif SITE in block:
        assert done.stdout.splitlines()[1] == "gpu01 0 A100"


def test_there_are_blocks_for_everything():
    """Each function has an example."""
    for name in webmon.__all__:
        assert "```python" in section(name), name
