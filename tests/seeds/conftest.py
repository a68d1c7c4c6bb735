"""What the tests of the seeds' examples share: a pretended machine, and real processes on its GPUs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from servers.here import Here

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

# As in tests/unit: no deadline for one example, and nothing is left behind.
settings.register_profile(
    "seeds", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], max_examples=100
)
settings.load_profile("seeds")


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[dict[str, Any]], Here]:
    """Return what makes a machine of a state of its nvidia-smi."""
    return lambda state: Here(tmp_path, state)


@pytest.fixture
def inside(machine: Callable[..., Here], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Here]:
    """Return what makes a machine of a state, and puts this process onto it: for many small questions."""

    def enter(state: dict[str, Any], **variables: str) -> Here:
        here = machine(state)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        for name, value in (here.environment | variables).items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(here.folder)
        return here

    return enter


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Start real processes, in the test's folder, and return their pids; they end with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*command: str) -> int:
        started.append(subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.DEVNULL))
        return started[-1].pid

    yield start
    for process in started:
        process.kill()
        process.wait()
