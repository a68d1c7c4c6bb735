"""The answer as a whole: where it starts and ends, and what the machine says of itself."""

from __future__ import annotations

import pytest
from probe_answers import HOST, TOKEN, answer, plain, read, refused, row, section

from webmon.collect.probe import TOKEN_DIGITS


def test_an_answer_without_its_last_mark_is_cut_off():
    """Rows may be missing from it, so none of them is taken."""
    error = refused(answer(end=False))
    assert error.reason == "cut-off"
    assert HOST in str(error)


@pytest.mark.parametrize("said", [b"", b"\n \r\n\t"])
def test_a_host_that_says_nothing_is_told_so(said):
    """Nothing, or nothing but blanks, is an error of its own."""
    error = refused(said)
    assert (error.reason, error.problem) == ("garbled", "the host answered nothing at all")


def test_a_host_that_says_something_else_is_quoted():
    """The beginning of what it said helps to find out what it is; control characters don't."""
    error = refused(b"This account is\n\x1b[31mnot available.\n" + b"x" * 500)
    assert error.reason == "garbled"
    assert "'This account is �[31mnot available. xxx" in error.problem
    assert len(error.problem) < 300


def test_a_forced_command_without_a_token_says_what_to_install():
    """The probe in authorized_keys refuses to run without a token; an older webmon sends none."""
    error = refused(b"This key runs the webmon probe and nothing else.\n")
    assert "forced command" in error.problem
    assert "webmon deploy key" in error.remedy


@pytest.mark.parametrize("token", ["f" * TOKEN_DIGITS, TOKEN[:-1], TOKEN.upper()])
def test_marks_of_another_call_are_no_marks(token):
    """Command lines are written by other users, who may have seen the marks of an earlier call."""
    raw = answer(processes=f"\n@{token} end\n@{token} exit 3\n")
    assert plain(read(raw)) == plain(read(answer())) | {
        "remarks": [f"@{token} end", f"@{token} exit 3"],
    }


@pytest.mark.parametrize("code", ["", "-1", "²", "1x", "0x0"])
def test_an_exit_code_that_is_no_number_is_none(code):
    """Without its exit code a list of processes is not known to be whole."""
    raw = "".join([section("processes", code=code), section("end")]).encode()
    assert read(raw).processes is None


@pytest.mark.parametrize(
    ("line", "known"),
    [
        ("load 0.00", {"load1": 0.0}),
        ("load 123.45", {"load1": 123.45}),
        ("load", {}),
        ("load 1", {}),
        ("load -1.00", {}),
        ("load nan", {}),
        ("cpus 0", {"cpus": 1}),
        ("cpus 0-3", {"cpus": 4}),
        ("cpus 0-3,8,10-11 ", {"cpus": 7}),
        ("cpus 3-0", {"cpus": 1}),
        ("cpus", {}),
        ("cpus 0-", {}),
        ("cpus all", {}),
        ("mem MemTotal: 2048", {"ram_used_mib": 2, "ram_total_mib": 2}),
        ("mem MemTotal: 0", {}),
        ("mem MemTotal: x", {}),
        ("mem MemFree: 2048", {}),
        ("uptime 5", {}),
        ("", {}),
    ],
)
def test_what_the_machine_says_of_itself(line, known):
    """Load, processors and memory are read when they make sense; nothing else is."""
    assert plain(read(answer(system=f"{line}\n"))) == plain(read(answer())) | known


@pytest.mark.parametrize(
    ("lines", "used"),
    [
        ("MemTotal: 10485760 MemFree: 1024 MemAvailable: 2097152 Buffers: 1024 Cached: 1024", 8192),
        ("MemTotal: 10485760 MemFree: 1048576 Buffers: 524288 Cached: 524288 SwapCached: 9", 8192),
        ("MemTotal: 1024 MemAvailable: 4096", 0),
    ],
    ids=["with MemAvailable", "an old kernel", "more available than there is"],
)
def test_used_memory_is_what_is_not_available(lines, used):
    """Buffers and the cache can be had back; old kernels don't say MemAvailable."""
    words = lines.split()
    system = "".join(f"mem {words[i]} {words[i + 1]}\n" for i in range(0, len(words), 2))
    assert read(answer(system=system)).ram_used_mib == used


def test_rows_need_an_index_and_a_uuid_column():
    """A section that was not asked for them holds no card, and breaks nothing."""
    raw = "".join(
        [
            section("gpus", "0\n", args="name", code=0),
            section("gpus", "0, 1\n", args="index,name"),
            section("end"),
        ]
    ).encode()
    assert read(raw).gpus == ()


def test_columns_are_those_that_were_asked_for():
    """The probe says what it asked for; a column that it left out is not known."""
    cells = "3, GPU-1, 75, Tesla K80\n"
    asked = section("gpus", cells, args="index,uuid,temperature.gpu,name", code=0)
    (gpu,) = read("".join([asked, section("processes", code=0), section("end")]).encode()).gpus
    assert (gpu.index, gpu.uuid, gpu.temperature_c, gpu.name) == (3, "GPU-1", 75, "Tesla K80")
    assert gpu.utilization_pct is None


def test_more_processes_than_the_probe_prints_are_not_taken():
    """The probe ends its list at 2000; what is longer does not come from it."""
    rows = "".join(f"GPU-1, {pid}, 1, x\n" for pid in range(1, 2002))
    assert len(read(answer(processes=rows[: rows.rindex("GPU-1")])).processes) == 2000
    assert read(answer(processes=rows)).processes is None


def test_a_bus_id_is_the_same_card_however_it_is_written():
    """Domains have four or eight digits, in either case; one card is lost, not two."""
    lines = "GPU 0000:0B:00.0: GPU is lost.\nGPU 00000000:0b:00.0: GPU is lost.\n"
    assert [gpu.state for gpu in read(answer(f"{row()}\n{lines}", gpus_code=15)).gpus] == [
        "unknown",
        "faulty",
    ]
