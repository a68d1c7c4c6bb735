"""Which file a request means, vesta's addresses among them."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from webmon.publish.requests import Wanted, is_from_a_program, wanted

STATES, HOST = "states/index.json", "states/gpu01/index.json"


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/", "index.html"),
        ("/index.html", "index.html"),
        ("/hosts/gpu01.html", "hosts/gpu01.html"),
        ("/hosts/", "hosts/index.html"),
        ("/hosts", "hosts"),
        ("/metrics", "metrics"),
        ("/a%20b.txt", "a b.txt"),
        ("/index.html#free", "index.html"),
        ("/#free?term=true", "index.html"),
        ("//index.html", "index.html"),
        ("/hosts//gpu01.html", "hosts/gpu01.html"),
        ("http://mon.lab/", "index.html"),
        ("http://mon.lab", "index.html"),
        ("https://mon.lab:8443/hosts/gpu01.html", "hosts/gpu01.html"),
        ("http://mon.lab?term=true", "term.txt"),
        ("?term=true", "term.txt"),
    ],
)
def test_a_file_is_meant_by_its_path(target, path):
    """A folder by its page; the whole address is as good as its path."""
    assert wanted(target) == Wanted(path)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/?term=true", "term.txt"),
        ("/?term=TRUE", "term.txt"),
        ("/?term=1", "term.txt"),
        ("/?term=yes&x", "term.txt"),
        ("/?x=1&TERM=true", "term.txt"),
        ("/?term=true&detail=true", "detail.txt"),
        ("/?detail=1&term=1", "detail.txt"),
        ("/?term=true&detail=false", "term.txt"),
        ("/?term=false", "index.html"),
        ("/?term=false&detail=true", "index.html"),
        ("/?term=0", "index.html"),
        ("/?term=", "index.html"),
        ("/?term", "index.html"),
        ("/?term=false&term=true", "index.html"),
        ("/?terminal=true", "index.html"),
        ("/?detail=true", "index.html"),
        ("/hosts/gpu01.html?term=true", "hosts/gpu01.html"),
        ("/states/?term=true", "term.txt"),
        ("/states?term=true&detail=true", "detail.txt"),
        ("/states/index.json?term=true", "term.txt"),
        ("/states/gpu01/?term=true", "hosts/gpu01.txt"),
        ("/states/gpu01?term=true", "hosts/gpu01.txt"),
        ("/states/gpu01/?term=true&detail=true", "hosts/gpu01.txt"),
        ("/states/gpu01:2222/?term=true", "hosts/gpu01_2222.txt"),
        ("/states/gpu01/?term=true&fetch_num=3", "hosts/gpu01.txt"),
        ("/states/gpu01/?term=false", HOST),
    ],
)
def test_a_terminal_gets_text(target, path):
    """For term=true, and more of it for detail=true; of two, the first counts, as in nginx."""
    assert wanted(target) == Wanted(path)


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/states/", STATES),
        ("/states", STATES),
        ("/states/index.json", STATES),
        ("//states//", STATES),
        ("/states/gpu01/", HOST),
        ("/states/gpu01", HOST),
        ("/states//gpu01//", HOST),
        ("/%73tates/gpu0%31/", HOST),
        ("/states/gpu01/index.json", HOST),
        ("/states/gpu01:2222/", "states/gpu01_2222/index.json"),
        ("/states/[::1]:22/", "states/___1__22/index.json"),
    ],
)
def test_a_program_gets_states(target, path):
    """All of them, or a host's; it may be named with its port."""
    assert wanted(target) == Wanted(path)


@pytest.mark.parametrize(
    ("target", "asked"),
    [
        ("/states/?fetch_num=1", Wanted(STATES, 1)),
        ("/states/gpu01/?fetch_num=12", Wanted(HOST, 12)),
        ("/states/gpu01?fetch_num=12", Wanted(HOST, 12)),
        ("/states/gpu01/?fetch_num=007", Wanted(HOST, 7)),
        ("/states/gpu01/?fetch_num=999999", Wanted(HOST, 999999)),
        ("/states/gpu01/?fetch_num=", Wanted(HOST)),
        ("/states/gpu01/?fetch_num", Wanted(HOST)),
        ("/?fetch_num=x", Wanted("index.html")),
        ("/states/gpu01/index.json?fetch_num=7", Wanted(HOST, 7)),
    ],
)
def test_so_many_samples_are_wanted(target, asked):
    """Of the addresses that vesta has; elsewhere the word means nothing."""
    assert wanted(target) == asked


@pytest.mark.parametrize(
    "number",
    ["0", "00", "-1", "+1", "abc", "1.5", "1e3", "1000000", "9" * 5000, "%31", "1%20", "\u0663",
     "1&fetch_num=1", "&fetch_num=2"],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/states/", "/states/gpu01/"])
def test_a_wrong_number_is_an_error(path, number):
    """It says what is right."""
    with pytest.raises(ValueError, match=r"^fetch_num is a whole number from 1 to 999999$"):
        wanted(f"{path}?fetch_num={number}")


@pytest.mark.parametrize(
    "target",
    ["/..", "/../x", "/hosts/../../x", "/%2e%2e/x", "/..%2fx", "/.manifest", "/%2emanifest", "/hosts/.x",
     "/states/../", "/states/../?term=true", "/states/..%2f..%2fx/?term=true", "/states/.x/", "/x%00.html",
     "/./x", "*", "x", "states/", "ftp://mon.lab/"],
)  # fmt: skip
def test_no_file_is_meant(target):
    """Nothing with dots in front, and nothing that does not start at the top."""
    assert wanted(target) is None


@pytest.mark.parametrize(
    ("target", "is_one"),
    [
        ("/states", True), ("/states/", True), ("/states?fetch_num=0", True), ("/states/x/?term=true", True),
        ("//states/x", True), ("/%73tates/x", True), ("http://mon.lab/states/x", True),
        ("/", False), ("/statesmen", False), ("/x/states/", False), ("", False), ("/?/states/", False),
    ],
)  # fmt: skip
def test_whoever_asks_for_states_is_a_program(target, is_one):
    """It reads JSON, in an error too."""
    assert is_from_a_program(target) is is_one


PARTS = st.sampled_from(
    ["/", "//", "states", "..", ".", "%2e", "%2f", "%00", "\x00", "gpu01", ":22", "?", "&", "=", "#", "term",
     "true", "detail", "fetch_num", "3", "http://", "[", "\\", "\n", "\ud800", "%ff", ".manifest",
     "index.json", "ü"]
)  # fmt: skip


@given(st.text(max_size=60) | st.lists(PARTS, max_size=14).map("".join))
@example("http://[")
@example("/states/" + "a" * 5000)
@example("/?" + "&" * 5000)
def test_no_target_leads_out_of_the_folder(target):
    """Whatever it is: no other exception, no way up, no hidden file, nothing absolute, no NUL."""
    is_from_a_program(target)
    try:
        asked = wanted(target)
    except ValueError:
        assert "fetch_num" in target.lower()
        return
    if asked is None:
        return
    assert asked.path
    assert not any(part.startswith(".") or part == "" for part in asked.path.split("/"))
    assert "\x00" not in asked.path
    assert asked.samples is None or asked.samples > 0
