"""Python and shell as a user of the seeds types them, run on a pretended machine; what a table shows."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

    from servers.here import Here


def python(
    here: Here, script: str, *arguments: str, fails: bool = False, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a script as a program of its own; warnings are errors. It succeeds unless it is said to fail."""
    done = here.run([sys.executable, "-W", "error", "-c", script, *arguments], **options)
    assert (done.returncode != 0) == fails, done.stderr
    return done


def shell(here: Here, line: str, **options: Any) -> str:
    """Run a line of shell and return what it printed; it succeeds, and says nothing else."""
    done = here.run(line, **options)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def rows(table: str) -> list[dict[str, str]]:
    """Read a table by the columns of its header, which two spaces separate."""
    header, *lines = table.splitlines()
    starts = [(found[0], found.start()) for found in re.finditer(r"\S+(?: \S+)*", header)]
    ends = [start for _, start in starts[1:]] + [None]
    return [
        {name: line[start:end].strip() for (name, start), end in zip(starts, ends, strict=True)}
        for line in lines
    ]
