"""~/.ssh/config, as far as webmon honours it.

OpenSSH's own rules: the first value found wins, IdentityFile and CertificateFile add up, Include is
followed, Host patterns may be negated. Of Match, `all`, `host`, `originalhost`, `user` and
`localuser` are understood; a block with any other criterion (`exec` …) does not apply.
paramiko's reader knows no Include, runs commands for Match exec, and looks at every block for
every host; here a host is looked up in one step however many blocks there are.
"""

from __future__ import annotations

import glob
import os
import pwd
import shlex
import socket
from collections import defaultdict
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

SYSTEM_FILE = Path("/etc/ssh/ssh_config")
_SEVERAL = {"identityfile", "certificatefile"}
_MAX_DEPTH = 16


@dataclass(frozen=True, slots=True)
class Value:
    """A directive's value, and where it stands."""

    text: str
    where: str


@dataclass(slots=True)
class _Block:
    """Directives under a Host or Match line; all conditions have to hold."""

    conditions: list[tuple[str, list[str]]]
    directives: list[tuple[str, Value]] = field(default_factory=list)


class SshConfig:
    """The directives of the user's and the system's ssh_config."""

    def __init__(self, files: list[Path] | None = None) -> None:
        """Read the files; those that can't be read are left out, as ssh does."""
        self.warnings: list[str] = []
        self._blocks: list[_Block] = []
        self._exact: dict[str, list[int]] = defaultdict(list)
        self._general: list[int] = []
        for path in files if files is not None else [Path(os.path.expanduser("~/.ssh/config")), SYSTEM_FILE]:
            self._read(path, [], 0)
        for number, block in enumerate(self._blocks):
            exact = _exact_names(block)
            for name in exact or ():
                self._exact[name].append(number)
            if exact is None:
                self._general.append(number)

    def lookup(self, host: str, user: str | None = None) -> dict[str, list[Value]]:
        """Return the directives that apply to a host, their names in lower case."""
        found: dict[str, list[Value]] = {}
        for number in sorted({*self._exact.get(host.lower(), ()), *self._general}):
            block = self._blocks[number]
            if not all(_holds(kind, args, host, user, found) for kind, args in block.conditions):
                continue
            for key, value in block.directives:
                if key in _SEVERAL:
                    found.setdefault(key, []).append(value)
                elif key not in found:
                    found[key] = [value]
        return found

    def _read(self, path: Path, conditions: list[tuple[str, list[str]]], depth: int) -> None:
        if depth > _MAX_DEPTH:
            self.warnings.append(f"{path}: Include goes deeper than {_MAX_DEPTH} files")
            return
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError as error:
            if not isinstance(error, FileNotFoundError):
                self.warnings.append(f"{path}: {error.strerror}")
            return
        outer = conditions
        block = self._start(outer)
        for number, line in enumerate(text.splitlines(), start=1):
            key, args = _words(line)
            if key == "host":
                block = self._start([*outer, ("host", args)])
            elif key == "match":
                block = self._start([*outer, ("match", args)])
            elif key == "include":
                for included in _included(args, path):
                    self._read(included, block.conditions, depth + 1)
                block = self._start(block.conditions)
            elif key and args:
                block.directives.append((key, Value(" ".join(args), f"{path}:{number}")))

    def _start(self, conditions: list[tuple[str, list[str]]]) -> _Block:
        block = _Block(conditions)
        self._blocks.append(block)
        return block


def expand_tokens(text: str, *, host: str, original: str, user: str, port: int) -> str:
    """Replace %h, %n, %r, %p, %d, %u, %i, %% and a leading ~, as ssh_config(5) has them."""
    home = os.path.expanduser("~")
    tokens = {
        "%%": "%",
        "%h": host,
        "%n": original,
        "%r": user,
        "%p": str(port),
        "%d": home,
        "%u": local_user(),
        "%i": str(os.getuid()),
        "%l": socket.gethostname() if "%l" in text else "",
    }
    out, rest = "", text
    while rest:
        if rest[:2] in tokens:
            out, rest = out + tokens[rest[:2]], rest[2:]
        else:
            out, rest = out + rest[0], rest[1:]
    return os.path.expanduser(out)


def local_user() -> str:
    """Return who runs webmon, as ssh sees it: by the user id, whatever the environment says."""
    return _user_name(os.getuid())


@cache
def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _words(line: str) -> tuple[str, list[str]]:
    line = line.strip()
    if not line or line.startswith("#"):
        return "", []
    key, _, rest = line.replace("\t", " ").partition(" ")
    if "=" in key:
        key, _, value = key.partition("=")
        rest = f"{value} {rest}"
    rest = rest.strip().removeprefix("=").strip()
    try:
        return key.lower(), list(_lexer(rest))
    except ValueError:
        return key.lower(), rest.split()


def _lexer(text: str) -> shlex.shlex:
    """Split at spaces, quotes honoured; a backslash is a letter like any other."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split = True
    lexer.escape = ""
    return lexer


def _included(args: list[str], path: Path) -> list[Path]:
    base = (
        SYSTEM_FILE.parent if path.is_relative_to(SYSTEM_FILE.parent) else Path(os.path.expanduser("~/.ssh"))
    )
    found: list[Path] = []
    for arg in args:
        pattern = os.path.join(base, os.path.expanduser(arg))
        found += [Path(name) for name in sorted(glob.glob(pattern))]
    return found


def _exact_names(block: _Block) -> list[str] | None:
    """Return the only hosts that this block can be about; None when it has to be tried."""
    for kind, args in block.conditions:
        if kind == "host" and args and not any(set(arg) & set("*?!") for arg in args):
            return [arg.lower() for arg in args]
    return None


def _holds(kind: str, args: list[str], host: str, user: str | None, found: dict[str, list[Value]]) -> bool:
    if kind == "host":
        return matches(host, args)
    return _match_holds(args, host, user, found)


def _match_holds(args: list[str], host: str, user: str | None, found: dict[str, list[Value]]) -> bool:
    words = list(args)
    while words:
        criterion = words.pop(0).lower()
        if criterion == "all":
            continue
        if not words:
            return False
        patterns = words.pop(0).split(",")
        if criterion == "originalhost":
            subject = host
        elif criterion == "host":
            subject = found["hostname"][0].text if "hostname" in found else host
        elif criterion == "localuser":
            subject = local_user()
        elif criterion == "user":
            subject = user or (found["user"][0].text if "user" in found else local_user())
        else:
            return False
        if not matches(subject, patterns):
            return False
    return bool(args)


def matches(subject: str, patterns: list[str]) -> bool:
    """Tell whether a name fits OpenSSH's patterns: one of them, and none with an exclamation mark."""
    subject = subject.lower()
    matched = False
    for pattern in patterns:
        bare = pattern.removeprefix("!").lower().replace("[", "[[]")
        if fnmatchcase(subject, bare):
            if pattern.startswith("!"):
                return False
            matched = True
    return matched
