"""The command itself, run as a user or cron runs it, and what it leaves in the data folder."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

WEBMON = [sys.executable, "-m", "webmon"]
STRICT_WEBMON = [sys.executable, "-W", "error", "-m", "webmon"]


def webmon(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run `webmon …` to its end, without a terminal; warnings are errors."""
    options.setdefault("timeout", 60)
    return subprocess.run(
        [*STRICT_WEBMON, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=environment(**options.pop("env", {})),
        **options,
    )


def start(*arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
    """Start `webmon …` and return at once."""
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | options
    return subprocess.Popen(
        [*WEBMON, *map(str, arguments)], text=True, env=environment(**options.pop("env", {})), **options
    )


def environment(**changes: str) -> dict[str, str]:
    """Return this process's environment with some changes."""
    return {**os.environ, **changes}


def table(data: Path, name: str) -> list[dict[str, str]]:
    """Return the rows of `data/latest/NAME.csv`."""
    with open(data / "latest" / f"{name}.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file, strict=True))


def host_rows(data: Path) -> dict[str, dict[str, str]]:
    """Return the rows of hosts.csv by host."""
    return {row["host"]: row for row in table(data, "hosts")}
