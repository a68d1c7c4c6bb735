"""`gpustatus(only_cvd=True)` reports on what CUDA would see; tests/pick has the rules in full."""

from __future__ import annotations

import pytest
from servers.states import gpu, healthy, uuid
from typed import python

import webmon


@pytest.mark.parametrize(
    ("variable", "seen"),
    [
        (None, [0, 1, 2]),
        ("all", [0, 1, 2]),
        ("", []),
        ("  ", []),
        ("0", [0]),
        ("2,0", [0, 2]),
        (" 1 , 2 ", [1, 2]),
        (uuid(1), [1]),
        (f"{uuid(2)},{uuid(0)}", [0, 2]),
        (uuid(2)[:4], []),  # it might be any of them
        (uuid(2)[:-1] + "2", [2]),
        (f"MIG-{uuid(1)}/1/0", [1]),
        ("1,junk,2", [1]),
        ("7,1", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("9" * 6000, []),
        ("1,,2", [1]),
        ("\u0661", []),
    ],
)
def test_what_the_variable_names(inside, variable, seen):
    """By index, by UUID, or a UUID's beginning; up to the first entry that names no GPU."""
    inside(healthy(3), **({} if variable is None else {"CUDA_VISIBLE_DEVICES": variable}))
    assert [gpu["device"] for gpu in webmon.gpustatus()] == seen


def test_an_abbreviated_uuid_has_to_say_which_one_is_meant(inside, monkeypatch):
    """As for CUDA: the beginning is enough if it is that of one card only."""
    uuids = ("GPU-1e8a0000-0000-4000-8000-000000000000", "GPU-1f000000-0000-4000-8000-000000000001")
    inside({"gpus": [gpu(index, uuid=uuid) for index, uuid in enumerate(uuids)], "processes": []})
    for variable, seen in (("GPU-1f", [1]), ("GPU-1e8a", [0]), ("GPU-1", []), ("GPU-", [])):
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
        assert [gpu["device"] for gpu in webmon.gpustatus()] == seen


def test_picking_looks_at_all_gpus(machine):
    """gpuselect does, too: the variable is what it changes."""
    script = (
        "import webmon\nprint(webmon.available_gpus(), webmon.gpuselect(devices=1), len(webmon.gpu_info()))"
    )
    here = machine(healthy(2))
    assert python(here, script, env={"CUDA_VISIBLE_DEVICES": "0"}).stdout == "['0', '1'] 1 2\n"
