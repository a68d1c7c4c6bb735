"""`webmon demo`: set up the pretended hosts, then fetch, render and serve as in production."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import paramiko

from webmon import config as configuration
from webmon import pipeline
from webmon.demo import nvidia_smi, past, ps
from webmon.demo.cluster import CLUSTER, DemoHost, state
from webmon.demo.sshd import HostServer
from webmon.errors import ConfigError
from webmon.publish.serve import Server
from webmon.store.files import make_folder, storing, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webmon.config.settings import Config

_CONFIG = """\
# The demo's configuration, as an admin would write it. The hosts end with `webmon demo`.

[common]
user = "demo"
hosts = {hosts}
key_filename = "ssh/id_ecdsa"
known_hosts = "ssh/known_hosts"
timeout = 10

[free]
held_after_min = 0    # so that there is something "held" from the first round on

[data]
dir = "data"

[site]
dir = "site"
title = "GPU monitor"
refresh = {refresh}
"""

_HOST = """
[host."{name}"]
hostname = "127.0.0.1"
port = {port}
{more}"""


def once(folder: Path | None, say: Callable[[str], None]) -> None:
    """Do one round: config.ini, data/ and site/ are in the folder afterwards."""
    with _cluster(_own_or_temporary(folder), refresh=60) as config:
        past.write(config.data.dir, datetime.now(UTC))
        say(_round(config))
    say(f"the site is {config.site.dir / 'index.html'}, the data {config.data.dir / 'latest'}")


def run(folder: Path | None, port: int, every: float, say: Callable[[str], None]) -> None:
    """Do round after round, and serve the site, until Ctrl-C."""
    with ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="webmon-demo-")))
        config = stack.enter_context(_cluster(folder, refresh=max(1, round(every))))
        say(f"a demo cluster of {len(CLUSTER)} hosts; its files are in {folder}")
        past.write(config.data.dir, datetime.now(UTC))
        say(_round(config))
        server = stack.enter_context(_listening(config, port))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        say(f"\n    {server.url}\n\nCtrl-C ends it.")
        stop = threading.Event()
        signal.signal(signal.SIGINT, lambda *_: stop.set())
        signal.signal(signal.SIGTERM, lambda *_: stop.set())
        while not stop.wait(every):
            _round(config)
        server.shutdown()


def _round(config: Config) -> str:
    snapshot = pipeline.fetch(config, config.data.dir)
    pipeline.render(config, config.data.dir, config.site.dir)
    return snapshot.summary()


def _listening(config: Config, port: int) -> Server:
    try:
        return Server(config.site.dir, "127.0.0.1", port, config.data.dir)
    except ConfigError:
        return Server(config.site.dir, "127.0.0.1", 0, config.data.dir)


def _own_or_temporary(folder: Path | None) -> Path:
    return folder or Path(tempfile.mkdtemp(prefix="webmon-demo-"))


@contextmanager
def _cluster(folder: Path, *, refresh: int) -> Iterator[Config]:
    """Start the pretended hosts, write the configuration that reaches them, and read it."""
    folder = folder.absolute()
    _check_is_own(folder / "config.ini")
    user_key, host_key = paramiko.ECDSAKey.generate(), paramiko.ECDSAKey.generate()
    servers: dict[str, HostServer] = {}
    try:
        with storing(folder):
            make_folder(folder / "ssh")
            (folder / "ssh").chmod(0o700)
            for host in CLUSTER:
                stand_ins = _stand_ins(folder / "hosts" / host.name)
                servers[host.name] = HostServer(host_key, user_key, _environment(host, stand_ins))
            key = folder / "ssh" / "id_ecdsa"
            key.unlink(missing_ok=True)
            user_key.write_private_key_file(str(key))
            ports = {name: server.port for name, server in servers.items()}
            _write_known_hosts(folder / "ssh" / "known_hosts", host_key, ports)
            write(folder / "config.ini", _config_text(ports, refresh).encode())
        for host in CLUSTER:
            if host.is_down:
                servers.pop(host.name).close()
        yield configuration.load(folder / "config.ini")
    finally:
        for server in servers.values():
            server.close()


def _check_is_own(config: Path) -> None:
    """Leave a configuration alone that somebody has written."""
    if config.exists() and not config.read_bytes().startswith(_CONFIG.split("\n", 1)[0].encode()):
        raise ConfigError(f"{config} is not of the demo", "Name another folder: --dir")


def _config_text(ports: dict[str, int], refresh: int) -> str:
    text = _CONFIG.format(hosts=json.dumps([host.name for host in CLUSTER]), refresh=refresh)
    for host in CLUSTER:
        more = [
            f"{key} = {json.dumps(value)}\n" for key in ("group", "label") if (value := getattr(host, key))
        ]
        text += _HOST.format(name=host.name, port=ports[host.name], more="".join(more))
    return text


def _write_known_hosts(path: Path, host_key: paramiko.PKey, ports: dict[str, int]) -> None:
    lines = [f"[127.0.0.1]:{port} {host_key.get_name()} {host_key.get_base64()}\n" for port in ports.values()]
    write(path, "".join(lines).encode())


def _stand_ins(folder: Path) -> Path:
    """Write the programs that a host's shell finds before all others."""
    make_folder(folder / "bin")
    for name, module in (("nvidia-smi", nvidia_smi), ("ps", ps)):
        program = folder / "bin" / name
        python, source = shlex.quote(sys.executable), shlex.quote(str(module.__file__))
        write(program, f'#!/bin/sh\nexec {python} -I -S {source} "$@"\n'.encode())
        program.chmod(0o755)
    return folder


def _environment(host: DemoHost, folder: Path) -> Callable[[], dict[str, str]]:
    import os

    def environment() -> dict[str, str]:
        file = folder / "state.json"
        write(file, json.dumps(state(host, int(time.time()) // 60)).encode())
        return {
            "PATH": f"{folder / 'bin'}:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "WEBMON_STANDIN": str(file),
        }

    return environment
