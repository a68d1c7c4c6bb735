"""What the commands that look load: nothing that takes longer than they do."""

from __future__ import annotations

import sys

import pytest

HEAVY = {"pandas", "numpy", "paramiko", "cryptography", "jinja2", "tomli"}
# These are lighter, and still the greater part of a start.
UNUSED = {"dataclasses", "inspect", "subprocess", "shutil", "pathlib", "json", "logging", "socket", "hashlib"}

RUN = """
import sys
from webmon.cli import main
code = main(sys.argv[1:])
print(*sorted(sys.modules), file=sys.stderr)
sys.exit(code)
"""


def loaded(here, *arguments):
    done = here.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{RUN}", *arguments]
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "arguments",
    [[], ["list"], ["available"], ["select"], ["select", "--count", "2", "--name", "A6000"], ["wait"]],
)
def test_looking_at_this_machine_loads_nothing_heavy(here, arguments):
    """Neither what fetch and render need, nor what the standard library has that is slow to load."""
    tickets = {"json"} if arguments == ["wait"] else set()
    assert loaded(here, *arguments) & (HEAVY | UNUSED) <= tickets


@pytest.mark.parametrize(
    "arguments",
    [["list", "--cluster"], ["available", "--cluster"], ["select", "--cluster"], ["history", "gpu07"]],
)
def test_looking_at_the_cluster_loads_nothing_heavy(here, arguments, known):
    """The CSVs of the data folder, and of its history, are read without pandas."""
    assert loaded(here, *arguments, "--data", str(known)) & HEAVY == set()
