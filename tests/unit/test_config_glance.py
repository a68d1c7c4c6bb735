"""What the commands that only look take from a configuration, and which file they take for one."""

from __future__ import annotations

import os

import pytest

from webmon.availability import Rules
from webmon.config.glance import Glance, glance
from webmon.errors import ConfigError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(folder, text):
    (folder / "config.ini").write_text(text)
    return folder / "config.ini"


def test_without_a_configuration_there_are_the_defaults(folder):
    """Nobody who looks needs one."""
    assert glance() == Glance(free=Rules())


def test_it_says_what_is_free_and_how_to_ask(folder):
    """And where the snapshots are, and what may be shown; the rest of the file is not needed."""
    write(
        folder,
        '[common]\nhosts = ["nowhere.invalid"]\nnvidia_smi = "/opt/smi"\n[free]\nmax_memory_pct = 20\n'
        '[data]\ndir = "seen"\n[privacy]\ncommand = "full"\n',
    )
    assert glance() == Glance(Rules(max_memory_pct=20.0), "/opt/smi", 20.0, "full", folder / "seen")


def test_self_may_have_values_of_its_own(folder):
    """[host."self"] overrides [common]."""
    write(folder, '[common]\nhosts = self\ntimeout = 5\n[host."self"]\nnvidia_smi = "/usr/local/bin/smi"\n')
    assert (glance().nvidia_smi, glance().timeout) == ("/usr/local/bin/smi", 5.0)


@pytest.mark.parametrize(
    "text",
    [
        "[common]\n# ranges, like gpu[01-16]\nhosts = self\n[free]\nmax_memory_pct = 9\n",
        '[common]\nkey_filename = "~/k[1]"\nhosts = self\n[free]\nmax_memory_pct = 9\n',
        "[ common ]\nhosts=self\n[free]\nmax_memory_pct = 9\n",
        "[common] ; ours\n  hosts = self\n[free]\nmax_memory_pct = 9\n",
    ],
)
def test_ours_is_known_by_its_hosts(folder, text):
    """Whatever stands before them."""
    write(folder, text)
    assert glance().free.max_memory_pct == 9.0


@pytest.mark.parametrize(
    "text",
    [
        "[train]\nlr = 0.1\n",
        "[common]\nlr = 0.1\n",
        "[train]\nhosts = 3\n[common]\n",
        "\0\xff",
        "",
        "hosts = a\n",
    ],
)
def test_another_programs_is_passed_over(folder, text):
    """A config.ini in the current folder may be anything."""
    write(folder, text)
    assert glance() == Glance()


def test_what_is_named_has_to_be_right(folder, monkeypatch):
    """With -c, or in $WEBMON_CONFIG, it is meant."""
    path = write(folder, "[train]\nlr = 0.1\n")
    with pytest.raises(ConfigError, match="there is no section"):
        glance(str(path))
    monkeypatch.setenv("WEBMON_CONFIG", str(folder / "none.ini"))
    with pytest.raises(ConfigError, match="no such file"):
        glance()


def test_a_mistake_in_ours_is_told(folder):
    """With its line."""
    write(folder, "[common]\nhosts = self\n[free]\nmax_memory_pct = lots\n")
    with pytest.raises(ConfigError, match=r"config\.ini:4: free\.max_memory_pct is a text"):
        glance()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_strangers_is_passed_over(folder):
    """What it names as nvidia_smi would be run."""
    path = write(folder, '[common]\nhosts = self\nnvidia_smi = "/tmp/evil"\n')
    os.chown(path, 65534, 65534)
    assert glance() == Glance()


def test_one_that_anybody_may_write_is_passed_over(folder):
    """It may say what a stranger wants."""
    write(folder, '[common]\nhosts = self\nnvidia_smi = "/tmp/evil"\n').chmod(0o666)
    assert glance() == Glance()
