"""Ask all hosts side by side. One host never breaks, or delays for good, the rest."""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections import deque
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from webmon.collect import local
from webmon.collect.assemble import Answer
from webmon.collect.parse import parse
from webmon.collect.probe import TOKEN_DIGITS
from webmon.errors import HostError, StorageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from webmon.collect.ssh import Ssh
    from webmon.config.settings import Config, HostSettings
    from webmon.model import Reading

# A host that has been silent for this long is waited for aside, so that sick hosts don't fill the
# places of the others; so many are waited for at the most.
_PATIENCE_S = 1.5
_MAX_WAITING = 512

# What a thread may need beyond its deadline to come back; after that it is left behind.
_GRACE_S = 1.0


def ask_all(
    config: Config,
    on_answer: Callable[[Answer], None] = lambda _: None,
    when_all_are_asked: Callable[[], None] = lambda: None,
) -> list[Answer]:
    """Return every host's answer, in the order of `hosts`; ConfigError if a key can't be used.

    `when_all_are_asked` is called once, when there is nothing left to do but to wait for answers.
    """
    shared = _shared_connections(config)
    poll = _Poll(config, shared, on_answer, when_all_are_asked)
    try:
        answers = poll.run()
    except BaseException:
        local.stop()
        raise
    finally:
        if shared is not None:
            shared.close()
    return [answers[host.name] for host in config.hosts]


def _shared_connections(config: Config) -> Ssh | None:
    if all(host.is_self for host in config.hosts):
        return None
    from webmon.collect.ssh import Ssh

    return Ssh(config)


class _Asked(NamedTuple):
    """A host that is being asked: by whom, and since when."""

    host: HostSettings
    worker: threading.Thread
    started: float
    checked_at: datetime


class _Poll:
    """One round over all hosts. Workers take one host after the other; the caller's thread watches."""

    def __init__(
        self,
        config: Config,
        shared: Ssh | None,
        on_answer: Callable[[Answer], None],
        when_all_are_asked: Callable[[], None],
    ) -> None:
        self._jobs = config.jobs
        self._hosts = len(config.hosts)
        self._waiting = deque(config.hosts)
        self._shared = shared
        self._on_answer = on_answer
        self._when_all_are_asked: Callable[[], None] | None = when_all_are_asked
        self._workers: list[threading.Thread] = []
        self._running: dict[str, _Asked] = {}
        self._done: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self._answers: dict[str, Answer] = {}

    def run(self) -> dict[str, Answer]:
        while len(self._answers) < self._hosts:
            self._start_workers()
            self._take_answers()
            self._give_up_on_the_lost()
        self._tell_that_all_are_asked()
        return self._answers

    def _start_workers(self) -> None:
        lately = time.monotonic() - _PATIENCE_S
        silent = sum(asked.started < lately for asked in list(self._running.values()))
        wanted = min(self._jobs + silent, max(self._jobs, _MAX_WAITING))
        self._workers = [worker for worker in self._workers if worker.is_alive()]
        for _ in range(min(wanted - len(self._workers), len(self._waiting))):
            # Daemons: a lookup or a driver that hangs for good must not keep the program.
            worker = threading.Thread(target=self._work, daemon=True, name="webmon worker")
            try:
                worker.start()
            except RuntimeError:
                if not self._workers:
                    raise StorageError(
                        "not one thread could be started",
                        "Raise the limit of processes (ulimit -u, TasksMax)",
                    ) from None
                break  # those that work take the other hosts, one after the other
            self._workers.append(worker)
        if not self._waiting:
            self._tell_that_all_are_asked()

    def _tell_that_all_are_asked(self) -> None:
        tell, self._when_all_are_asked = self._when_all_are_asked, None
        if tell is not None:
            tell()

    def _work(self) -> None:
        while True:
            try:
                host = self._waiting.popleft()
            except IndexError:
                return
            now = datetime.now(UTC)
            self._running[host.name] = _Asked(host, threading.current_thread(), time.monotonic(), now)
            self._ask(host)

    def _take_answers(self) -> None:
        try:
            answer = self._done.get(timeout=0.25)
            while True:
                if self._running.pop(answer.host, None) is not None:
                    self._keep(answer)
                answer = self._done.get_nowait()
        except queue.Empty:
            pass

    def _give_up_on_the_lost(self) -> None:
        now = time.monotonic()
        for name, asked in list(self._running.items()):
            host = asked.host
            if now > asked.started + host.timeout + _GRACE_S:
                self._running.pop(name, None)
                # Its thread may never come back, and takes no place from the others.
                self._workers = [worker for worker in self._workers if worker is not asked.worker]
                error = HostError(
                    "timeout",
                    f"no answer within {host.timeout:g} s, before it could be connected to",
                    "A name server or an ssh agent that does not answer? `ssh` to the host should hang too",
                )
                self._keep(_answer(host, error, asked.checked_at, now - asked.started))

    def _keep(self, answer: Answer) -> None:
        self._answers[answer.host] = answer
        self._on_answer(answer)

    def _ask(self, host: HostSettings) -> None:
        started, checked_at = time.monotonic(), datetime.now(UTC)
        result: Reading | HostError
        try:
            result = _reading(host, self._shared, checked_at)
        except HostError as error:
            result = error
        except Exception as error:  # noqa: BLE001 - a fault of ours on one host must not end the others
            result = HostError(
                "internal",
                f"webmon failed on this host: {type(error).__name__}: {error}",
                "Please report this",
            )
        self._done.put(_answer(host, result, checked_at, time.monotonic() - started))


def _reading(host: HostSettings, shared: Ssh | None, now: datetime) -> Reading | HostError:
    token = secrets.token_hex(TOKEN_DIGITS // 2)
    if host.is_self:
        raw = local.ask(host.nvidia_smi, host.timeout, token)
    else:
        assert shared is not None
        raw = shared.ask(host, token)
    return parse(raw, token, host.name, now)


def _answer(host: HostSettings, result: Reading | HostError, checked_at: datetime, seconds: float) -> Answer:
    return Answer(
        host=host.name,
        result=result,
        checked_at=checked_at.replace(microsecond=0),
        duration_ms=round(seconds * 1000),
        label=host.label,
        group=host.group,
    )
