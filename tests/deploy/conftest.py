"""What the tests of `webmon deploy` share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from servers.command import webmon
from servers.settings import write_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

# As in `@CONFIG@`; not in `SystemCallFilter=@system-service`, nor in an address.
PLACEHOLDER = re.compile(r"@[A-Z_]+@")


@pytest.fixture
def printed(tmp_path: Path) -> Callable[..., str]:
    """What a `webmon deploy WHAT …` prints, with a configuration of the test's own."""

    def run(what: str, *arguments: str, common: dict[str, Any] | None = None, **sections: Any) -> str:
        folder = sections.pop("folder", tmp_path)
        folder.mkdir(parents=True, exist_ok=True)
        config = write_config(folder, {"hosts": ["gpu01"], **(common or {})}, **sections)
        result = webmon("deploy", what, "-c", config, *arguments)
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        assert not PLACEHOLDER.search(result.stdout)
        return result.stdout

    return run


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., str]:
    """What a `webmon deploy WHAT …` complains of."""

    def run(what: str, *arguments: str, common: dict[str, Any] | None = None, **sections: Any) -> str:
        folder = sections.pop("folder", tmp_path)
        folder.mkdir(parents=True, exist_ok=True)
        config = write_config(folder, {"hosts": ["gpu01"], **(common or {})}, **sections)
        result = webmon("deploy", what, "-c", config, *arguments)
        assert result.returncode == 2
        assert result.stdout == ""
        assert len(result.stderr.splitlines()) == 1
        return result.stderr

    return run
