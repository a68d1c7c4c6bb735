"""`hosts`: ranges, users, ports, IPv6 addresses."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webmon.config.hostlist import HostName, expand, parse, split

WORDS = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
IPV6 = st.ip_addresses(v=6).map(str).filter(lambda address: ":" in address)
PORTS = st.none() | st.integers(1, 65535)
USERS = st.none() | st.from_regex(r"[a-z][a-z0-9._@-]{0,8}", fullmatch=True)
RANGES = st.tuples(st.integers(0, 99), st.integers(0, 20), st.integers(1, 4))


@pytest.mark.parametrize(
    ("entry", "names"),
    [
        ("gpu01", ["gpu01"]),
        ("gpu[01-03]", ["gpu01", "gpu02", "gpu03"]),
        ("gpu[8-11]", ["gpu8", "gpu9", "gpu10", "gpu11"]),
        ("gpu[08-11]", ["gpu08", "gpu09", "gpu10", "gpu11"]),
        ("gpu[1,3,7-8].lab", ["gpu1.lab", "gpu3.lab", "gpu7.lab", "gpu8.lab"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("bob@gpu[1-2]:2222", ["bob@gpu1:2222", "bob@gpu2:2222"]),
        ("10.0.0.[9-10]", ["10.0.0.9", "10.0.0.10"]),
        ("gpu[5]", ["gpu5"]),
        ("gpu[5-5]", ["gpu5"]),
        ("[::1]:22", ["[::1]:22"]),
        ("[fe80::1-2]", ["[fe80::1-2]"]),
        ("gpu[]", ["gpu[]"]),
    ],
)
def test_a_range_is_expanded(entry, names):
    """Zeros in front are kept; an IPv6 address is no range."""
    assert expand(entry) == names


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("gpu[3-1]", "'gpu[3-1]' counts down; write [1-3]"),
        ("gpu[1-]", "is not a range; a range is written gpu[01-16]"),
        ("gpu[1--2]", "is not a range"),
        ("gpu[1,,2]", "is not a range"),
        ("gpu[1-2-3]", "is not a range"),
        (f"gpu[0-{'9' * 40}]", "is not a range"),
        ("gpu[0-99999]", "stands for more than 20000 hosts"),
        ("a[0-999]b[0-99]", "stands for more than 20000 hosts"),
    ],
)
def test_a_range_that_is_none_says_why(entry, problem):
    """With the entry in it, as it was written."""
    with pytest.raises(ValueError, match=r"range|down|hosts") as raised:
        expand(entry)
    assert entry in str(raised.value)
    assert problem in str(raised.value)


def test_the_longest_range_is_twenty_thousand_hosts():
    """In one range or in the product of several."""
    assert len(expand("gpu[1-20000]")) == len(expand("a[0-199]b[0-99]")) == 20_000
    assert len(expand(f"gpu[{'0' * 14}1-{'0' * 14}2]")) == 2


@given(st.lists(st.tuples(WORDS, RANGES), min_size=1, max_size=2), WORDS)
def test_any_range_is_all_of_its_numbers(pieces, end):
    """In their order, with the width of the first."""
    written, lists = "", []
    for word, (first, more, width) in pieces:
        start = f"{first:0{width}d}"
        written += f"{word}[{start}-{first + more}]"
        lists.append([f"{word}{number:0{len(start)}d}" for number in range(first, first + more + 1)])
    assert expand(written + end) == ["".join(parts) + end for parts in product(*lists)]


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("gpu01", HostName("gpu01", "gpu01")),
        ("gpu01.lab.example", HostName("gpu01.lab.example", "gpu01.lab.example")),
        ("bob@gpu01", HostName("gpu01", "gpu01", "bob")),
        ("gpu01:2222", HostName("gpu01:2222", "gpu01", None, 2222)),
        ("bob@gpu01:2222", HostName("gpu01:2222", "gpu01", "bob", 2222)),
        ("bob@corp@gpu01", HostName("gpu01", "gpu01", "bob@corp")),
        ("10.0.0.1:22", HostName("10.0.0.1:22", "10.0.0.1", None, 22)),
        ("a:1", HostName("a:1", "a", None, 1)),
        ("a:65535", HostName("a:65535", "a", None, 65535)),
        ("x" * 200, HostName("x" * 200, "x" * 200)),
        ("[::1]", HostName("[::1]", "::1")),
        ("[::1]:2222", HostName("[::1]:2222", "::1", None, 2222)),
        ("bob@[fe80::1%eth0]:22", HostName("[fe80::1%eth0]:22", "fe80::1%eth0", "bob", 22)),
        ("fe80::1", HostName("fe80::1", "fe80::1")),
        ("bob@2001:db8::1", HostName("2001:db8::1", "2001:db8::1", "bob")),
        ("gpü01", HostName("gpü01", "gpü01")),
    ],
)
def test_an_entry_is_taken_apart(text, host):
    """The name is the entry without its user, with its port where it was written."""
    assert parse(text) == host


@pytest.mark.parametrize("text", ["self", "bob@self"])
def test_self_is_this_machine(text):
    """Without SSH, so without a user; a name that only begins like it is another."""
    assert parse(text).is_self
    assert not parse("self:22").is_self
    assert not parse("selfish").is_self


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@gpu01",
        "bob@",
        "bob@:22",
        "gpu01:",
        "gpu01:0",
        "gpu01:65536",
        "gpu01:ssh",
        "gpu01:²",
        "gpu01:22222222222",
        "[::1",
        "[::1]x",
        "[::1]22",
        "[::1]:",
        "[gpu01]",
        "[]",
        "gpu]01",
        "gpu[01",
        "gpu[a-b]",
        "-oProxyCommand=id",
        "bob@-oProxyCommand=id",
        "gpu 01",
        "gpu/01",
        "..",
        ".gpu01",
        "a;b",
        "$(id)",
        "`id`",
        "a|b",
        "a&b",
        "<a>",
        "*",
        "gpu?",
        "!gpu01",
        "#gpu01",
        'a"b',
        "a'b",
        "a\\b",
        "a\nb",
        "a\x00b",
        "a\x7fb",
        "ssh://gpu01",
        "x" * 201,
    ],
)
def test_what_is_no_host_name_is_refused(text):
    """Nothing that a shell, ssh, a path or a page could take for something else."""
    with pytest.raises(ValueError, match=r"is not a|has no"):
        parse(text)


@given(USERS, WORDS | IPV6.map("[{}]".format), PORTS)
def test_any_entry_is_taken_apart_as_it_was_put_together(user, address, port):
    """User, address and port, each there or not."""
    name = address if port is None else f"{address}:{port}"
    entry = name if user is None else f"{user}@{name}"
    assert parse(entry) == HostName(name, address.strip("[]"), user, port)


@given(IPV6)
def test_any_ipv6_address_may_stand_without_brackets(address):
    """Then it has no port."""
    assert parse(address) == HostName(address, address)


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a, b", ["a", "b"]),
        (" a ,, b , ", ["a", "b"]),
        ("a b\n\tc", ["a", "b", "c"]),
        ("a[1,2], b", ["a[1,2]", "b"]),
        ("[a, b]", ["a", "b"]),
        ("[a[1,2], b]", ["a[1,2]", "b"]),
        ("[a]", ["a"]),
        ("[::1]", ["[::1]"]),
        ("[::1], [::2]:22", ["[::1]", "[::2]:22"]),
        ("[::1, ::2]", ["::1", "::2"]),
        ("\"a\", 'b'", ["a", "b"]),
        ("[]", []),
        ("[", ["["]),
        ("a]b, c", ["a]b", "c"]),
        ("", []),
    ],
)
def test_a_list_is_split(text, entries):
    """At its commas and blanks, though not within the brackets of a range or an address."""
    assert split(text) == entries


ENTRIES = st.one_of(
    WORDS, WORDS.map("{}[01-04,7].lab".format), IPV6.map("[{}]:22".format), WORDS.map("bob@{}:22".format)
)


@given(st.lists(ENTRIES, min_size=2), st.sampled_from([",", ", ", " ", "\n", ",\n  ", " , "]))
def test_any_list_is_split_as_it_was_joined(entries, between):
    """However its entries are kept apart, in brackets or not."""
    assert split(between.join(entries)) == entries
    assert split(f"[{between.join(entries)}]") == entries


@given(st.text(max_size=30))
def test_any_text_is_a_host_or_a_value_error(text):
    """Which the configuration turns into an error with the line."""
    for entry in split(text):
        try:
            hosts = [parse(name) for name in expand(entry)]
        except ValueError:
            continue
        assert all(host.name and host.address for host in hosts)
