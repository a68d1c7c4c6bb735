"""Programs that a test needs and a machine may lack."""

from __future__ import annotations

import os
import shutil

import pytest

_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def need(program: str, package: str) -> str:
    """Return a program's path; without it, skip the test, or fail where all of them have to be there."""
    path = shutil.which(program, path=os.pathsep.join([os.environ.get("PATH", os.defpath), *_FOLDERS]))
    if path is None:
        missing = f"{program} is missing; install it with: apt-get install {package}"
        if os.environ.get("WEBMON_TESTS_REQUIRE_PROGRAMS"):
            pytest.fail(missing)
        pytest.skip(missing)
    return path
