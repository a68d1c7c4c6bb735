"""What the tests of the commands share: a machine, a cluster's data folder, and terminals."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from clusters_seen import cluster
from servers.here import Here
from servers.states import healthy

from webmon.publish.serve import Server
from webmon.store import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def here(tmp_path: Path) -> Here:
    """This machine, with four idle cards."""
    return Here(tmp_path, healthy(4))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data folder of a cluster that was seen just now."""
    snapshot.save(tmp_path / "data", cluster(), keep=3)
    return tmp_path / "data"


@pytest.fixture
def serve() -> Iterator[Callable[[Path], str]]:
    """Serve a folder on loopback: `serve(folder)` returns its address."""
    with ExitStack() as stack:

        def start(folder: Path) -> str:
            server = stack.enter_context(Server(folder, "127.0.0.1", 0))
            thread = threading.Thread(target=server.serve_forever, args=(0.02,))
            thread.start()
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            return server.url

        yield start
