"""The API is typed: mypy follows a user's script into it, and finds what is wrong there."""

from __future__ import annotations

import os
import subprocess
import sys

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


WRONG = """
gpuselect(count="two")
gpuselect(counts=2)
gpuselect(selector=lambda gpu: gpu.utilization > 5)
number: int = gpuselect()
select(sort="colour")
select(1, "A6000")
snapshot(folder="data")
snapshot().gpu
webmon.gpuselct()
from webmon import gpuselct
"""


def test_a_wrong_call_is_found_and_a_right_one_is_not(tmp_path):
    """Arguments, results, names that are not there; as strict as mypy can be."""
    (tmp_path / "script.py").write_text(RIGHT + WRONG)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "cache", "script.py"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "MYPYPATH"},
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )
    lines = (RIGHT + WRONG).splitlines()
    found = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    assert [lines[number - 1] for number in sorted(found)] == WRONG.split("\n")[1:-1], done.stdout
