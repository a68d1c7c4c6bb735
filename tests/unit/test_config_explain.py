"""`webmon config`: what is in force, and where each value comes from."""

from __future__ import annotations

import json

import pytest
import tomli

from webmon import config
from webmon.config import explain
from webmon.errors import ConfigError

TEXT = """[common]
hosts = gpu01, bob@old:2222, self
user = alice
timeout = 12.5
[free]
ignore = Xorg
[host.gpu01]
label = the old DGX
[site]
title = "Größe"
"""
SSH_CONFIG = "Host old\n  HostName 10.0.0.9\n  IdentityFile ~/.ssh/id_old\n  ProxyJump carol@gateway:2022\n"


@pytest.fixture
def loaded(file, own_home):
    """A configuration in which values come from everywhere."""
    (own_home / ".ssh" / "config").write_text(SSH_CONFIG, encoding="utf-8")
    return file.load(TEXT)


def _sections(loaded):
    return json.loads(explain.as_json(loaded))


def test_every_value_has_its_source(loaded, own_home):
    """A line of the configuration, a line of ~/.ssh/config, or the default."""
    hosts = _sections(loaded)["hosts"]
    assert list(hosts) == ["gpu01", "old:2222", "self"]
    assert hosts["gpu01"]["user"] == {"value": "alice", "source": "config.ini:3"}
    assert hosts["gpu01"]["label"] == {"value": "the old DGX", "source": "config.ini:8"}
    assert hosts["gpu01"]["group"] == {"value": None, "source": "default"}
    assert hosts["gpu01"]["port"] == {"value": 22, "source": "default"}
    assert hosts["gpu01"]["hostname"] == {"value": "gpu01", "source": "config.ini:2"}
    assert hosts["gpu01"]["host_keys"] == {"value": "strict", "source": "default"}
    old = hosts["old:2222"]
    assert old["user"] == {"value": "bob", "source": "config.ini:2"}
    assert old["port"] == {"value": 2222, "source": "config.ini:2"}
    assert old["hostname"] == {"value": "10.0.0.9", "source": "~/.ssh/config:2"}
    assert old["key_filename"] == {"value": [f"{own_home}/.ssh/id_old"], "source": "~/.ssh/config:3"}
    assert old["proxy_jump"] == {"value": ["carol@gateway:2022"], "source": "~/.ssh/config:4"}


def test_a_key_of_webmons_own_file_is_the_only_one(file):
    """The keys of ~/.ssh are not tried then."""
    hosts = _sections(file.load("[common]\nhosts = gpu01\nkey_filename = my-key\n"))["hosts"]
    assert hosts["gpu01"]["key_filename"] == {
        "value": [str(file.path.parent / "my-key")],
        "source": "config.ini:3",
    }


def test_self_has_only_what_concerns_it(loaded):
    """No user, no port, no key: it is not logged in to."""
    assert set(_sections(loaded)["hosts"]["self"]) == {"timeout", "nvidia_smi", "label", "group"}


def test_the_sections_are_all_there(loaded, file):
    """With their defaults."""
    sections = _sections(loaded)
    assert sections["path"] == str(file.path)
    assert sections["common"] == {"jobs": {"value": 32, "source": "default"}}
    assert sections["free"]["ignore"] == {"value": ["Xorg"], "source": "config.ini:6"}
    assert sections["free"]["held_after_min"] == {"value": 30.0, "source": "default"}
    assert sections["data"]["dir"] == {"value": str(file.path.parent / "data"), "source": "default"}
    assert sections["site"]["title"] == {"value": "Größe", "source": "config.ini:10"}
    assert sections["privacy"]["users"] == {"value": "show", "source": "default"}
    assert sections["notify"]["urls"] == {"value": [], "source": "default"}
    assert sections["warnings"] == []


def test_the_text_is_for_people(loaded):
    """One line a value, its source behind it; what nobody set and has no default is left out."""
    lines = explain.as_text(loaded).splitlines()
    assert lines[0] == f"# {loaded.path}"
    assert "held_after_min = 30" in [line.partition("  # ")[0].rstrip() for line in lines]
    assert 'title = "Größe"' in [line.partition("  # ")[0].rstrip() for line in lines]
    first = lines.index('[host."gpu01"]')
    shown = [line.split("  # ") for line in lines[first + 1 :]][: lines[first:].index("") - 1]
    assert [
        (text.rstrip(), source) for text, source in shown if "key" not in text and "known" not in text
    ] == [
        ('hostname = "gpu01"', "config.ini:2"),
        ('user = "alice"', "config.ini:3"),
        ("port = 22", "default"),
        ("timeout = 12.5", "config.ini:4"),
        ("proxy_jump = []", "default"),
        ('nvidia_smi = "nvidia-smi"', "default"),
        ('label = "the old DGX"', "config.ini:8"),
    ]


def test_the_text_is_toml(loaded):
    """So that what it says can be copied into a configuration."""
    sections = tomli.loads(explain.as_text(loaded))
    assert sections["common"] == {"jobs": 32}
    assert sections["free"]["max_memory_pct"] == 5
    assert sections["free"]["ignore"] == ["Xorg"]
    assert sections["host"]["old:2222"]["hostname"] == "10.0.0.9"


def test_one_host_can_be_asked_for(loaded):
    """Then the sections are left out."""
    assert list(json.loads(explain.as_json(loaded, ["self"]))) == ["path", "hosts", "warnings"]
    assert list(json.loads(explain.as_json(loaded, ["self"]))["hosts"]) == ["self"]
    text = explain.as_text(loaded, ["self", "gpu01"])
    assert "[common]" not in text
    assert text.index('[host."self"]') < text.index('[host."gpu01"]')


@pytest.mark.parametrize(
    ("name", "remedy"), [("gpu02", "Did you mean 'gpu01'?"), ("zzz", "`webmon config` lists them all")]
)
@pytest.mark.parametrize("show", [explain.as_text, explain.as_json])
def test_a_host_that_is_not_there_is_an_error(loaded, show, name, remedy):
    """With the name that was meant."""
    with pytest.raises(ConfigError) as raised:
        show(loaded, [name])
    assert str(raised.value) == f"there is no host {name!r} in {loaded.path}. {remedy}"


def test_warnings_are_shown_last(file):
    """What is said and not done."""
    loaded = config.load(file.write("[common]\nhosts = a\n[notify]\nurls = x\n"))
    assert explain.as_text(loaded).splitlines()[-1].startswith("# config.ini:3: [notify] is read")
    assert len(_sections(loaded)["warnings"]) == 1
