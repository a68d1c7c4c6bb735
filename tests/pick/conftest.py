"""What the tests of picking share: a pretended machine, and an end for all that was started on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from desk import MARK, Desk
from servers import processes
from servers.states import healthy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Desk]]:
    """Pretend that this machine has GPUs: `machine(4)`, or `machine(state)`."""
    monkeypatch.setenv(MARK, str(tmp_path))
    made: list[Desk] = []

    def make(state: object = 1) -> Desk:
        folder = tmp_path / f"machine-{len(made)}"
        folder.mkdir()
        made.append(Desk(folder, healthy(state) if isinstance(state, int) else state))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for desk in made:
        desk.close()
    left = processes.marked(f"{MARK}={tmp_path}\0")
    processes.kill(*left)
    assert processes.wait_until_gone(left) == []
