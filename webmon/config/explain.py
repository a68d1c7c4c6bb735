"""`webmon config`: what is in force, and where each value comes from."""

from __future__ import annotations

import json
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webmon.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webmon.config.settings import Config, HostSettings

_PER_HOST = ("hostname", "user", "port", "key_filename", "timeout", "known_hosts", "host_keys",
             "proxy_jump", "nvidia_smi", "label", "group")  # fmt: skip


def as_text(config: Config, names: Sequence[str] = ()) -> str:
    """Return the configuration in force as a table for a person."""
    lines = [f"# {config.path}"]
    if not names:
        for section, values in _sections(config).items():
            lines += ["", f"[{section}]"]
            lines += _aligned([(k, v, config.sources[f"{section}.{k}"]) for k, v in values.items()])
    for host in _chosen(config, names):
        lines += ["", f'[host."{host.name}"]']
        lines += _aligned([(key, value, source) for key, (value, source) in _host(host).items()])
    lines += [f"\n# {warning}" for warning in config.warnings]
    return "\n".join(lines)


def as_json(config: Config, names: Sequence[str] = ()) -> str:
    """Return the same as JSON: `{"hosts": {"gpu01": {"user": {"value": …, "source": …}}}}`."""
    document: dict[str, Any] = {"path": str(config.path)}
    if not names:
        document |= {
            section: {k: {"value": v, "source": config.sources[f"{section}.{k}"]} for k, v in values.items()}
            for section, values in _sections(config).items()
        }
    document["hosts"] = {
        host.name: {k: {"value": value, "source": source} for k, (value, source) in _host(host).items()}
        for host in _chosen(config, names)
    }
    document["warnings"] = list(config.warnings)
    return json.dumps(document, indent=2, ensure_ascii=False, default=str)


def _chosen(config: Config, names: Sequence[str]) -> list[HostSettings]:
    by_name = {host.name: host for host in config.hosts}
    for name in names:
        if name not in by_name:
            close = get_close_matches(name, by_name, 1)
            remedy = f"Did you mean {close[0]!r}?" if close else "`webmon config` lists them all"
            raise ConfigError(f"there is no host {name!r} in {config.path}", remedy)
    return [by_name[name] for name in names] if names else list(config.hosts)


def _sections(config: Config) -> dict[str, dict[str, Any]]:
    return {
        "common": {"jobs": config.jobs},
        "free": {
            name: getattr(config.free, name)
            for name in ("max_memory_pct", "max_utilization_pct", "ignore", "held_after_min")
        },
        "data": {
            name: getattr(config.data, name)
            for name in ("dir", "keep_days", "keep_rollup_days", "keep_snapshots")
        },
        "site": {
            name: getattr(config.site, name)
            for name in ("dir", "title", "refresh", "price_per_kwh", "templates")
        },
        "privacy": {name: getattr(config.privacy, name) for name in ("command", "users")},
        "notify": {name: getattr(config.notify, name) for name in ("urls", "rules")},
    }


def _host(host: HostSettings) -> dict[str, tuple[Any, str]]:
    keys = [host.key_filename] if host.key_filename else list(host.identity_files)
    values: dict[str, Any] = {
        "hostname": host.address,
        "user": host.user,
        "port": host.port,
        "key_filename": [str(path) for path in keys],
        "timeout": host.timeout,
        "known_hosts": [str(path) for path in host.known_hosts],
        "host_keys": host.host_keys,
        "proxy_jump": [f"{hop.user}@{hop.address}:{hop.port}" for hop in host.jumps],
        "nvidia_smi": host.nvidia_smi,
        "label": host.label,
        "group": host.group,
    }
    if host.is_self:
        values = {name: values[name] for name in ("timeout", "nvidia_smi", "label", "group")}
    return {name: (values[name], host.sources.get(name, "default")) for name in _PER_HOST if name in values}


def _aligned(rows: list[tuple[str, Any, str]]) -> list[str]:
    shown = [(f"{name} = {_toml(value)}", source) for name, value, source in rows if value is not None]
    width = min(60, max((len(text) for text, _ in shown), default=0))
    return [f"{text:<{width}}  # {source}" for text, source in shown]


def _toml(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Path):
        value = str(value)
    return json.dumps(value, ensure_ascii=False)
