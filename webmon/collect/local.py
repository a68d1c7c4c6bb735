"""`self`: the probe on this machine, without SSH."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

from webmon.collect import probe
from webmon.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Callable

OUTPUT_CAP_BYTES = 4 * 1024 * 1024


def ask(
    nvidia_smi: str, timeout: float, token: str, started: Callable[[int], None] = lambda _: None
) -> bytes:
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
    started(process.pid)
    try:
        return _converse(process, probe.script(nvidia_smi, timeout).encode(), deadline, timeout)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        for stream in (process.stdin, process.stdout):
            if stream:
                stream.close()
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            pass  # a driver that hangs in the kernel; init reaps it when it lets go


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
