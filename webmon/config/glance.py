"""What the commands that only look need of a configuration, if there is one. No host is resolved."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from webmon.availability import Rules
from webmon.config.paths import expanded, usual_places

if TYPE_CHECKING:
    from pathlib import Path


_RULES = Rules()


class Glance(NamedTuple):
    """How this machine is asked, what counts as free, and where the cluster's snapshots are."""

    free: Rules = _RULES
    nvidia_smi: str = "nvidia-smi"
    timeout: float = 20.0
    command: str = "name"
    data: Path | None = None


def glance(given: str | None = None) -> Glance:
    """Return what the configuration says, or the defaults where there is none; ConfigError if it is wrong.

    A configuration that is named has to be there.
    """
    named = given or os.environ.get("WEBMON_CONFIG") or _found()
    if named is None:
        return Glance()
    from webmon.config import dialect, schema, values
    from webmon.config.locate import text

    path = expanded(named)
    document = dialect.read(text(path), path.name)
    values.check_names(document)

    def read(section: str) -> dict[str, Any]:
        keys = schema.SECTIONS[section]
        return {name: values.value(document, (section, name), key).value for name, key in keys.items()}

    common = read("common")
    for name in document.sections.get("host", {}).get("self", {}):
        common[name] = values.value(document, ("host", "self", name), schema.HOST_KEYS[name]).value
    return Glance(
        free=Rules(**read("free")),
        nvidia_smi=common["nvidia_smi"],
        timeout=common["timeout"],
        command=read("privacy")["command"],
        data=path.resolve().parent / expanded(read("data")["dir"]),
    )


def _found() -> str | None:
    """Return the first configuration in the usual places; what is not webmon's, or a stranger's, is none."""
    for place in usual_places():
        if os.path.isfile(place) and (os.path.isabs(place) or _is_ours(place)):
            return place
    return None


def _is_ours(path: str) -> bool:
    """Tell whether a config.ini in the current folder is meant: it may be another program's.

    What it names as nvidia_smi is run, so it has to belong to this user, or to root.
    """
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            about = os.fstat(file.fileno())
            if about.st_uid not in (0, os.geteuid()) or about.st_mode & 0o002:
                return False
            lines = file.read(1_000_000).splitlines()
    except OSError:
        return False
    section = ""
    for line in lines:
        text = line.strip()
        if text.startswith("["):
            section = text[1:].partition("]")[0].strip()
        elif section == "common" and text.partition("=")[0].strip() == "hosts":
            return True
    return False
