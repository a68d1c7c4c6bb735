"""Each host's settings: its own section, then [common], then ~/.ssh/config, then the default."""

from __future__ import annotations

import os
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webmon.config import hostlist, schema
from webmon.config.paths import expanded
from webmon.config.settings import HostSettings
from webmon.config.ssh_config import Value, expand_tokens, local_user
from webmon.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from webmon.config.dialect import Document
    from webmon.config.hostlist import HostName
    from webmon.config.ssh_config import SshConfig
    from webmon.config.values import Sourced

_USER_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
_GLOBAL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")
_DEFAULT_IDENTITIES = ("~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa")


def resolve_hosts(
    common: Mapping[str, Sourced],
    overrides: Mapping[str, Mapping[str, Sourced]],
    document: Document,
    ssh_config: SshConfig,
    base: Path,
) -> tuple[HostSettings, ...]:
    """Resolve every host of `hosts`; `base` is the folder that relative paths start from."""
    names: tuple[HostName, ...] = common["hosts"].value
    own = _own_sections(names, overrides, document)
    return tuple(
        _Resolver(host, common, own.get(host.name, {}), ssh_config, base).settings() for host in names
    )


def _own_sections(
    names: tuple[HostName, ...], overrides: Mapping[str, Mapping[str, Sourced]], document: Document
) -> dict[str, dict[str, Sourced]]:
    """Find the hosts that each [host."NAME"] is about; NAME may be a range, or lack the port."""
    by_name: dict[str, list[str]] = {}
    for host in names:
        for alias in {host.name, host.address, f"{host.user}@{host.name}", f"[{host.address}]"}:
            by_name.setdefault(alias, []).append(host.name)
    own: dict[str, dict[str, Sourced]] = {}
    for section, keys in overrides.items():
        where = document.where("host", section)
        try:
            wanted = hostlist.expand(section)
        except ValueError as error:
            raise ConfigError(str(error), where=where) from None
        for name in wanted:
            if name not in by_name:
                close = get_close_matches(name, by_name, 1, 0.6)
                remedy = f"Did you mean {close[0]!r}?" if close else "Add it to hosts, or remove the section"
                raise ConfigError(f'[host."{section}"]: {name} is not in hosts', remedy, where=where)
            for host_name in by_name[name]:
                own.setdefault(host_name, {}).update(keys)
    return own


class _Resolver:
    """Finds the values in force for one host, and remembers where each came from."""

    def __init__(
        self,
        host: HostName,
        common: Mapping[str, Sourced],
        own: Mapping[str, Sourced],
        ssh_config: SshConfig,
        base: Path,
        *,
        via: tuple[str, ...] = (),
    ) -> None:
        self._host, self._common, self._own, self._base = host, common, own, base
        self._ssh_config = ssh_config
        self._via = via
        self._ssh: dict[str, list[Value]] = {}
        if not host.is_self:
            self._ssh = ssh_config.lookup(host.address, host.user or self._said("user")[0])
        self._sources: dict[str, str] = {}

    def settings(self) -> HostSettings:
        """Return the host's settings."""
        port = int(self._take("port", self._host.port, "port", 22))
        user = str(self._take("user", self._host.user, "user", local_user()))
        address = self._address(user, port)
        tokens = {"host": address, "original": self._host.address, "user": user, "port": port}
        key = self._key()
        jumps = self._jumps()
        return HostSettings(
            name=self._host.name,
            address=address,
            user=user,
            port=port,
            key_filename=key,
            identity_files=self._files("identityfile", tokens) or _paths(_DEFAULT_IDENTITIES),
            certificate_files=self._files("certificatefile", tokens),
            identities_only=self._first("identitiesonly") == "yes",
            identity_agent=self._agent(tokens),
            timeout=self._take("timeout"),
            known_hosts=self._known_hosts(tokens),
            host_keys=self._take("host_keys"),
            host_key_alias=self._first("hostkeyalias"),
            jumps=jumps,
            proxy_command=None if jumps else self._proxy_command(),
            nvidia_smi=self._take("nvidia_smi"),
            label=self._own_value("label"),
            group=self._own_value("group"),
            sources=self._sources,
        )

    def _said(self, key: str) -> tuple[Any, str]:
        """Return what webmon's own file says of a key, and where; (None, "") if nothing."""
        # [common] is about the hosts; of a hop, ~/.ssh/config may know better.
        if self._via and (key in ("port", "proxy_jump") or (key == "user" and "user" in self._ssh)):
            return None, ""
        for values in (self._own, self._common):
            if key in values and values[key].source != "default":
                return values[key].value, values[key].source
        return None, ""

    def _take(self, key: str, in_hosts: Any = None, directive: str = "", default: Any = None) -> Any:
        """Return the value in force: hosts entry, own section, [common], ssh_config, default."""
        own = self._own.get(key)
        if own is None and in_hosts is not None:
            self._sources[key] = self._common["hosts"].source
            return in_hosts
        value, source = self._said(key)
        if source:
            self._sources[key] = source
            return value
        if directive and directive in self._ssh:
            found = self._ssh[directive][0]
            if directive != "port" or found.text.isdecimal():
                self._sources[key] = _short(found.where)
                return found.text
        self._sources[key] = "default"
        return default if default is not None else schema.SECTIONS["common"][key].default

    def _own_value(self, key: str) -> Any:
        if key not in self._own:
            return None
        self._sources[key] = self._own[key].source
        return self._own[key].value

    def _first(self, directive: str) -> str | None:
        values = self._ssh.get(directive)
        return values[0].text if values else None

    def _address(self, user: str, port: int) -> str:
        if "hostname" in self._own:
            self._sources["hostname"] = self._own["hostname"].source
            return str(self._own["hostname"].value)
        if "hostname" in self._ssh:
            found = self._ssh["hostname"][0]
            self._sources["hostname"] = _short(found.where)
            original = self._host.address
            return expand_tokens(found.text, host=original, original=original, user=user, port=port)
        self._sources["hostname"] = self._common["hosts"].source
        return self._host.address

    def _key(self) -> Path | None:
        value, source = self._said("key_filename")
        if not source:
            files = self._ssh.get("identityfile")
            self._sources["key_filename"] = _short(files[0].where) if files else "default"
            return None
        self._sources["key_filename"] = source
        return self._base / expanded(value, source)

    def _known_hosts(self, tokens: dict[str, Any]) -> tuple[Path, ...]:
        value, source = self._said("known_hosts")
        if source:
            self._sources["known_hosts"] = source
            return (self._base / expanded(value, source),)
        found = self._ssh.get("userknownhostsfile")
        self._sources["known_hosts"] = _short(found[0].where) if found else "default"
        users = found[0].text.split() if found else list(_USER_KNOWN_HOSTS)
        everyones = (self._first("globalknownhostsfile") or " ".join(_GLOBAL_KNOWN_HOSTS)).split()
        names = [name for name in [*users, *everyones] if name.lower() != "none"]
        return tuple(Path(expand_tokens(name, **tokens)) for name in names)

    def _files(self, directive: str, tokens: dict[str, Any]) -> tuple[Path, ...]:
        values = [value.text for value in self._ssh.get(directive, ())]
        return tuple(Path(expand_tokens(v, **tokens)) for v in values if v.lower() != "none")

    def _agent(self, tokens: dict[str, Any]) -> str | None:
        """Return the agent's socket; None when there is none to ask."""
        said = self._first("identityagent")
        if said is None or said == "SSH_AUTH_SOCK":
            return os.environ.get("SSH_AUTH_SOCK") or None
        if said.lower() == "none":
            return None
        return os.environ.get(said[1:]) if said.startswith("$") else expand_tokens(said, **tokens)

    def _jumps(self) -> tuple[HostSettings, ...]:
        hops, source = self._said("proxy_jump")
        if not source:
            found = self._ssh.get("proxyjump")
            source = _short(found[0].where) if found else "default"
            try:
                hops = schema.jumps(found[0].text) if found else ()
            except ValueError as error:
                raise ConfigError(f"ProxyJump: {error}", where=source) from None
        self._sources["proxy_jump"] = source
        if self._host.is_self:
            return ()
        # A gateway that is monitored too is not reached through itself.
        itself = (self._host.name, self._host.address)
        ways = [self._hop(hop, source) for hop in hops if (hop.name, hop.address) != itself]
        # The first gateway may itself be behind another one, as ~/.ssh/config says.
        return (*ways[0].jumps, *ways) if ways else ()

    def _hop(self, hop: HostName, source: str) -> HostSettings:
        if hop.name in self._via or len(self._via) > 8:
            raise ConfigError(f"{self._host.name} is to be reached through itself", where=source)
        via = (*self._via, hop.name)
        return _Resolver(hop, self._common, {}, self._ssh_config, self._base, via=via).settings()

    def _proxy_command(self) -> str | None:
        said = self._first("proxycommand")
        return None if said is None or said.lower() == "none" else said


def _paths(names: tuple[str, ...]) -> tuple[Path, ...]:
    return tuple(Path(os.path.expanduser(name)) for name in names)


def _short(where: str) -> str:
    home = os.path.expanduser("~")
    return f"~{where[len(home) :]}" if where.startswith(f"{home}/") else where
