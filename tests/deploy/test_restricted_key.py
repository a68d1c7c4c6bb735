"""A real sshd, and a key with the printed line: fetch works through it, and nothing else does."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from servers.command import host_rows, table, webmon
from servers.programs import need
from servers.settings import write_config
from servers.sshd import STANDIN, Pretended, Sshd
from servers.states import healthy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TOKEN = "0123456789abcdef"
REFUSAL = b"This key runs the webmon probe and nothing else.\n"


def restrict(server: Sshd, folder: Path, **changes: Any) -> Path:
    """Let a server's key do only what `webmon deploy key` says; return the configuration."""
    config = write_config(folder, server.common(**changes))
    result = webmon("deploy", "key", "-c", config)
    assert (result.returncode, result.stderr) == (0, "")
    server.authorized_keys.write_text(result.stdout)
    return config


@pytest.fixture(scope="module")
def restricted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """A host whose only key is restricted."""
    folder = tmp_path_factory.mktemp("restricted")
    with Sshd(folder) as server:
        restrict(server, folder)
        yield server


def options(server: Sshd) -> list[str]:
    """Return what ssh, scp and sftp need to log in as webmon does, and as nobody else."""
    settings = {
        "BatchMode": "yes",
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": server.known_hosts,
        "GlobalKnownHostsFile": "none",
        "LogLevel": "ERROR",
    }
    pairs = [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]
    return ["-F", "none", "-i", str(server.key), *pairs]


def place(server: Sshd, number: int = 0) -> str:
    return f"{server.user}@{server.addresses[number]}"


def ssh(
    server: Sshd, *arguments: str, flags: tuple[str, ...] = (), given: bytes = b"", number: int = 0
) -> subprocess.CompletedProcess[bytes]:
    """Run OpenSSH's ssh with the server's key."""
    command = [need("ssh", "openssh-client"), *options(server), "-p", str(server.port), *flags]
    return subprocess.run(
        [*command, place(server, number), *arguments],
        check=False,
        capture_output=True,
        input=given,
        timeout=30,
    )


def is_probe(output: bytes, token: str = TOKEN) -> bool:
    """Tell whether this is the probe's answer, whole, and nothing before or after it."""
    return output.startswith(f"\n@{token} system\n".encode()) and output.endswith(
        f"\n@{token} end\n".encode()
    )


@contextmanager
def listener() -> Iterator[tuple[str, list[object]]]:
    """Listen on loopback; whoever connects is hung up on, and counted."""
    came: list[object] = []
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()

        def hang_up() -> None:
            while True:
                try:
                    connection, address = server.accept()
                except OSError:
                    return
                came.append(address)
                connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        try:
            yield f"127.0.0.1:{server.getsockname()[1]}", came
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join(5)


def test_fetch_works(restricted: Sshd, tmp_path: Path):
    """webmon reads all of a host's GPUs through the restricted key."""
    config = restrict(restricted, tmp_path)
    result = webmon("fetch", "-c", config)
    assert (result.returncode, result.stderr) == (0, "")
    (row,) = table(tmp_path / "data", "hosts")
    assert (row["status"], row["reason"], row["error"]) == ("up", "", "")
    assert [gpu["state"] for gpu in table(tmp_path / "data", "gpus")] == ["free"]


@pytest.mark.parametrize(
    "asked",
    ["id", "touch MARK", "exec sh -s", "sh -c 'touch MARK'", "touch MARK; exec sh -s nothing", "true", " ",
     "internal-sftp", "rsync --server . /", "cat /etc/passwd", "x -c 'touch MARK'"],
)  # fmt: skip
def test_no_command_runs(restricted: Sshd, tmp_path: Path, asked: str):
    """Whatever is asked for that is not the probe, one line says what the key is for."""
    mark = tmp_path / "mark"
    result = ssh(restricted, asked.replace("MARK", str(mark)))
    assert (result.returncode, result.stdout, result.stderr) == (64, b"", REFUSAL)
    assert not mark.exists()


def test_no_shell_starts(restricted: Sshd):
    """Without a command there is no login either."""
    result = ssh(restricted, given=b"id\n")
    assert (result.returncode, result.stdout, result.stderr) == (64, b"", REFUSAL)


@pytest.mark.parametrize(
    "asked",
    ["{token}", "touch MARK; {token}", "touch MARK && exec sh -s {token}", "$(touch MARK) {token}",
     "`touch MARK` {token}", "' ; touch MARK ; ' {token}", '" ; touch MARK ; " {token}',
     "x\ntouch MARK\n {token}", "../* {token}"],
)  # fmt: skip
def test_with_a_token_only_the_probe_runs(restricted: Sshd, tmp_path: Path, asked: str):
    """A token after whatever else gives the probe's answer; the rest is not even looked at."""
    mark = tmp_path / "mark"
    result = ssh(restricted, asked.format(token=TOKEN).replace("MARK", str(mark)))
    assert is_probe(result.stdout)
    assert (result.returncode, result.stderr) == (0, b"")
    assert not mark.exists()


@pytest.mark.parametrize(
    "token",
    ["0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "0123456789abcdeg", "*", "[0-9a-f]" * 16,
     "????????????????", "$(touch${IFS}MARK)", "`touch\tMARK`", ";touch\tMARK", f"{TOKEN};touch\tMARK",
     f"{TOKEN}\ntouch\tMARK", f"{TOKEN}\t", f"-{TOKEN}", f"'{TOKEN}'", f"{TOKEN}|sh", "%s" * 8,
     "é" * 16],
)  # fmt: skip
def test_a_token_that_is_none_runs_nothing(restricted: Sshd, tmp_path: Path, token: str):
    """A token is sixteen hexadecimal digits; all else is refused, not expanded and not repeated."""
    mark = tmp_path / "mark"
    result = ssh(restricted, f"exec sh -s {token.replace('MARK', str(mark))}")
    assert (result.returncode, result.stdout, result.stderr) == (64, b"", REFUSAL)
    assert not mark.exists()


def test_no_script_is_read(restricted: Sshd, tmp_path: Path):
    """What comes on standard input, where the probe comes otherwise, is not run."""
    mark = tmp_path / "mark"
    result = ssh(restricted, f"exec sh -s {TOKEN}", given=f"touch {mark}\n".encode())
    assert is_probe(result.stdout)
    assert not mark.exists()


@pytest.mark.parametrize("program", ["sftp", "scp", "scp -O"])
def test_no_file_is_copied(restricted: Sshd, tmp_path: Path, program: str):
    """Neither sftp nor scp, in its old and its new way, reads or writes a file."""
    name, *flags = program.split()
    secret, copy, mark = tmp_path / "secret", tmp_path / "copy", tmp_path / "mark"
    secret.write_text("secret")
    command = [need(name, "openssh-client"), *flags, "-q", *options(restricted), "-P", str(restricted.port)]
    there = place(restricted)
    calls = {
        "sftp": [
            (["-b", "-", there], f"get {secret} {copy}\n"),
            (["-b", "-", there], f"put {secret} {mark}\n"),
        ],
        "scp": [([f"{there}:{secret}", str(copy)], ""), ([str(secret), f"{there}:{mark}"], "")],
    }
    for arguments, given in calls[name]:
        result = subprocess.run(
            [*command, *arguments], check=False, capture_output=True, input=given.encode(), timeout=30
        )
        assert result.returncode != 0
    assert not copy.exists()
    assert not mark.exists()


def test_no_connection_is_forwarded(restricted: Sshd, sshd: Sshd):
    """The host is no way to other machines; with a plain key it would be one."""
    with listener() as (inner, came):
        result = ssh(restricted, flags=("-W", inner))
        assert result.returncode != 0
        assert b"forwarding failed" in result.stderr
        assert not came
        ssh(sshd, flags=("-W", inner))
        assert came


def test_no_port_is_opened(restricted: Sshd, sshd: Sshd):
    """The host does not listen on the key's behalf; with a plain key it would."""
    flags = ("-R", "127.0.0.1:0:127.0.0.1:9", "-o", "ExitOnForwardFailure=yes")
    assert b"remote port forwarding failed" in ssh(restricted, f"sh -s {TOKEN}", flags=flags).stderr
    assert ssh(sshd, "true", flags=flags).returncode == 0


def test_no_terminal_is_given(restricted: Sshd, sshd: Sshd):
    """A terminal is refused, and the probe runs without."""
    # ssh asks for one only if it is told to twice; standard input is none.
    flags = ("-tt", "-o", "LogLevel=INFO")
    result = ssh(restricted, f"sh -s {TOKEN}", flags=flags)
    assert b"PTY allocation request failed" in result.stderr
    assert b"PTY" not in ssh(sshd, "true", flags=flags).stderr


def test_no_agent_is_forwarded(start_sshd: Callable[..., Sshd], tmp_path: Path):
    """Whoever runs the probe's programs on the host can't use the keys of the caller's agent."""
    seen = tmp_path / "seen"
    server = start_sshd([Pretended(nvidia_smi=f"env >> {seen}; exit 9")])
    with agent(tmp_path) as address:
        flags = ("-A", "-o", f"IdentityAgent={address}", "-o", f"ForwardAgent={address}")
        ssh(server, "nvidia-smi", flags=flags)
        assert "SSH_AUTH_SOCK=" in seen.read_text()
        seen.unlink()
        restrict(server, tmp_path)
        result = ssh(server, f"sh -s {TOKEN}", flags=flags)
    assert is_probe(result.stdout)
    assert "SSH_AUTH_SOCK=" not in seen.read_text()
    assert "SSH_TTY=" not in seen.read_text()


@contextmanager
def agent(folder: Path) -> Iterator[Path]:
    """Run an agent without keys."""
    address = folder / "agent"
    process = subprocess.Popen(
        [need("ssh-agent", "openssh-client"), "-D", "-a", address], stdout=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + 10
        while not address.exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        yield address
    finally:
        process.terminate()
        process.wait(5)


def test_each_host_has_the_line_that_is_its_own(start_sshd: Callable[..., Sshd], tmp_path: Path):
    """A host's own nvidia_smi and timeout are part of its line."""
    files = [tmp_path / "keys-0", tmp_path / "keys-1"]
    other = tmp_path / "other-smi"
    state = tmp_path / "state.json"
    server = start_sshd(
        [Pretended(settings=[f"AuthorizedKeysFile {file}"]) for file in files], first_address=21
    )
    state.write_text(server.state_file(1).read_text())
    other.write_text(
        f'#!/bin/sh\nWEBMON_STANDIN={state} exec python3 -I -S {shlex.quote(str(STANDIN))} "$@"\n'
    )
    other.chmod(0o755)
    own = {server.names[1]: {"nvidia_smi": str(other), "timeout": 15}}
    config = write_config(tmp_path, server.common(), own)
    first, second = webmon("deploy", "key", "-c", config).stdout.strip().split("\n\n")[1:]
    assert (server.names[0] in first, server.names[1] in second) == (True, True)
    for file, line in zip(files, (first, second), strict=True):
        file.write_text(f"{line}\n")
    assert webmon("fetch", "-c", config).returncode == 0
    assert {row["status"] for row in host_rows(tmp_path / "data").values()} == {"up"}
    assert b"not found" not in ssh(server, f"sh -s {TOKEN}", number=1).stdout


def test_a_gateway_only_lets_through(start_sshd: Callable[..., Sshd], tmp_path: Path):
    """Through a gateway with its line fetch works; the gateway runs nothing and leads nowhere else."""
    files = [tmp_path / "keys-0", tmp_path / "keys-1"]
    server = start_sshd(
        [Pretended(settings=[f"AuthorizedKeysFile {file}"]) for file in files], first_address=31
    )
    gate, host = server.names
    config = write_config(tmp_path, server.common(hosts=[host], proxy_jump=f"{server.user}@{gate}"))
    for_host, for_gate = webmon("deploy", "key", "-c", config).stdout.strip().split("\n\n")[1:]
    files[0].write_text(f"{for_gate}\n")
    files[1].write_text(f"{for_host}\n")
    assert webmon("fetch", "-c", config).returncode == 0
    assert [row["status"] for row in table(tmp_path / "data", "hosts")] == ["up"]

    mark = tmp_path / "mark"
    result = ssh(server, f"touch {mark}")
    assert (result.returncode, result.stdout) == (1, b"")
    assert not mark.exists()
    with listener() as (inner, came):
        assert ssh(server, flags=("-W", inner)).returncode != 0
        assert not came


SHELLS = {
    "sh": "dash", "bash": "bash", "dash": "dash", "busybox": "busybox", "csh": "tcsh", "tcsh": "tcsh",
    "fish": "fish",
}  # fmt: skip


@pytest.mark.parametrize("shell", SHELLS)
def test_every_login_shell_runs_the_line(restricted: Sshd, tmp_path: Path, shell: str):
    """sshd gives the line to the account's own shell, which may be another one than sh."""
    line = restricted.authorized_keys.read_text().strip().splitlines()[-1]
    command = line.partition('command="')[2].rpartition('" ssh-')[0].replace(r"\"", '"')
    program = need(shell, SHELLS[shell])
    mark = tmp_path / "mark"
    for asked, code in ((f"sh -s {TOKEN}", 0), (f"touch {mark}", 64), (f"!{mark} $x", 64)):
        result = subprocess.run(
            [program, *(["sh"] if shell == "busybox" else []), "-c", command],
            check=False,
            capture_output=True,
            env={"HOME": str(tmp_path), "PATH": os.defpath, "SSH_ORIGINAL_COMMAND": asked},
            timeout=30,
        )
        assert result.returncode == code
        assert is_probe(result.stdout) if code == 0 else result.stdout == b""
    assert not mark.exists()


@pytest.mark.parametrize("shell", ["csh", "fish"])
def test_an_account_with_another_shell_is_read(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, shell: str
):
    """A host whose account has csh or fish as its login shell answers through the restricted key."""
    program = need(shell, SHELLS[shell])
    wrapper = _sshd_with_shell(tmp_path, program)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    with Sshd(tmp_path_factory.mktemp("sshd"), [Pretended(healthy(2))]) as server:
        assert b"SHELL=" + program.encode() in ssh(server, "env").stdout
        config = restrict(server, tmp_path)
        assert webmon("fetch", "-c", config).returncode == 0
        assert len(table(tmp_path / "data", "gpus")) == 2
        assert ssh(server, "id").stdout == b""


def _sshd_with_shell(folder: Path, shell: str) -> Path:
    """Make an sshd that finds another login shell in /etc/passwd, which stays as it is for all others."""
    unshare = shutil.which("unshare")
    alone = (
        unshare and subprocess.run([unshare, "-m", "true"], check=False, capture_output=True).returncode == 0
    )
    if not alone:
        pytest.skip("this user may not have an /etc/passwd of its own (unshare -m)")
    accounts = folder / "passwd"
    rows = [line.split(":") for line in Path("/etc/passwd").read_text().splitlines()]
    changed = [[*row[:5], str(folder), shell] if row[2] == str(os.getuid()) else row for row in rows]
    accounts.write_text("".join(":".join(row) + "\n" for row in changed))
    accounts.chmod(0o644)
    wrapper = folder / "bin" / "sshd"
    wrapper.parent.mkdir()
    then = f'mount --bind {accounts} /etc/passwd && exec {need("sshd", "openssh-server")} "$@"'
    wrapper.write_text(f"#!/bin/sh\nexec {unshare} -m /bin/sh -c '{then}' sh \"$@\"\n")
    wrapper.chmod(0o755)
    return wrapper
