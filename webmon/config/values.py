"""The sections and keys of a document, checked against the schema and read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webmon.config import schema
from webmon.errors import ConfigError

if TYPE_CHECKING:
    from webmon.config import dialect


@dataclass(frozen=True, slots=True)
class Sourced:
    """A value, and where it comes from: `config.ini:12`, `~/.ssh/config:3`, `default`."""

    value: Any
    source: str


def check_names(document: dialect.Document) -> None:
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


def value(document: dialect.Document, path: tuple[str, ...], key: schema.Key) -> Sourced:
    """Return the value of one key, or its default."""
    keys: Any = document.sections
    for section in path[:-1]:
        keys = keys.get(section, {})
    if path[-1] not in keys:
        return Sourced(key.default, "default")
    where = document.where(*path)
    try:
        return Sourced(key.read(keys[path[-1]]), where)
    except ValueError as error:
        raise _refused(".".join(path), error, where) from None


def _refused(key: str, error: ValueError, where: str) -> ConfigError:
    problem, _, remedy = str(error).partition(": ")
    remedy = remedy[:1].upper() + remedy[1:]
    colon = "" if problem[:1].isalpha() else ":"
    return ConfigError(f"{key}{colon} {problem}", remedy, where=where)


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
        from difflib import get_close_matches

        where = document.where(*path, name)
        home = next((section for section, own in schema.SECTIONS.items() if name in own), None)
        close = get_close_matches(name, known, 1, 0.6)
        remedy = f"It belongs under [{home}]" if home and not close else _did_you_mean(name, list(known))
        raise ConfigError(f"[{'.'.join(path)}] has no key {name!r}", remedy, where=where)


def _did_you_mean(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(name, known, 1, 0.5)
    return f"Did you mean {close[0]!r}?" if close else "It can be: " + ", ".join(known)
