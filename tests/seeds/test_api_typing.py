"""The API is typed: mypy follows a user's script into it, and finds what is wrong there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

RIGHT = """
import webmon
from webmon import GpuInfo, available_gpus, gpu_info, gpuselect, gpustatus, select, snapshot


def suits(gpu: GpuInfo) -> bool:
    return "3090" in gpu.name and gpu.util <= 5 and gpu.mem_free > 20 * 2**30


ids: str = gpuselect(count=2, devices=[0, 1], util=5, selector=suits, silent=True)
one: str = gpuselect(1, 0)
indices: list[str] = available_gpus(max_used_percent=10)
used: object = gpu_info()[0]["mem_used"]
states: list[int] = [gpu["performance_state"] for gpu in gpustatus(only_cvd=False)]
with select(2, name="A6000", free_memory_mib=20_000, sort="free-memory") as selection:
    environment: dict[str, str] = selection.environment
    models: list[str | None] = [gpu.name for gpu in selection.gpus]
last = webmon.snapshot("http://monitor/gpus/")
free = [(gpu.host, gpu.index) for gpu in last.gpus if gpu.state == "free"]
last.frames()["gpus"].sort_values("memory_used_mib")
webmon.gpuselect(name="A6000")
"""


def mypy(folder, script):
    """Let mypy check a script, as strictly as it can."""
    (folder / "script.py").write_text(script)
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(folder / "cache"), "script.py"],
        cwd=folder, capture_output=True, text=True, check=False, timeout=110,
        env={name: value for name, value in os.environ.items() if name != "MYPYPATH"},
    )  # fmt: skip


@pytest.mark.timeout(240)
def test_a_script_that_is_right_and_one_that_is_wrong(tmp_path):
    """Wrong arguments, wrong results, names that are not there: each line is found."""
    done = mypy(tmp_path, RIGHT)
    assert done.returncode == 0, done.stdout
    wrong = [
        'gpuselect(count="two")',
        "gpuselect(counts=2)",
        "gpuselect(selector=lambda gpu: gpu.utilization > 5)",
        "number: int = gpuselect()",
        'select(sort="colour")',
        'select(1, "A6000")',
        'snapshot(folder="data")',
        "snapshot().gpu",
        "webmon.gpuselct()",
        "from webmon import gpuselct",
    ]
    done = mypy(tmp_path, RIGHT + "\n".join(wrong) + "\n")
    first = RIGHT.count("\n") + 1
    found = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    assert found == set(range(first, first + len(wrong))), done.stdout
