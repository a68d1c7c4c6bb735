"""A whole configuration file → Config, every host resolved."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from webmon.availability import Rules
from webmon.config import dialect, schema, values
from webmon.config.hosts import resolve_hosts
from webmon.config.locate import text
from webmon.config.paths import expanded
from webmon.config.settings import Config, DataSettings, NotifySettings, PrivacySettings, SiteSettings
from webmon.config.ssh_config import SshConfig
from webmon.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

    from webmon.config.values import Sourced


def resolve(path: Path) -> Config:
    """Read and check a configuration file, and resolve every host in it."""
    document = dialect.read(text(path), path.name)
    values.check_names(document)
    read = {
        section: {
            name: values.value(document, (section, name), key)
            for name, key in schema.SECTIONS[section].items()
        }
        for section in schema.SECTIONS
    }
    if not read["common"]["hosts"].value:
        raise ConfigError(
            "[common] has no hosts",
            'Name them: hosts = ["gpu[01-16].lab", "bob@old:2222"], or "self" for this machine',
            where=document.where("common"),
        )
    base = path.resolve().parent
    ssh_config = SshConfig()
    plain = {section: {n: v.value for n, v in keys.items()} for section, keys in read.items()}
    overrides = _overrides(document)
    return Config(
        path=path,
        hosts=resolve_hosts(read["common"], overrides, document, ssh_config, base),
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
            for section, keys in read.items()
            for name, sourced in keys.items()
        },
        warnings=_warnings(document, ssh_config),
    )


def _overrides(document: dialect.Document) -> dict[str, dict[str, Sourced]]:
    return {
        host: {name: values.value(document, ("host", host, name), schema.HOST_KEYS[name]) for name in keys}
        for host, keys in document.sections.get("host", {}).items()
    }


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
