"""Text to paste: for cron, systemd, nginx, authorized_keys and Prometheus.

The texts stand in cron/, and nowhere else: `@NAME@` in them is a value that is filled in here, and
lines that start with `##` are for whoever reads the file.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import subprocess
import sys
import textwrap
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from webmon.collect import probe
from webmon.errors import ConfigError
from webmon.resources import resource

if TYPE_CHECKING:
    from collections.abc import Iterator

    from webmon.config.settings import Config, HostSettings

# What rendering may take beyond the polling, with a year of history.
_RENDER_SECONDS = 120

# A part of a path that nginx, Prometheus and YAML all take as it is.
_PART = r"[A-Za-z0-9_~-][A-Za-z0-9._~-]*"
_URL = re.compile(
    rf"(?P<scheme>https?)://(?P<address>(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{{1,5}})?)(?P<path>(?:/{_PART})*)"
)

_PUBLIC = re.compile(r"(?:ssh|ecdsa|sk)-[a-z0-9@.-]+ +AAAA[A-Za-z0-9+/]+=*(?!\S)")


def text(what: str, config: Config, *, path: str = "/gpus/", user: str = "webmon") -> str:
    """Return the text for `cron`, `systemd`, `nginx` (the site is at `path`) or `key`."""
    if what == "cron":
        return _cron(config)
    if what == "systemd":
        return _systemd(config, user)
    if what == "nginx":
        return _nginx(config, path)
    return _key(config)


def prometheus(url: str) -> str:
    """Return the scrape configuration for a site at this address."""
    found = _URL.fullmatch(url.strip().removesuffix("index.html").rstrip("/"))
    if found is None:
        raise ConfigError(
            f"--url: {url!r} is not the address of webmon's page",
            "Give it without user and password, as in https://monitor.lab/gpus/",
        )
    values = {"SCHEME": found["scheme"], "ADDRESS": found["address"], "BARE_PATH": found["path"]}
    return _filled(_template("prometheus.yml"), values)


def _cron(config: Config) -> str:
    # cron makes a newline of every % that has no backslash before it.
    command = shlex.join(_command(config)).replace("%", r"\%")
    return _filled(_template("crontab"), {"COMMAND": command})


def _systemd(config: Config, user: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9._-]*", user):
        raise ConfigError(f"--user: {user!r} is not the name of a user", "Name one that has an account here")
    folders = [_absolute(config.data.dir), _absolute(config.site.dir)]
    # New host keys are written there; its folder, as the file may not exist yet.
    known = [
        _absolute(hop.known_hosts[0].parent)
        for host in config.hosts
        for hop in (host, *host.jumps)
        if hop.host_keys == "accept-new" and hop.known_hosts and not host.is_self
    ]
    program, *arguments = _command(config)
    # In arguments, a $ would be a variable.
    command = [_unit_word(program), *(_unit_word(word).replace("$", "$$") for word in arguments)]
    values = {
        "USER": user,
        "COMMAND": " ".join(command),
        "TIMEOUT": str(_seconds(config)),
        "WRITABLE": " ".join(_unit_word(folder) for folder in dict.fromkeys(folders + known)),
        "FOLDERS": shlex.join(folders),
        "UNLESS_SELF": "# " if any(host.is_self for host in config.hosts) else "",
    }
    return "\n".join(_filled(_template(name), values) for name in ("webmon.service", "webmon.timer"))


def _nginx(config: Config, path: str) -> str:
    parts = path.strip("/").split("/") if path.strip("/") else []
    if not all(re.fullmatch(_PART, part) for part in parts):
        raise ConfigError(
            f"--path: {path!r} is not a path that nginx can be told",
            "Take letters, digits and ._~- between slashes, as in /lab/gpus/",
        )
    site = _absolute(config.site.dir)
    if "$" in site:  # nothing can take away its meaning there
        raise ConfigError(f"{site}: nginx takes the $ for a variable", "Name another folder: [site] dir")
    bare_path = "".join(f"/{part}" for part in parts)
    head, redirect, location = _template("nginx.conf").split("\n\n", 2)
    shown = [head, redirect, location] if bare_path else [head, location]
    values = {"PATH": f"{bare_path}/", "BARE_PATH": bare_path, "SITE": f'"{site.rstrip("/")}/"'}
    return _filled("\n\n".join(shown), values)


def _key(config: Config) -> str:
    head, entry = _template("authorized_keys").split("\n\n")
    lines: dict[tuple[str, str, str], list[str]] = {}
    for name, line in _accounts(config):
        lines.setdefault(line, []).append(name)
    shown = [f"{head}\n"]
    for (options, command, key), names in lines.items():
        wrapped = textwrap.wrap(" ".join(names), 100, break_long_words=False, break_on_hyphens=False)
        values = {
            "HOSTS": "\n".join(f"# {line}" for line in wrapped),
            "OPTIONS": options,
            "COMMAND": command.replace('"', r"\""),
            "KEY": key,
        }
        shown.append(_filled(entry, values))
    return "\n".join(shown)


def _accounts(config: Config) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield the accounts that webmon logs into, each once: name, and options, command, public key."""
    asked = {host: None for host in config.hosts if not host.is_self}
    if not asked:
        raise ConfigError(f"{config.path}: no host is asked over SSH", "`self` needs no key")
    hops = [hop for host in asked for hop in pairwise((*host.jumps, host))]
    accounts: dict[tuple[str, str], HostSettings] = {}
    # Hosts first: of one that is a gateway too, sshd obeys the first line with the key only.
    for host in (*asked, *(gateway for gateway, _ in hops)):
        accounts.setdefault((host.user, _place(host)), host)
    public_key = cache(_public_key)
    for account, host in accounts.items():
        opens = sorted({_place(there) for here, there in hops if (here.user, _place(here)) == account})
        forwarding = ["port-forwarding", *(f'permitopen="{place}"' for place in opens)] if opens else []
        command = probe.forced_command(host.nvidia_smi, host.timeout) if host in asked else "false"
        key = public_key((host.key_filename,) if host.key_filename else host.identity_files)
        yield f"{host.user}@{host.name}", (",".join(["restrict", *forwarding]), command, key)


def _place(host: HostSettings) -> str:
    return f"[{host.address}]:{host.port}" if ":" in host.address else f"{host.address}:{host.port}"


def _public_key(paths: tuple[Path, ...]) -> str:
    """Return the public half, `ssh-ed25519 AAAA…`, of the first of these keys that is there."""
    for path in paths:
        # The file may be the public half itself, where an agent holds the private one.
        for name in (path.with_name(f"{path.name}.pub"), path):
            try:
                content = name.read_text(encoding="ascii", errors="replace")
            except OSError:
                continue
            if found := _PUBLIC.match(content):
                return found[0]
        if os.path.exists(path):
            return _derived(path)
    raise ConfigError(
        f"there is no key {paths[0]} that this user may read",
        f'Make one for webmon alone: ssh-keygen -t ed25519 -N "" -f {shlex.quote(str(paths[0]))}',
    )


def _derived(path: Path) -> str:
    # The empty passphrase keeps it from asking for one.
    command = ["ssh-keygen", "-y", "-P", "", "-f", str(path)]
    try:
        result = subprocess.run(
            command, check=False, capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL
        )
        if found := _PUBLIC.match(result.stdout):
            return found[0]
        said = (result.stderr.strip().splitlines() or ["it is no private key"])[-1]
    except FileNotFoundError:
        said = "ssh-keygen is not installed"
    quoted = shlex.quote(str(path))
    raise ConfigError(
        f"the public half of {path} is not known: {said}",
        f"Save it beside the key: ssh-keygen -y -f {quoted} > {quoted}.pub",
    )


def _command(config: Config) -> list[str]:
    """Return the command for one round, as it is called from anywhere."""
    python = Path(sys.executable)
    script = python.with_name("webmon")
    program = [_absolute(script)] if os.access(script, os.X_OK) else [_absolute(python), "-m", "webmon"]
    return [*program, "update", "-c", _absolute(config.path)]


def _seconds(config: Config) -> int:
    """Return how long a round takes if all hosts keep silent, and then some."""
    timeouts = [host.timeout for host in config.hosts]
    return max(300, math.ceil(sum(timeouts) / config.jobs + max(timeouts)) + _RENDER_SECONDS)


def _absolute(path: Path) -> str:
    """Return a path that is right from anywhere, and that all of these files can hold."""
    shown = str(path.resolve() if ".." in path.parts else path.absolute())
    if not shown.isprintable() or '"' in shown or "\\" in shown:
        raise ConfigError(
            f"{shown!r}: not every file can hold quotes, backslashes and control characters",
            "Give it another name",
        )
    return shown


def _unit_word(word: str) -> str:
    """Quote for systemd, where % starts a specifier."""
    word = word.replace("%", "%%")
    return word if re.fullmatch(r"[A-Za-z0-9/._%+@:=,-]+", word) else f'"{word}"'


def _template(name: str) -> str:
    lines = (resource("cron") / name).read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("##"))


def _filled(template: str, values: dict[str, str]) -> str:
    return re.sub(r"@([A-Z_]+)@", lambda found: values[found[1]], template)
