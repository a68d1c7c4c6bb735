"""The wheel: everything that webmon needs is in it, and found there."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from servers.command import environment

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Build the wheel and unpack it, far from the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=ROOT, check=True, capture_output=True,
    )  # fmt: skip
    (wheel,) = folder.glob("webmon-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def test_the_data_files_are_in_it(installed):
    """Templates, assets, the texts of cron/ and the example stand inside the package."""
    for folder in ("templates", "assets", "cron"):
        names = {path.name for path in (ROOT / folder).iterdir()}
        assert {path.name for path in (installed / "webmon" / folder).iterdir()} == names
    assert (installed / "webmon" / "config.example.ini").exists()
    assert (installed / "webmon" / "py.typed").exists()
    tops = {path.name for path in installed.iterdir() if not path.name.endswith(".dist-info")}
    assert tops == {"webmon"}


def test_it_works_far_from_the_checkout(installed, tmp_path):
    """A round of the demo, with nothing but the wheel."""
    script = (
        f"import sys; sys.path.insert(0, {str(installed)!r}); import webmon; "
        f"assert webmon.__file__.startswith({str(installed)!r}); "
        "from webmon.cli import main; sys.exit(main(sys.argv[1:]))"
    )

    def run(*arguments):
        return subprocess.run(
            [sys.executable, "-c", script, *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False, env=environment(),
        )  # fmt: skip

    done = run("demo", "--once", "--dir", str(tmp_path / "demo"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "demo" / "site" / "index.html").exists()
    assert run("config", "--example").stdout == (ROOT / "config.example.ini").read_text()
    assert "update -c" in run("deploy", "cron", "-c", str(tmp_path / "demo" / "config.ini")).stdout
