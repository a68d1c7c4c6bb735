"""A machine with GPUs that people sit at: they start commands on it, and look what became of them."""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
from typing import TYPE_CHECKING, Any

from servers.here import Here

if TYPE_CHECKING:
    from collections.abc import Callable

# All that a test starts has this in its environment, so that it is found and ended.
MARK = "WEBMON_TEST_PICK"

# No test waits for so long unless something is wrong, however busy the machine is.
PATIENCE_S = 40.0


def eventually(check: Callable[[], Any], what: str = "it does not happen") -> Any:
    """Return what `check` returns as soon as it is true."""
    deadline = time.monotonic() + PATIENCE_S
    while not (result := check()):
        assert time.monotonic() < deadline, what
        time.sleep(0.03)
    return result


class Desk(Here):
    """Starts commands that hold their GPU until they are told to end."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._started: list[subprocess.Popen[str]] = []

    def start(self, *arguments: Any, **options: Any) -> subprocess.Popen[str]:
        """Start `webmon …`; it is ended with the test."""
        process = super().start(*arguments, **options)
        self._started.append(process)
        return process

    def start_as(self, command: list[str], environment: dict[str, str]) -> subprocess.Popen[str]:
        """Start a command as somebody else; it is ended with the test."""
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd="/",
            env=environment,
        )
        self._started.append(process)
        return process

    def hold(self, *arguments: str, **options: Any) -> Holder:
        """Start `webmon select … -- cat`, and wait until it has its GPU."""
        return Holder(self, "select", *arguments, **options).wait()

    def waiter(self, *arguments: str, **options: Any) -> Holder:
        """Start `webmon wait … -- cat`, and wait until it stands in the queue."""
        before = self.tickets()
        holder = Holder(self, "wait", "--every", "0.2", *arguments, **options)
        eventually(lambda: len(self.tickets()) > len(before) or holder.has_ended(), "it takes no ticket")
        return holder

    def tickets(self) -> list[str]:
        """Return the queue, its head first."""
        return sorted(name for name in os.listdir(self.claims) if name.startswith("webmon-wait-"))

    def available(self) -> list[int]:
        """Return which GPUs `webmon available` says are free."""
        done = self.webmon("available")
        assert done.returncode == (0 if done.stdout.strip() else 1), done
        return [int(part) for part in re.findall(r"\d+", done.stdout)]

    def count_calls(self) -> None:
        """Count from now on how often nvidia-smi is asked."""
        script = (self.bin / "nvidia-smi").read_text().removeprefix("#!/bin/sh\n")
        (self.folder / "calls").touch()
        self.program("nvidia-smi", f"echo >> {self.folder}/calls\n{script}")

    def calls(self) -> int:
        """Return how often nvidia-smi has been asked."""
        return (self.folder / "calls").stat().st_size

    def close(self) -> None:
        """End what was started and still runs."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None and not stream.closed:
                    stream.close()


class Holder:
    """A command that says which GPUs it was given, and holds them until it is told to end."""

    SCRIPT = 'echo "$CUDA_VISIBLE_DEVICES"; exec cat'

    def __init__(self, desk: Desk, *arguments: str, **options: Any) -> None:
        self._process = desk.start(
            *arguments, "--", "sh", "-c", self.SCRIPT, **{"stdin": subprocess.PIPE} | options
        )
        self.pid = self._process.pid

    def wait(self) -> Holder:
        """Wait until it has its GPUs."""
        self.gpus = self._gpus()
        assert self.gpus, self._process.communicate()
        return self

    def has_started(self) -> bool:
        """Tell whether it has its GPUs by now."""
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def has_ended(self) -> bool:
        """Tell whether it has ended."""
        return self._process.poll() is not None

    def end(self) -> int:
        """Let it end, and return its exit code."""
        self._process.stdin.close()
        return self._process.wait(PATIENCE_S)

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def result(self) -> tuple[int, str, str]:
        """Return its exit code and what else it printed, once it has ended."""
        out, err = self._process.communicate(timeout=PATIENCE_S)
        return self._process.returncode, out, err

    def _gpus(self) -> list[int]:
        ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE_S)
        assert ready, "it gets no GPU"
        return [int(part) for part in re.findall(r"\d+", self._process.stdout.readline())]


def on_a_terminal(desk: Desk, *arguments: str, typed: bytes = b"", after: bytes = b"") -> tuple[int, str]:
    """Run a command in a session of its own on a real terminal; type something once it has said `after`."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        # The leader of a session gets the first terminal that it opens as its own.
        ["sh", "-c", 'exec <>"$0" >&0 2>&1; exec "$@"', os.ttyname(theirs), *arguments],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=desk.environment | {"TERM": "xterm"},
        cwd=desk.folder,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        seen = b""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                chunk = os.read(ours, 65536)
            except OSError:
                break  # all have closed the other end
            if not chunk:
                break
            seen += chunk
            if typed and after in seen:
                os.write(ours, typed)
                typed = b""
        else:
            process.kill()
    os.close(ours)
    return process.returncode, seen.decode().replace("\r\n", "\n")
