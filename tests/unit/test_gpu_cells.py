"""Every way of saying nothing, and every way of being ill, in every column."""

from __future__ import annotations

import pytest
from probe_answers import answer, plain, read, row

from webmon.collect.probe import GPU_FIELDS

# Which field of the model each column becomes.
FIELDS = {
    "driver_version": "driver",
    "utilization.gpu": "utilization_pct",
    "utilization.memory": "memory_utilization_pct",
    "memory.used": "memory_used_mib",
    "memory.total": "memory_total_mib",
    "temperature.gpu": "temperature_c",
    "power.draw": "power_w",
    "power.limit": "power_limit_w",
    "fan.speed": "fan_pct",
    "clocks.sm": "sm_clock_mhz",
    "pstate": "pstate",
    "mig.mode.current": "mig_mode",
    "name": "name",
}
NULLS = [
    "[N/A]",
    "[n/a]",
    "[Not Supported]",
    "[Insufficient Permissions]",
    "[Function Not Found]",
    "[Unknown]",
    "[]",
    "N/A",
    "n/a",
    "Unknown",
    "UNKNOWN",
    "",
]
FAULTS = ["[GPU is lost]", "[GPU requires reset]", "[Unknown Error]", "[unknown error]", "ERR!", "[ERR!]"]

EVERY_COLUMN = pytest.mark.parametrize("column", FIELDS)


def _reading(column, cell):
    return plain(read(answer(row(**{"mig__mode__current": "Disabled"} | {column.replace(".", "__"): cell}))))


def _without(reading, column):
    (gpu,) = reading["gpus"]
    gpu.pop(FIELDS[column], None)
    if column == "driver_version":
        reading.pop("driver", None)
    return reading


def test_every_column_is_tested():
    """Adding a column to the probe adds it here."""
    assert {"index", "uuid", *FIELDS} == set(GPU_FIELDS)


@EVERY_COLUMN
@pytest.mark.parametrize("token", NULLS)
def test_a_null_token_is_not_known_and_never_zero(column, token):
    """The cell is not known, everything else is as it was, and the card is well."""
    expected = _without(_reading(column, "[N/A]"), column)
    assert _reading(column, token) == expected
    assert "problem" not in expected


@EVERY_COLUMN
@pytest.mark.parametrize("token", FAULTS)
def test_a_fault_token_makes_the_card_faulty(column, token):
    """One such cell is enough, whatever the others read; they are kept."""
    reading = _reading(column, token)
    assert reading.pop("problem")["reason"] == "lost-gpu"
    (gpu,) = reading["gpus"]
    assert gpu.pop("state") == "faulty"
    healthy = _without(_reading(column, "[N/A]"), column)
    assert healthy["gpus"][0].pop("state") == "unknown"
    assert reading == healthy


@pytest.mark.parametrize("token", FAULTS)
def test_a_fault_in_place_of_the_uuid_is_a_faulty_card(token):
    """A lost card may not know who it is; it still is there."""
    (gpu,) = read(answer(row(uuid=token))).gpus
    assert (gpu.index, gpu.uuid, gpu.state) == (0, None, "faulty")


@pytest.mark.parametrize("uuid", ["[N/A]", "", "7b1d9bbe", "gpu-1", "MIG-1"])
def test_a_row_without_a_uuid_is_no_card(uuid):
    """Without a uuid nobody could say whose processes are on it."""
    reading = read(answer(row(uuid=uuid)))
    assert reading.gpus == ()
    assert len(reading.remarks) == 1


@pytest.mark.parametrize("index", ["", "-1", "x", "1.0", "12345", "[N/A]", "²"])
def test_a_row_without_an_index_is_no_card(index):
    """An index is a whole number."""
    assert read(answer(row(index=index))).gpus == ()


@pytest.mark.parametrize(
    ("column", "cell", "value"),
    [
        ("memory.used", "100 MiB", 100),
        ("memory.used", "100MiB", 100),
        ("memory.used", "100.6", 101),
        ("memory.used", "-1", None),
        ("memory.used", "1,024", None),
        ("memory.used", "1024 KiB", None),
        ("memory.used", "100000001", None),
        ("memory.used", "9" * 13, None),
        ("memory.used", "1e3", None),
        ("memory.used", "٣", None),
        ("utilization.gpu", "100 %", 100),
        ("utilization.gpu", "101", None),
        ("utilization.memory", "100", 100),
        ("utilization.memory", "101", None),
        ("memory.total", "100000000", 100_000_000),
        ("temperature.gpu", "-20", -20),
        ("temperature.gpu", "1000", 1000),
        ("temperature.gpu", "1001", None),
        ("temperature.gpu", "47 C", 47),
        ("temperature.gpu", "-101", None),
        ("power.draw", "84.24 W", 84.24),
        ("power.draw", "0.00", 0.0),
        ("fan.speed", "1000", 1000),
        ("fan.speed", "1001", None),
        ("clocks.sm", "1980 MHz", 1980),
        ("clocks.sm", "0x0", None),
    ],
)
def test_numbers_are_read_with_their_unit_or_without(column, cell, value):
    """A value that cannot be is not known, rather than shown."""
    (gpu,) = read(answer(row(**{column.replace(".", "__"): cell}))).gpus
    assert getattr(gpu, FIELDS[column]) == value


@pytest.mark.parametrize("name", ["[lab] card", "card [lab]", "[", "Unknown Model", "ERR!OR"])
def test_a_name_with_brackets_in_it_is_a_name(name):
    """Only what is all in brackets is no value."""
    (gpu,) = read(answer(row(name=name))).gpus
    assert (gpu.name, gpu.state) == (name, "unknown")


def test_there_are_so_many_cards_at_the_most():
    """A host that lists more is not what it seems."""
    rows = "\n".join(row(index=str(n), uuid=f"GPU-{n}") for n in range(1026))
    reading = read(answer(rows))
    assert len(reading.gpus) == 1024
    assert reading.remarks == ("more than 1024 rows",)


def test_a_name_is_cleaned():
    """What would move a terminal's cursor, or turn the text around, is replaced."""
    (gpu,) = read(answer(row(name="A\x1b[2J\u202eB\u200b"))).gpus
    assert gpu.name == "A�[2J�B�"
