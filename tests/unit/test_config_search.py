"""Which configuration file is used."""

from __future__ import annotations

from pathlib import Path

import pytest

from webmon import config
from webmon.errors import ConfigError


@pytest.fixture
def places(own_home, tmp_path, monkeypatch):
    """Make a configuration file in every place, and return them, strongest first."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WEBMON_CONFIG", str(tmp_path / "environment.ini"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    files = [
        tmp_path / "given.ini",
        tmp_path / "environment.ini",
        Path("config.ini"),
        tmp_path / "xdg/webmon/config.ini",
    ]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return files


def test_the_file_that_was_given_comes_first(places):
    """`-c FILE`."""
    assert config.find(str(places[0])) == places[0]


def test_then_the_environment(places):
    """`$WEBMON_CONFIG`."""
    assert config.find() == places[1]


def test_then_the_current_folder(places, monkeypatch):
    """./config.ini; an empty variable is none."""
    monkeypatch.setenv("WEBMON_CONFIG", "")
    assert config.find() == places[2]


def test_then_the_users_own(places, monkeypatch):
    """$XDG_CONFIG_HOME/webmon/config.ini."""
    monkeypatch.delenv("WEBMON_CONFIG")
    places[2].unlink()
    assert config.find() == places[3]


@pytest.mark.parametrize("xdg", ["", None])
def test_which_is_in_the_home_folder_by_default(places, own_home, monkeypatch, xdg):
    """~/.config/webmon/config.ini."""
    monkeypatch.delenv("WEBMON_CONFIG")
    monkeypatch.delenv("XDG_CONFIG_HOME")
    if xdg is not None:
        monkeypatch.setenv("XDG_CONFIG_HOME", xdg)
    places[2].unlink()
    file = own_home / ".config" / "webmon" / "config.ini"
    file.parent.mkdir(parents=True)
    file.touch()
    assert config.find() == file


@pytest.mark.parametrize("how", ["given", "environment"])
def test_a_file_that_was_named_is_used_even_if_it_is_not_there(places, monkeypatch, how):
    """An error is better than another configuration."""
    monkeypatch.setenv("WEBMON_CONFIG", "~/nowhere.ini")
    found = config.find("~/nowhere.ini" if how == "given" else None)
    assert found == Path.home() / "nowhere.ini"
    with pytest.raises(ConfigError, match=r"nowhere\.ini: there is no such file"):
        config.load(found)


@pytest.mark.skipif(Path("/etc/webmon/config.ini").exists(), reason="this machine has a webmon of its own")
def test_without_any_file_all_places_are_named(places, monkeypatch, tmp_path):
    """With what to do."""
    monkeypatch.delenv("WEBMON_CONFIG")
    places[2].unlink()
    places[3].unlink()
    with pytest.raises(ConfigError) as raised:
        config.find()
    looked = f"config.ini, {tmp_path}/xdg/webmon/config.ini, /etc/webmon/config.ini"
    assert raised.value.problem == f"no configuration file; looked for {looked}"
    assert "Copy config.example.ini to config.ini" in raised.value.remedy
