"""What CUDA makes of CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from webmon.model import Gpu
from webmon.pick.visible import visible

UUIDS = ("GPU-aaaa1111-0000", "GPU-aaaa2222-0000", "GPU-bbbb3333-0000", None)
GPUS = [Gpu("self", index, uuid) for index, uuid in enumerate(UUIDS)]


def seen(variable):
    return [gpu.index for gpu in visible(GPUS, variable)]


@pytest.mark.parametrize(
    ("variable", "indices"),
    [
        (None, [0, 1, 2, 3]),
        ("all", [0, 1, 2, 3]),
        (" all ", [0, 1, 2, 3]),
        ("", []),
        (" ", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("none", []),
        ("void", []),
        ("0", [0]),
        ("2,0", [2, 0]),
        (" 2 , 0 ", [2, 0]),
        ("3", [3]),
        ("4", []),
        ("0,4,1", [0]),
        ("0,-1,1", [0]),
        ("0,,1", [0]),
        ("0,1,", [0, 1]),
        (",0", []),
        ("1,1,2", [1, 2]),
        ("0 1", []),
        ("0;1", []),
        ("00", [0]),
        ("0x1", []),
        ("1.0", []),
        ("+1", []),
        ("²", []),
        ("\u0661", []),
        ("9" * 4000, []),
        ("GPU-aaaa1111-0000", [0]),
        ("GPU-bbbb", [2]),
        ("GPU-b", [2]),
        ("GPU-bbbb3333-0000,GPU-aaaa1", [2, 0]),
        ("1,GPU-b", [1, 2]),
        ("GPU-aaaa", []),
        ("GPU-", []),
        ("GPU", []),
        ("gpu-bbbb", []),
        ("GPU-bbbb3333-00000", []),
        ("bbbb3333", []),
        ("GPU-b,GPU-nothing,0", [2]),
        ("MIG-GPU-bbbb3333-0000/1/0", [2]),
        ("MIG-GPU-bbbb3333-0000/1/0,MIG-GPU-bbbb3333-0000/2/0", [2]),
        ("MIG-5c7a2b1d", []),
        ("None", []),
    ],
)
def test_a_program_sees_what_the_variable_names(variable, indices):
    """By index or UUID, up to the first entry that names no GPU, or several; unset is all, empty none."""
    assert seen(variable) == indices


@settings(deadline=None, database=None)
@given(st.text(alphabet="0123456789,- GPU-abMIG/all\x00²", max_size=30) | st.text(max_size=30))
def test_whatever_is_in_the_variable_each_gpu_is_seen_at_most_once(variable):
    """Anybody may set it to anything."""
    found = seen(variable)
    assert len(found) == len(set(found))
    assert set(found) <= {0, 1, 2, 3}
