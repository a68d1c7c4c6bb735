"""What the tests of picking share: a pretended machine, and an end for all that was started on it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from desk import MARK, Desk
from servers import processes
from servers.states import healthy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Desk]]:
    """Pretend that this machine has GPUs: `machine(4)`, or `machine(state)`.

    Its files are not in pytest's folder, which the next pytest that starts closes to all other users.
    """
    everything = Path(tempfile.mkdtemp(prefix="webmon-test-"))
    monkeypatch.setenv(MARK, str(everything))
    made: list[Desk] = []

    def make(state: object = 1) -> Desk:
        folder = everything / f"machine-{len(made)}"
        folder.mkdir()
        made.append(Desk(folder, healthy(state) if isinstance(state, int) else state))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for desk in made:
        desk.close()
    left = processes.marked(f"{MARK}={everything}\0")
    processes.kill(*left)
    shutil.rmtree(everything)
    assert processes.wait_until_gone(left) == []
