"""`self`: the probe on this machine, without SSH."""

from __future__ import annotations

import os
import select
import signal
import time

from webmon.collect import probe
from webmon.errors import HostError

OUTPUT_CAP_BYTES = 4 * 1024 * 1024

# The probes that run just now, each the leader of a session of its own.
_running: set[int] = set()


def ask(nvidia_smi: str, timeout: float, token: str) -> bytes:
    """Run the probe here and return what it printed, within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    leader, its_input, its_output = _start(token)
    _running.add(leader)
    try:
        _feed(its_input, probe.script(nvidia_smi, timeout).encode())
        return _read(its_output, deadline, timeout)
    finally:
        os.close(its_output)
        if not _has_ended(leader, 0.1):
            _kill_session(leader)
            _has_ended(leader, 0.5)  # if not, a driver hangs in the kernel; init reaps it when it lets go
        _running.discard(leader)


def stop() -> None:
    """Kill the probes that still run: webmon ends before they do."""
    for leader in list(_running):
        _kill_session(leader)


def _start(token: str) -> tuple[int, int, int]:
    """Start a shell in a session of its own; return its pid, its input and its output.

    The module subprocess would do the same, and take longer to load than the shell to start.
    """
    from_us, its_input = os.pipe()
    its_output, to_us = os.pipe()
    try:
        leader = os.posix_spawn(
            "/bin/sh",
            ["/bin/sh", "-s", token],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, from_us, 0),
                (os.POSIX_SPAWN_DUP2, to_us, 1),
                (os.POSIX_SPAWN_DUP2, to_us, 2),
            ],
            setsid=True,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores them
        )
    except OSError as error:
        os.close(its_input)
        os.close(its_output)
        raise HostError(
            "garbled", f"no shell could be started: {error.strerror}", "Is there a /bin/sh?"
        ) from None
    finally:
        os.close(from_us)
        os.close(to_us)
    return leader, its_input, its_output


def _feed(its_input: int, script: bytes) -> None:
    try:
        while script:
            script = script[os.write(its_input, script) :]
    except BrokenPipeError:
        pass  # what it printed says why
    finally:
        os.close(its_input)


def _has_ended(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    pause = 0.0005
    while True:
        try:
            if os.waitpid(pid, os.WNOHANG)[0]:
                return True
        except ChildProcessError:
            return True  # whoever called us takes care of all children
        if time.monotonic() > deadline:
            return False
        time.sleep(pause)
        pause = min(0.02, 2 * pause)


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


def _read(its_output: int, deadline: float, timeout: float) -> bytes:
    out = bytearray()
    readable = select.poll()
    readable.register(its_output, select.POLLIN)
    while (left := deadline - time.monotonic()) > 0:
        if not readable.poll(left * 1000):
            continue
        chunk = os.read(its_output, 65536)
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
