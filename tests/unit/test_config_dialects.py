"""TOML, and INI files as people write them: the same values, and the same line numbers."""

from __future__ import annotations

import getpass
import os
from pathlib import Path

import pytest

from webmon import config
from webmon.availability import IGNORED_PROCESSES, Rules
from webmon.errors import ConfigError
from webmon.resources import resource

WEB_GPU_MONITOR = (
    b"[common]\nuser = yourusername\nhosts = host1.domain.tld,host2.domain.tld\nkey_filename=path_to_key\n"
)

TOML = """
[common]
user = "gpu_monitor"
hosts = ["gpu[01-03].lab", "bob@old:2222"]
key_filename = "~/.ssh/id_ed25519"
timeout = 12.5
[free]
ignore = ["Xorg", "gnome-shell"]
max_memory_pct = 3
[site]
title = "Our GPUs, all of them"
[host."gpu01.lab"]
label = "the old DGX"
"""

INI = """
[common]
user = gpu_monitor
hosts = gpu[01-03].lab, bob@old:2222
key_filename=~/.ssh/id_ed25519
timeout=12.5
[free]
ignore = Xorg, gnome-shell
max_memory_pct = 3
[site]
title = Our GPUs, all of them
[host.gpu01.lab]
label = the old DGX
"""


def _names(loaded):
    return [host.name for host in loaded.hosts]


def test_the_example_of_web_gpu_monitor_works_as_it_is(file):
    """Whoever comes from there need not change a byte."""
    loaded = file.load(WEB_GPU_MONITOR)
    assert _names(loaded) == ["host1.domain.tld", "host2.domain.tld"]
    assert {host.user for host in loaded.hosts} == {"yourusername"}
    assert {host.key_filename for host in loaded.hosts} == {file.path.parent / "path_to_key"}


def test_both_dialects_say_the_same(file):
    """And where each value stands."""
    as_toml = file.load(TOML)
    assert file.load(INI) == as_toml
    assert _names(as_toml) == ["gpu01.lab", "gpu02.lab", "gpu03.lab", "old:2222"]
    assert as_toml.free == Rules(max_memory_pct=3.0, ignore=("Xorg", "gnome-shell"))
    assert as_toml.site.title == "Our GPUs, all of them"
    assert as_toml.hosts[0].label == "the old DGX"
    assert as_toml.hosts[0].key_filename == Path(os.environ["HOME"], ".ssh", "id_ed25519")


def test_both_dialects_give_the_same_lines(file):
    """`webmon config` shows them."""
    assert file.load(INI).sources == file.load(TOML).sources
    assert file.load(INI).hosts[0].sources == file.load(TOML).hosts[0].sources


def test_the_smallest_configuration_has_all_the_defaults(file):
    """As the documentation has them."""
    loaded = file.load("[common]\nhosts = gpu01\n")
    (host,) = loaded.hosts
    assert (host.address, host.user, host.port, host.timeout) == ("gpu01", getpass.getuser(), 22, 20.0)
    assert (host.host_keys, host.nvidia_smi, host.key_filename, host.jumps) == (
        "strict",
        "nvidia-smi",
        None,
        (),
    )
    assert (host.label, host.group, host.is_self) == (None, None, False)
    assert loaded.jobs == 32
    assert loaded.free == Rules(5.0, 5.0, IGNORED_PROCESSES, 30.0)
    base = file.path.parent
    assert (loaded.data.dir, loaded.data.keep_days, loaded.data.keep_snapshots) == (base / "data", 90, 36)
    assert (loaded.site.dir, loaded.site.refresh, loaded.site.templates) == (base / "site", 60, None)
    assert (loaded.privacy.command, loaded.privacy.users) == ("name", "show")
    assert (loaded.notify.urls, loaded.notify.rules) == ((), ())
    assert loaded.warnings == ()


def test_the_packaged_example_loads():
    """And so it does when its commented lines are taken in."""
    loaded = config.load(resource("config.example.ini"))
    assert len(loaded.hosts) == 5
    assert loaded.hosts[4].port == 2222


def test_every_line_that_the_example_comments_out_is_valid(file):
    """Removing the # in front of a key is all that it takes."""
    text = resource("config.example.ini").read_text(encoding="utf-8")
    lines = []
    for line in text.splitlines():
        bare = line.removeprefix("# ")
        is_key = bare != line and (" = " in bare.partition("#")[0] or bare.startswith("[host."))
        lines.append(bare if is_key else line)
    assert len([line for line in lines if line.startswith("#")]) < 10
    (file.path.parent / "my-templates").mkdir()
    loaded = file.load("\n".join(lines))
    named = {host.name: host for host in loaded.hosts}["gpu04.lab.example"]
    assert (named.label, named.group, named.timeout) == ("the old DGX", "vision", 60.0)
    assert named.jumps[0].address == "gateway.lab.example"
    assert loaded.site.templates == file.path.parent / "my-templates"


HOSTS = pytest.mark.parametrize(
    "text",
    [
        "hosts = a, b, c",
        "hosts = a,b,c",
        "hosts=a b c",
        "hosts = a, b,\n  c",
        "hosts =\n  a\n  b\n  c",
        "hosts =\n\ta,\n\tb,\n\tc,",
        "hosts = a,\n    # the next one\n    b,\n; and one more\n    c",
        'hosts = "a", "b", "c"',
        "hosts = 'a', 'b', 'c'",
        'hosts = "a, b, c"',
        'hosts = ["a", "b", "c"]',
        "hosts = ['a', 'b', 'c']",
        "hosts = [a, b, c]",
        "hosts = [\n  a,\n  b,\n  c\n]",
        "hosts = [\na\nb\n\n# no more than\nc\n]",
        'hosts = [\n  "a", # one\n  "b",\n\n  "c",\n]',
        "hosts = [a, b,\n  c]",
        "hosts = a, b, c # all of them",
        "hosts = a, b, c ; all of them",
        "hosts = a, b, a, c, b",
        "'hosts' = 'a b c'",
        '  "hosts"   =   a,b,c  ',
        'hosts = """a\nb\nc"""',
    ],
)


@HOSTS
def test_a_list_can_be_written_in_many_ways(file, text):
    """With brackets or without, with quotes or without, over several lines, with comments."""
    assert _names(file.load(f"[common]\n{text}\nuser = alice\n")) == ["a", "b", "c"]


@HOSTS
def test_the_lines_after_a_list_keep_their_numbers(file, text):
    """However many lines it has."""
    line = text.count("\n") + 3
    assert file.error(f"[common]\n{text}\nusr = alice\n").startswith(
        f"config.ini:{line}: [common] has no key 'usr'"
    )


@pytest.mark.parametrize(
    ("value", "ignored"),
    [
        ("Xorg, gnome-shell", ("Xorg", "gnome-shell")),
        ("[Xorg, gnome-shell]", ("Xorg", "gnome-shell")),
        ("[\n  Xorg,\n  gnome-shell\n]", ("Xorg", "gnome-shell")),
        ("\"Xorg\", 'gnome-shell'", ("Xorg", "gnome-shell")),
        ('["Xorg"]', ("Xorg",)),
        ("Xorg", ("Xorg",)),
        ("steam*, foo bar", ("steam*", "foo bar")),
        ('["[Xx]org"]', ("[Xx]org",)),
        ('"[Xx]org"', ("[Xx]org",)),
        ("X[o]", ("X[o]",)),
        ('[\n  "no #1", # not a comment\n  "b ]",\n  "c=d",\n]', ("no #1", "b ]", "c=d")),
        ("[]", ()),
        ('""', ()),
        ("", ()),
    ],
)
def test_a_list_of_texts_too(file, value, ignored):
    """[free] ignore; empty means that nothing is ignored."""
    assert file.load(f"[common]\nhosts = a\n[free]\nignore = {value}\n").free.ignore == ignored


@pytest.mark.parametrize(
    ("value", "title"),
    [
        ("My GPUs", "My GPUs"),
        ('"My GPUs"', "My GPUs"),
        ("'My GPUs'", "My GPUs"),
        ("  My   GPUs  ", "My   GPUs"),
        ("My GPUs # all", "My GPUs"),
        ("My GPUs ; all", "My GPUs"),
        ("My#GPUs;all", "My#GPUs;all"),
        ('"My # GPUs"', "My # GPUs"),
        ("a = b", "a = b"),
        ("50 GPUs", "50 GPUs"),
        ('the "big" ones', 'the "big" ones'),
        (r"C:\new", r"C:\new"),
        ("Größe, 日本", "Größe, 日本"),
        ("[lab] GPUs", "[lab] GPUs"),
        ("over\n  two lines", "over, two lines"),
    ],
)
def test_a_text_can_be_written_in_many_ways(file, value, title):
    """Quotes are needed only around what would else be a comment."""
    assert file.load(f"[common]\nhosts = a\n[site]\ntitle = {value}\n").site.title == title


@pytest.mark.parametrize("value", ["30", "30.0", "30 # seconds", "30 ; seconds", "3e1"])
def test_a_number_is_a_number_with_a_comment_or_without(file, value):
    """Of either kind."""
    assert file.load(f"[common]\nhosts = gpu01 gpu02\ntimeout = {value}\n").hosts[0].timeout == 30


@pytest.mark.parametrize(
    "header",
    ["[host.gpu01]", "[host.gpu01] ; x", '[host."gpu01"] # x', '[ host . "gpu01" ] ; x', "[host.gpu[01]]"],
)
def test_a_section_of_a_host_may_have_a_comment(file, header):
    """Of either kind, among bare values."""
    assert (
        file.load(f"[common]\nhosts = gpu01 gpu02\n{header}\nlabel = the old one\n").hosts[0].label
        == "the old one"
    )


@pytest.mark.parametrize(
    "text",
    [
        b"\xef\xbb\xbf[common]\nhosts = gpu01\nuser = bob\n",
        b"[common]\r\nhosts = gpu01\r\nuser = bob\r\n",
        b"\xef\xbb\xbf[common]\r\nhosts = gpu01\r\nuser = bob",
        b"[common]\nhosts = gpu01\nuser = bob",
        b"\n\n  [common]  \n\n  hosts = gpu01\n\tuser = bob\n\n",
        b"[common] # x\nhosts = gpu01\nuser = bob\n",
        b"[ common ] ; x\nhosts = gpu01\nuser = bob\n",
        b"# x\n; y\n[common]\n  ; z\nhosts = gpu01 ; x\n  # y\nuser = bob # z\n",
        b'["common"]\nhosts = gpu01\nuser = bob\n',
        b"[common]\nuser = bob\nhosts = gpu01\n",
        b"[site]\n[common]\nuser = bob\nhosts = gpu01\n[data]\n",
        b'common.hosts = "gpu01"\ncommon.user = "bob"\n',
    ],
)
def test_editors_of_all_kinds_may_have_saved_it(file, text):
    """A byte order mark, line ends of Windows, indentation, no new line at the end."""
    (host,) = file.load(text).hosts
    assert (host.name, host.user) == ("gpu01", "bob")


def test_paths_are_relative_to_the_file(file, own_home, monkeypatch, tmp_path):
    """cron starts webmon somewhere else; ~ is the home folder."""
    monkeypatch.chdir(tmp_path)
    (file.path.parent / "mine").mkdir()
    text = """[common]
hosts = gpu01
key_filename = keys/id
known_hosts = ~/known
[data]
dir = ../data
[site]
dir = /var/www/gpus
templates = mine
"""
    loaded = file.load(text)
    base = file.path.parent
    assert loaded.hosts[0].key_filename == base / "keys" / "id"
    assert loaded.hosts[0].known_hosts == (own_home / "known",)
    assert loaded.data.dir == base / ".." / "data"
    assert (loaded.site.dir, loaded.site.templates) == (Path("/var/www/gpus"), base / "mine")
    assert config.load(Path("etc/config.ini")).data.dir == base / ".." / "data"


def test_a_backslash_is_no_reason_to_take_quotes_for_letters(file):
    """`"CORP\\alice"` is no TOML; in single quotes, or without any, it is a name."""
    with pytest.raises(ConfigError, match=r"config\.ini:2: .*escape"):
        file.load('[common]\nuser = "CORP\\alice"\nhosts = gpu01\n')
    assert file.host("[common]\nuser = 'CORP\\alice'\nhosts = gpu01\n").user == "CORP\\alice"
    assert file.host("[common]\nuser = CORP\\alice\nhosts = gpu01\n").user == "CORP\\alice"


@pytest.mark.parametrize("line", ["key_filename = ~nosuchuser/key", '[data]\ndir = "~nosuchuser/data"'])
def test_nobodys_home_folder_is_a_clear_error(file, line):
    """One line, with the remedy."""
    with pytest.raises(ConfigError, match=r"~nosuchuser is nobody's home folder\. Write the path in full"):
        file.load(f"[common]\nhosts = gpu01\n{line}\n")
