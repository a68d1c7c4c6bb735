"""Keys made by ssh-keygen, as the hosts and the users of a real lab have them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from servers.programs import need

if TYPE_CHECKING:
    from pathlib import Path


def make_key(path: Path, kind: str = "ed25519", *, passphrase: str = "", comment: str = "test") -> Path:
    """Make a key pair, or return the one that is there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        size = ["-b", "2048"] if kind == "rsa" else []
        keygen("-t", kind, *size, "-N", passphrase, "-C", comment, "-f", str(path))
    return path


def public(path: Path) -> str:
    """Return a key's public line, `ssh-ed25519 AAAA…`, without its comment."""
    return " ".join(path.with_name(path.name + ".pub").read_text().split()[:2])


def keygen(*arguments: str) -> str:
    """Run ssh-keygen and return what it says."""
    program = need("ssh-keygen", "openssh-client")
    return subprocess.run(
        [program, "-q", *arguments], check=True, capture_output=True, text=True, stdin=subprocess.DEVNULL
    ).stdout
