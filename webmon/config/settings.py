"""What a configuration says, once it has been read and checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from webmon.availability import Rules


@dataclass(frozen=True, slots=True)
class HostSettings:
    """How to reach one host, and what to call it. `sources` says where each value comes from."""

    name: str
    address: str
    user: str
    port: int = 22
    key_filename: Path | None = None
    identity_files: tuple[Path, ...] = ()
    certificate_files: tuple[Path, ...] = ()
    identities_only: bool = False
    identity_agent: str | None = None
    timeout: float = 20.0
    known_hosts: tuple[Path, ...] = ()
    host_keys: str = "strict"
    host_key_alias: str | None = None
    jumps: tuple[HostSettings, ...] = ()
    proxy_command: str | None = None
    nvidia_smi: str = "nvidia-smi"
    label: str | None = None
    group: str | None = None
    sources: Mapping[str, str] = field(default_factory=dict, compare=False, hash=False)

    @property
    def is_self(self) -> bool:
        """Tell whether this is the machine that webmon runs on, without SSH."""
        return self.name == "self"


@dataclass(frozen=True, slots=True)
class DataSettings:
    """`[data]`."""

    dir: Path
    keep_days: int
    keep_snapshots: int
    keep_rollup_days: int = 400


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """`[site]`."""

    dir: Path
    title: str
    refresh: int
    templates: Path | None
    price_per_kwh: float | None = None


@dataclass(frozen=True, slots=True)
class PrivacySettings:
    """`[privacy]`."""

    command: str = "name"
    users: str = "show"


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """`[notify]`."""

    urls: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that a configuration file says, with the defaults filled in."""

    path: Path
    hosts: tuple[HostSettings, ...]
    jobs: int
    free: Rules
    data: DataSettings
    site: SiteSettings
    privacy: PrivacySettings
    notify: NotifySettings
    sources: Mapping[str, str]
    warnings: tuple[str, ...] = ()
