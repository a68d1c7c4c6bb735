"""What all tests share: a home folder of their own, and real sshds."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from servers.sshd import Pretended, Sshd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

# What would let a test see how the machine that it runs on is set up.
_FOREIGN = (
    "SSH_AUTH_SOCK",
    "WEBMON_CONFIG",
    "WEBMON_SITE",
    "WEBMON_CLAIMS",
    "XDG_CONFIG_HOME",
    "NO_COLOR",
    "FORCE_COLOR",
    "WEBMON_STANDIN",
    "PYTHONUNBUFFERED",
    "COLUMNS",
)


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the tests an empty home folder: no ~/.ssh, no configuration, no agent."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        for name in _FOREIGN:
            patch.delenv(name, raising=False)
        for name in [name for name in os.environ if name.startswith("LC_") or name == "LANG"]:
            patch.delenv(name)
        patch.setenv("LC_ALL", "C.UTF-8")
        yield folder


@pytest.fixture
def start_sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Sshd]]:
    """Start sshds for one test: `start_sshd([Pretended(…), …], settings=[…])`."""
    with ExitStack() as stack:

        def start(hosts: Sequence[Pretended] = (Pretended(),), **options: Any) -> Sshd:
            return stack.enter_context(Sshd(tmp_path_factory.mktemp("sshd"), hosts, **options))

        yield start


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """One healthy host with one idle card, for all tests that leave it as it is."""
    with Sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server
