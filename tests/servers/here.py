"""This machine, pretended to have GPUs: a stand-in nvidia-smi on the PATH, and a folder for the claims.

here = Here(folder, healthy(4))
here.webmon("select", "--", "python", "train.py")
here.state["gpus"][0]["utilization.gpu"] = "97"; here.save()
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import webmon as package
from servers.command import STRICT_WEBMON, WEBMON

if TYPE_CHECKING:
    from collections.abc import Sequence

STANDIN = Path(package.__file__).parent / "demo" / "nvidia_smi.py"


class Here:
    """Runs webmon, or anything else, where this nvidia-smi is found first."""

    def __init__(self, folder: Path, state: dict[str, Any] | None = None) -> None:
        """Put its files into `folder`, which any user may read."""
        self.folder = folder
        for above in (folder, *folder.parents):
            if above.stat().st_uid == os.getuid():
                above.chmod(above.stat().st_mode | 0o055)
        self.bin = folder / "bin"
        self.bin.mkdir()
        self.claims = folder / "claims"
        self.claims.mkdir()
        self.claims.chmod(0o1777)
        self.state: dict[str, Any] = state if state is not None else {"gpus": [], "processes": []}
        self.save()
        standin = shlex.join([sys.executable, "-I", "-S", str(STANDIN)])
        self.program("nvidia-smi", f'exec {standin} "$@"')
        self.program("webmon", f'exec {shlex.join(WEBMON)} "$@"')

    def program(self, name: str, script: str) -> Path:
        """Put a shell script on the PATH, in front of all others."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def save(self) -> None:
        """Let nvidia-smi say what `state` says now; readers see the old or the new, whole."""
        new = self.folder / "state.new"
        new.write_text(json.dumps(self.state))
        new.chmod(0o644)
        new.rename(self.folder / "state.json")

    @property
    def environment(self) -> dict[str, str]:
        """The environment of whoever works on this machine."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith("CUDA_")},
            "PATH": f"{self.bin}:{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin",
            "WEBMON_STANDIN": str(self.folder / "state.json"),
            "WEBMON_CLAIMS": str(self.claims),
        }

    def webmon(self, *arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run `webmon …` to its end, without a terminal; warnings are errors."""
        return self.run([*STRICT_WEBMON, *map(str, arguments)], **options)

    def run(self, command: str | Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command, or a line of shell, to its end."""
        options = {"timeout": 60, "cwd": self.folder, "stdin": subprocess.DEVNULL} | options
        return subprocess.run(
            ["sh", "-c", command] if isinstance(command, str) else command,
            check=False,
            capture_output=True,
            text=True,
            env=self.environment | options.pop("env", {}),
            **options,
        )

    def start(self, *arguments: str | Path, **options: Any) -> subprocess.Popen[str]:
        """Start `webmon …` and return at once; whoever starts it ends it."""
        options = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "stdin": subprocess.DEVNULL,
            "cwd": self.folder,
        } | options
        return subprocess.Popen(
            [*WEBMON, *map(str, arguments)],
            text=True,
            env=self.environment | options.pop("env", {}),
            **options,
        )
