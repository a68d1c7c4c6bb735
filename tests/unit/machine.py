"""A pretended machine: a PATH of its own, on which are a stand-in nvidia-smi and chosen programs."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probe_answers import TOKEN, read
from servers.programs import need

import webmon
from webmon.collect import probe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webmon.model import Reading

STANDIN = Path(webmon.__file__).parent / "demo" / "nvidia_smi.py"
USUAL_PATH = "/usr/bin:/bin"

# What the probe adds to every PATH.
ADDED_PATH = "/usr/local/bin:/usr/sbin:/usr/local/nvidia/bin:/usr/lib/wsl/lib:/run/current-system/sw/bin"

SHELLS = {
    "sh": ("sh", "dash"),
    "dash": ("dash", "dash"),
    "bash": ("bash", "bash"),
    "busybox": ("busybox", "busybox"),
    "csh": ("csh", "tcsh"),
    "fish": ("fish", "fish"),
}


def shell(name: str) -> list[str]:
    """Return the command that starts a shell; the test is skipped where it is not installed."""
    program = need(*SHELLS[name])
    return [program, "sh"] if name == "busybox" else [program]


class Machine:
    """Runs the probe as sshd would, with nothing of this process's environment."""

    def __init__(self, folder: Path, *, path: str = USUAL_PATH) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        (folder / "home").mkdir()
        self.state = folder / "state.json"
        self._calls = folder / "calls"
        self.environment = {
            "PATH": f"{self.bin}:{path}" if path else str(self.bin),
            "HOME": str(folder / "home"),
            "WEBMON_STANDIN": str(self.state),
        }

    def says(self, state: dict[str, Any]) -> Machine:
        """Give it an nvidia-smi that answers as this state says."""
        self.state.write_text(json.dumps(state), encoding="utf-8")
        return self.program(
            "nvidia-smi", f'exec {shlex.quote(sys.executable)} -I -S {shlex.quote(str(STANDIN))} "$@"'
        )

    def program(self, name: str, text: str) -> Machine:
        """Give it a program that is a shell script; its calls are counted."""
        file = self.bin / name
        file.write_text(f'#!/bin/sh\necho "{name} $*" >> {self._calls}\n{text}\n', encoding="utf-8")
        file.chmod(0o755)
        return self

    def link(self, *names: str, target: str | None = None) -> Machine:
        """Give it real programs, or names of one that goes by many."""
        for name in names:
            program = target or shutil.which(name)
            assert program is not None, name
            (self.bin / name).symlink_to(program)
        return self

    def calls(self, name: str) -> list[str]:
        """Return the arguments of each call of a program."""
        text = self._calls.read_text(encoding="utf-8") if self._calls.exists() else ""
        return [line.partition(" ")[2] for line in text.splitlines() if line.partition(" ")[0] == name]

    def run(
        self, command: Sequence[str], text: str = "", **environment: str
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command on it, with this text as its standard input."""
        return subprocess.run(
            command,
            input=text.encode(),
            capture_output=True,
            check=False,
            timeout=30,
            cwd=self.folder,
            env={**self.environment, **environment},
        )

    def probed(self, starter: Sequence[str] = ("/bin/sh",), **options: Any) -> Reading:
        """Return what the probe reads here, sent to `SHELL -s TOKEN`."""
        done = self.run([*starter, "-s", TOKEN], probe.script(**options))
        assert (done.returncode, done.stderr) == (0, b""), done
        return read(done.stdout)


def lacks(*programs: str) -> bool:
    """Tell whether the folders that the probe adds to PATH have none of these programs."""
    return not any(shutil.which(program, path=ADDED_PATH) for program in programs)


def me() -> str:
    """Return the user that runs the tests, as `ps` names it."""
    done = subprocess.run(["id", "-un"], capture_output=True, check=True, text=True, env=dict(os.environ))
    return done.stdout.strip()
