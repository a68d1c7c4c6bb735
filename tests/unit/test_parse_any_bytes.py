"""Whatever a host sends, the parser neither raises nor takes long."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from probe_answers import ALL_FIELDS, CASES, HOST, NOW, TOKEN, answer, folder, read, row, section

from webmon.collect.parse import parse
from webmon.collect.probe import GPU_FIELDS
from webmon.errors import HostError
from webmon.model import Reading

VALID = [folder(path).encode() for path in sorted(CASES.iterdir())]
MAX_BYTES = 4 * 1024 * 1024  # what is read from a host at the most

CELLS = st.one_of(
    st.sampled_from(["[N/A]", "ERR!", "[GPU is lost]", "", "0", "100", "-1", "4294967296", "12.5", "0 MiB"]),
    st.sampled_from(["GPU-1", "GPU-2", "MIG-1", "P0", "Enabled", "python3"]),
    st.integers(-(10**14), 10**14).map(str),
    st.text(max_size=12),
)
ROWS = st.lists(CELLS, min_size=1, max_size=18).map(", ".join)
COMPLAINTS = st.sampled_from(
    [
        "Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error",
        "Unable to determine the device handle for GPU7: 0000:0B:00.0: Unknown Error",
        "WARNING: infoROM is corrupted at gpu 0000:02:00.0",
        'Field "pstate" is not a valid field to query.',
        "No devices were found",
    ]
)
OWNERS = st.tuples(
    st.integers(0, 10**11), st.integers(0, 10**13), st.text(max_size=9), st.integers(-(10**13), 10**13)
).map(lambda row: " ".join(map(str, row)) + " python x.py")
LINES = st.lists(st.one_of(ROWS, COMPLAINTS, OWNERS, st.text(max_size=30), st.just(row())), max_size=6).map(
    "\n".join
)
FIELDS = st.one_of(
    st.just(ALL_FIELDS),
    st.lists(st.sampled_from(GPU_FIELDS), max_size=16).map(",".join),
    st.text(max_size=20),
)
SECTIONS = st.builds(
    section,
    st.sampled_from(["system", "gpus", "processes", "owners", "cgroups", "end", "exit", "", "x"]),
    LINES,
    args=FIELDS,
    code=st.one_of(st.none(), st.integers(-2, 300), st.text(max_size=6)),
)
EDITS = st.lists(
    st.tuples(
        st.floats(0, 1), st.integers(0, 40), st.one_of(st.binary(max_size=8), COMPLAINTS.map(str.encode))
    ),
    min_size=1,
    max_size=6,
)


def _parsed(raw):
    result = parse(raw, TOKEN, HOST, NOW)
    assert isinstance(result, Reading | HostError)
    assert str(result)
    return result


@given(st.binary(max_size=400))
def test_any_bytes_are_a_reading_or_an_error(raw):
    """No marks, no sense: still an answer, and never an exception."""
    assert isinstance(_parsed(raw), HostError)


@given(st.lists(SECTIONS, max_size=8))
@example([section("gpus", "x", args="name"), section("end")])
@example(
    [
        section("processes", "GPU-1, 5, 1, x", code=0),
        section("owners", "5 0 root 999999999999 x"),
        section("end"),
    ]
)
def test_anything_shaped_like_an_answer_is_a_reading_or_an_error(sections):
    """A host that is not what it seems knows the token, and can send any section."""
    result = _parsed("".join(sections).encode())
    if isinstance(result, Reading):
        assert all(gpu.host == HOST and gpu.state in ("unknown", "faulty") for gpu in result.gpus)


@given(st.sampled_from(VALID), EDITS)
def test_a_spoilt_answer_is_a_reading_or_an_error(raw, edits):
    """Bytes lost, changed and added anywhere in an answer."""
    for place, lost, added in edits:
        at = int(place * len(raw))
        raw = raw[:at] + added + raw[at + lost :]
    _parsed(raw)


@given(st.sampled_from(VALID), st.floats(0, 1, exclude_max=True))
def test_an_answer_that_is_cut_off_anywhere_is_no_reading(raw, place):
    """Half of the rows would look like a host with fewer GPUs, or fewer processes."""
    whole = raw.rstrip()
    assert isinstance(_parsed(whole[: int(place * len(whole))]), HostError)


def _filled(unit):
    return (unit * (MAX_BYTES // len(unit)))[:MAX_BYTES]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("gpus", "device handle for GPU 0000:0B:00.0 "),
        ("gpus", "Unable to determine the device handle for GPU 0000:0B:00.0 "),
        ("gpus", "0, GPU-1, [GPU is lost], "),
        ("gpus", " "),
        ("gpus", row() + "\n"),
        ("processes", "GPU-1, 1, "),
        ("processes", "GPU-1, 1, 1, x\n"),
        ("processes", "Failed to initialize NVML "),
        ("owners", "1 1 " + " " * 2000),
        ("owners", "1 1 root 1 x\n"),
        ("cgroups", "1 /slurm/slurm/slurm/slurm"),
        ("cgroups", "1 " + "/slurm/job_" * 400 + "\n"),
        ("cgroups", "1 " + "/lxc/" + "a" * 60),
        ("cgroups", "1 " + "-0123456789abcdef" * 4),
        ("system", "cpus " + "0-9," * 1000),
        ("system", "mem MemTotal: 1\n"),
        ("x", "\n@" + TOKEN + " x"),
    ],
)
def test_an_answer_of_any_kind_takes_no_more_than_a_moment(name, unit):
    """As much as is ever read from a host, made to be slow: it must not delay the others."""
    parts = [section("gpus", row(), args=ALL_FIELDS, code=0), section("processes", "GPU-1, 1, 1, x", code=0)]
    raw = "".join([*parts, section(name, _filled(unit), args=ALL_FIELDS, code=0), section("end")]).encode()
    started = time.process_time()
    _parsed(raw)
    assert time.process_time() - started < 5


@pytest.mark.timeout(20)
def test_thousands_of_lost_cards_take_no_more_than_a_moment():
    """The longest list that such an answer can hold is cut short."""
    lines = "".join(f"GPU {i >> 8:04x}:{i & 255:02x}:00.0: GPU is lost\n" for i in range(60_000))
    started = time.process_time()
    reading = read(answer(lines, gpus_code=15))
    assert time.process_time() - started < 5
    assert len(reading.gpus) == 1024
