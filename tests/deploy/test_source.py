"""What is printed stands in cron/, and nowhere else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from servers.command import environment
from servers.settings import write_config
from servers.ssh_keys import make_key

import webmon
from webmon.resources import resource

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = {
    "crontab": "cron",
    "webmon.service": "systemd",
    "webmon.timer": "systemd",
    "nginx.conf": "nginx",
    "authorized_keys": "key",
    "prometheus.yml": "prometheus",
}


def test_every_file_is_used():
    """There is nothing in cron/ that no command prints."""
    assert {path.name for path in resource("cron").iterdir()} == set(FILES)


@pytest.mark.parametrize("name", FILES)
def test_every_line_is_printed(printed: Callable[..., str], tmp_path: Path, name: str):
    """The file is the text: all of its lines come, but for those that explain the file itself."""
    make_key(tmp_path / "key")
    text = printed(FILES[name], common={"key_filename": "key"}).splitlines()
    for line in (resource("cron") / name).read_text().splitlines():
        if line.startswith("##"):
            assert line not in text
        else:
            pattern = re.sub(r"@[A-Z_]+@", ".*", re.escape(line))
            assert line.isascii()  # some terminals and mails still take nothing else
            assert any(re.fullmatch(pattern, shown) for shown in text), line


@pytest.mark.parametrize("layout", ["checkout", "wheel"])
@pytest.mark.parametrize("name", FILES)
def test_a_change_there_is_a_change_here(tmp_path: Path, layout: str, name: str):
    """In a checkout and in an installed wheel, what is printed comes from the file."""
    package = tmp_path / "lib" / "webmon"
    shutil.copytree(Path(webmon.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    folder = (package if layout == "wheel" else package.parent) / "cron"
    shutil.copytree(resource("cron"), folder)
    changed = folder / name
    lines = changed.read_text().splitlines()
    lines[-1] = "# @USER@ says hello" if name.startswith("webmon.") else "# hello"
    changed.write_text("\n".join(lines) + "\n")
    make_key(tmp_path / "key")
    config = write_config(tmp_path, {"hosts": ["a"], "key_filename": "key"})
    shown = subprocess.run(
        [sys.executable, "-m", "webmon", "deploy", FILES[name], "-c", config, "--user", "somebody"],
        check=True,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(PYTHONPATH=str(package.parent)),
    ).stdout
    assert ("# somebody says hello\n" if name.startswith("webmon.") else "# hello\n") in shown
