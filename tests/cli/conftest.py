"""What the tests of the commands share: a machine, a cluster's data folder, and terminals."""

from __future__ import annotations

import signal
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import pytest
from clusters_seen import cluster
from past_seen import past
from servers.here import Here
from servers.states import healthy

from webmon.cli import main
from webmon.publish.serve import Server
from webmon.store import snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Said(NamedTuple):
    """What a command has said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines on standard output."""
        return self.out.splitlines()


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Said]]:
    """Run `webmon …` in this process: `say("users", "--data", folder, COLUMNS="80")`."""
    before = signal.getsignal(signal.SIGTERM)

    def run(*arguments: str | Path, **variables: str) -> Said:
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            code = main([str(argument) for argument in arguments])
        return Said(code, *capsys.readouterr())

    yield run
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of a cluster with a past (`past_seen`); it is only looked at."""
    folder = tmp_path_factory.mktemp("known") / "data"
    past(folder)
    return folder


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
