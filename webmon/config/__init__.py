"""Configuration file → Config. Errors say file, line, what is wrong and what was meant."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from webmon.availability import Rules
from webmon.config import dialect, schema
from webmon.config.hosts import Sourced, resolve_hosts
from webmon.config.paths import expanded
from webmon.config.settings import (
    Config,
    DataSettings,
    HostSettings,
    NotifySettings,
    PrivacySettings,
    SiteSettings,
)
from webmon.config.ssh_config import SshConfig
from webmon.errors import ConfigError

__all__ = ["Config", "HostSettings", "find", "load"]


def find(given: str | None = None) -> Path:
    """Return the configuration file to use: the one given, or the first of the usual places."""
    if given:
        return expanded(given)
    if from_environment := os.environ.get("WEBMON_CONFIG"):
        return expanded(from_environment)
    places = _usual_places()
    for place in places:
        if os.path.isfile(place):
            return place
    looked = ", ".join(str(place) for place in places)
    raise ConfigError(
        f"no configuration file; looked for {looked}",
        "Copy config.example.ini to config.ini and name your hosts in it, or say -c FILE",
    )


def load(path: Path) -> Config:
    """Read and check a configuration file, and resolve every host in it."""
    document = dialect.read(_text(path), path.name)
    _check_names(document)
    values = {
        section: {
            name: _value(document, (section, name), key) for name, key in schema.SECTIONS[section].items()
        }
        for section in schema.SECTIONS
    }
    if not values["common"]["hosts"].value:
        raise ConfigError(
            "[common] has no hosts",
            'Name them: hosts = ["gpu[01-16].lab", "bob@old:2222"], or "self" for this machine',
            where=document.where("common"),
        )
    base = path.resolve().parent
    ssh_config = SshConfig()
    plain = {section: {n: v.value for n, v in keys.items()} for section, keys in values.items()}
    overrides = _overrides(document)
    return Config(
        path=path,
        hosts=resolve_hosts(values["common"], overrides, document, ssh_config, base),
        jobs=plain["common"]["jobs"],
        free=Rules(**plain["free"]),
        data=DataSettings(**{**plain["data"], "dir": _path(base, plain["data"]["dir"])}),
        site=SiteSettings(
            **{
                **plain["site"],
                "dir": _path(base, plain["site"]["dir"]),
                "templates": _template_folder(document, base, plain["site"]["templates"]),
            }
        ),
        privacy=PrivacySettings(**plain["privacy"]),
        notify=NotifySettings(**plain["notify"]),
        sources={
            f"{section}.{name}": sourced.source
            for section, keys in values.items()
            for name, sourced in keys.items()
        },
        warnings=_warnings(document, ssh_config),
    )


def _usual_places() -> list[Path]:
    xdg = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return [
        Path("config.ini"),
        Path(os.path.expanduser(xdg)) / "webmon" / "config.ini",
        Path("/etc/webmon/config.ini"),
    ]


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(
            f"{path}: there is no such file",
            "Copy config.example.ini there and name your hosts in it",
        ) from None
    except OSError as error:
        raise ConfigError(
            f"{path}: {error.strerror}", "It has to be a file that this user may read"
        ) from None
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError("not UTF-8 text", "Save the file as UTF-8", where=f"{path.name}:{line}") from None


def _check_names(document: dialect.Document) -> None:
    """Refuse sections and keys that nobody reads: they are mistyped."""
    for section, keys in document.sections.items():
        if section == "host":
            _check_is_section(document, ("host",), keys, 'Write [host."gpu01"]')
            for name, host_keys in keys.items():
                _check_is_section(
                    document, ("host", name), host_keys, f'Write [host."{name}"] above its keys'
                )
                _check_keys(document, ("host", name), host_keys, schema.HOST_KEYS)
        elif section not in schema.SECTIONS:
            _unknown(document, section, keys)
        else:
            _check_is_section(document, (section,), keys, f"Write [{section}] above its keys")
            _check_keys(document, (section,), keys, schema.SECTIONS[section])


def _check_is_section(document: dialect.Document, path: tuple[str, ...], keys: Any, remedy: str) -> None:
    if not isinstance(keys, dict):
        raise ConfigError(f"{'.'.join(path)} is a section, not a key", remedy, where=document.where(*path))


def _unknown(document: dialect.Document, name: str, value: Any) -> None:
    where = document.where(name)
    if isinstance(value, dict):
        known = ["host", *schema.SECTIONS]
        raise ConfigError(f"there is no section [{name}]", _did_you_mean(name, known), where=where)
    home = next((section for section, keys in schema.SECTIONS.items() if name in keys), None)
    remedy = f"Put it under [{home}]" if home else "Every key belongs under a section, such as [common]"
    raise ConfigError(f"{name} stands outside of any section", remedy, where=where)


def _check_keys(
    document: dialect.Document, path: tuple[str, ...], keys: dict[str, Any], known: dict[str, schema.Key]
) -> None:
    for name in keys:
        if name in known:
            continue
        where = document.where(*path, name)
        home = next((section for section, own in schema.SECTIONS.items() if name in own), None)
        close = get_close_matches(name, known, 1, 0.6)
        remedy = f"It belongs under [{home}]" if home and not close else _did_you_mean(name, list(known))
        raise ConfigError(f"[{'.'.join(path)}] has no key {name!r}", remedy, where=where)


def _did_you_mean(name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, 1, 0.5)
    return f"Did you mean {close[0]!r}?" if close else "It can be: " + ", ".join(known)


def _value(document: dialect.Document, path: tuple[str, str], key: schema.Key) -> Sourced:
    section, name = path
    keys = document.sections.get(section, {})
    if name not in keys:
        return Sourced(key.default, "default")
    where = document.where(*path)
    try:
        return Sourced(key.read(keys[name]), where)
    except ValueError as error:
        raise _refused(f"{section}.{name}", error, where) from None


def _overrides(document: dialect.Document) -> dict[str, dict[str, Sourced]]:
    overrides: dict[str, dict[str, Sourced]] = {}
    for name, keys in document.sections.get("host", {}).items():
        overrides[name] = {}
        for key, raw in keys.items():
            where = document.where("host", name, key)
            try:
                overrides[name][key] = Sourced(schema.HOST_KEYS[key].read(raw), where)
            except ValueError as error:
                raise _refused(f"host.{name}.{key}", error, where) from None
    return overrides


def _refused(key: str, error: ValueError, where: str) -> ConfigError:
    problem, _, remedy = str(error).partition(": ")
    remedy = remedy[:1].upper() + remedy[1:]
    colon = "" if problem[:1].isalpha() else ":"
    return ConfigError(f"{key}{colon} {problem}", remedy, where=where)


def _path(base: Path, text: str) -> Path:
    return base / expanded(text)


def _template_folder(document: dialect.Document, base: Path, text: str | None) -> Path | None:
    if text is None:
        return None
    folder = _path(base, text)
    if not os.path.isdir(folder):
        raise ConfigError(
            f"site.templates: there is no folder {folder}",
            "Make it, or remove the line",
            where=document.where("site", "templates"),
        )
    return folder


def _warnings(document: dialect.Document, ssh_config: SshConfig) -> tuple[str, ...]:
    warnings = list(ssh_config.warnings)
    if "notify" in document.sections:
        warnings.append(
            f"{document.where('notify')}: [notify] is read and checked, but this version sends nothing yet"
        )
    return tuple(warnings)
