"""Whatever a configuration file holds, it loads or there is one clear error."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webmon import config
from webmon.config import dialect, schema
from webmon.errors import ConfigError
from webmon.resources import resource

NAMES = st.one_of(
    st.sampled_from(["common", "host", 'host."gpu01"', "host.gpu01", "free", "data", "site", "notify", "x"]),
    st.text(max_size=8),
)
KEYS = st.one_of(
    st.sampled_from([key for keys in schema.SECTIONS.values() for key in keys]), st.text(max_size=8)
)
VALUES = st.one_of(
    st.sampled_from(
        ["gpu01", "gpu[01-03]", '"a"', "[a, b]", "[", "]", '"', "'", '"""', "5", "1e400", "true", ""]
    ),
    st.sampled_from(
        ["a # b", "a ; b", "a\n  b", "[\n a\n]", "{a = 1}", "bob@old:2222", "[::1]:22", "\\", "~"]
    ),
    st.text(max_size=12),
)
LINES = st.one_of(
    NAMES.map("[{}]".format),
    NAMES.map("[[{}]]".format),
    st.tuples(KEYS, VALUES).map(" = ".join),
    st.text(max_size=12),
    st.sampled_from(["[common]", "hosts = gpu01", "# x", "; x", "  x", "", "a.b = 1"]),
)
TEXTS = st.lists(LINES, max_size=8).map("\n".join)
EXAMPLE = resource("config.example.ini").read_bytes()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all examples."""
    return tmp_path_factory.mktemp("config")


def _loads_or_says_why(folder, raw):
    path = folder / "config.ini"
    path.write_bytes(raw)
    try:
        loaded = config.load(path)
    except ConfigError as error:
        said = str(error)
    else:
        assert loaded.hosts
        return
    assert re.match(r"config\.ini(:[0-9]+)?: ", said)
    assert 0 < int(re.match(r"config\.ini:?([0-9]*)", said)[1] or 1) <= raw.count(b"\n") + 1


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes(folder, raw):
    """A picture, a page of HTML, another program's configuration."""
    _loads_or_says_why(folder, raw)


@given(TEXTS)
@example("x = " + "[" * 3000)
@example("x = " + "1" * 5000)
@example("[" + "1" * 5000 + "]")
@example("a." * 2000 + "b = 1")
@example("[common]\nhosts = gpu01\n[host]\n" + "a." * 200 + "b = 1")
def test_any_lines_of_a_configuration(folder, text):
    """Sections, keys and values as they could be, in any order, mixed with anything else."""
    _loads_or_says_why(folder, text.encode())


@given(st.floats(0, 1), st.integers(0, 20), st.binary(max_size=6))
def test_any_mistake_in_the_example(folder, place, lost, added):
    """Somebody's cat has been on the keyboard."""
    at = int(place * len(EXAMPLE))
    _loads_or_says_why(folder, EXAMPLE[:at] + added + EXAMPLE[at + lost :])


@given(
    st.dictionaries(
        st.from_regex(r"[a-z_]{1,8}", fullmatch=True),
        st.from_regex(r"[a-z@:/.~][a-z0-9@:/.~,*-]{0,20}", fullmatch=True),
    )
)
def test_bare_values_are_texts(values):
    """What has no quotes and is nothing that TOML knows is taken as it stands."""
    known = {"true", "false", "inf", "nan"}
    values = {name: value for name, value in values.items() if value not in known}
    text = "[x]\n" + "".join(f"{name} = {value}\n" for name, value in values.items())
    document = dialect.read(text, "config.ini")
    assert document.sections == {"x": values}
    assert [document.where("x", name) for name in values] == [
        f"config.ini:{n + 2}" for n in range(len(values))
    ]
