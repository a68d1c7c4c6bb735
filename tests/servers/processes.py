"""Ending what a test has started: by its id, with all of its children."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import defaultdict


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process that we have started to end, and see to it that it does."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(5)


def alive(pid: int) -> bool:
    """Tell whether a process runs; one that has ended and is not reaped yet does not."""
    return _state(pid) not in (None, "Z", "X")


def descendants(pid: int) -> list[int]:
    """Return the children of a process, their children, and so on."""
    children = defaultdict(list)
    for other in _all():
        if (parent := _parent(other)) is not None:
            children[parent].append(other)
    found = []
    waiting = [pid]
    while waiting:
        waiting += (new := children[waiting.pop()])
        found += new
    return found


def marked(mark: str) -> list[int]:
    """Return the processes that have these bytes in their environment."""
    found = []
    for pid in _all():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if mark.encode() in file.read():
                    found.append(pid)
        except OSError:
            continue  # it has ended, or is somebody else's
    return found


def kill(*pids: int) -> None:
    """Kill processes; those that have ended are passed over."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def wait_until_gone(pids: list[int], seconds: float = 5) -> list[int]:
    """Return which of the processes still run after a while; none, as soon as they have ended."""
    deadline = time.monotonic() + seconds
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def _all() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _stat(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _state(pid: int) -> str | None:
    stat = _stat(pid)
    return stat[0] if stat else None


def _parent(pid: int) -> int | None:
    stat = _stat(pid)
    return int(stat[1]) if stat else None
