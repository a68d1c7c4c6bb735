"""`self`: the probe on this machine, without SSH."""

from __future__ import annotations

import os
import signal
import subprocess
import time

from webmon.collect import probe
from webmon.errors import HostError

OUTPUT_CAP_BYTES = 4 * 1024 * 1024

# The probes that run just now, each the leader of a session of its own.
_running: set[int] = set()


def ask(nvidia_smi: str, timeout: float, token: str) -> bytes:
    """Run the probe here and return what it printed, within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-s", token],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise HostError(
            "garbled", f"no shell could be started: {error.strerror}", "Is there a /bin/sh?"
        ) from None
    _running.add(process.pid)
    try:
        return _converse(process, probe.script(nvidia_smi, timeout).encode(), deadline, timeout)
    finally:
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()
        if not _has_ended(process, 0.1):
            _kill_session(process.pid)
            _has_ended(process, 0.5)  # if not, a driver hangs in the kernel; init reaps it when it lets go
        _running.discard(process.pid)


def stop() -> None:
    """Kill the probes that still run: webmon ends before they do."""
    for leader in list(_running):
        _kill_session(leader)


def _has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def _kill_session(leader: int) -> None:
    """Kill all that a probe has started. `timeout` runs its command in a process group of its own."""
    for _ in range(10):
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and _is_in(int(name), leader)]
        if not pids:
            return
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass  # it has just ended


def _is_in(pid: int, session: int) -> bool:
    """Tell whether a process belongs to a session, and has not ended yet."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            state, _parent, _group, its_session = file.read().rpartition(b")")[2].split()[:4]
    except (OSError, ValueError):
        return False
    return int(its_session) == session and state not in (b"Z", b"X")


def _converse(process: subprocess.Popen[bytes], script: bytes, deadline: float, timeout: float) -> bytes:
    import selectors

    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(script)
        process.stdin.close()
    except BrokenPipeError:
        pass  # what it printed says why
    out = bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if not selector.select(left):
                continue
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                return bytes(out)
            out += chunk
            if len(out) > OUTPUT_CAP_BYTES:
                raise HostError(
                    "too-much-output",
                    f"more than {OUTPUT_CAP_BYTES // 2**20} MiB of output",
                    "Run nvidia-smi by hand: what does it print?",
                )
    raise HostError(
        "timeout",
        f"no answer within {timeout:g} s",
        "Run nvidia-smi by hand; if it is slow, raise `timeout` or switch persistence mode on",
    )
