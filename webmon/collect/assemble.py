"""Readings and the snapshot before → the snapshot now. Every GPU is judged here, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from webmon.availability import Rules, is_at_rest, is_ignored, state_of, users_of
from webmon.clean import clean
from webmon.errors import HostError
from webmon.model import Gpu, Host, Process, Reading, Snapshot, processes_on

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from webmon.collect.privacy import Privacy


class Answer(NamedTuple):
    """What came of asking one host."""

    host: str
    result: Reading | HostError
    checked_at: datetime
    duration_ms: int
    label: str | None = None
    group: str | None = None


class _Past(NamedTuple):
    """What the snapshot before knew of one host."""

    host: Host | None
    gpus: Sequence[Gpu]


def assemble(
    answers: Iterable[Answer],
    previous: Snapshot | None,
    rules: Rules,
    privacy: Privacy,
    now: datetime,
) -> Snapshot:
    """Put the answers of all hosts together, in the order they come in."""
    past_hosts = {host.host: host for host in previous.hosts} if previous else {}
    past_gpus: Mapping[str, Sequence[Gpu]] = previous.gpus_by_host() if previous else {}
    hosts: list[Host] = []
    gpus: list[Gpu] = []
    processes: list[Process] = []
    for answer in answers:
        past = _Past(past_hosts.get(answer.host), past_gpus.get(answer.host, ()))
        if isinstance(answer.result, HostError):
            own_gpus = [_unread(gpu) for gpu in past.gpus]
            hosts.append(_down(answer, answer.result, past, len(own_gpus)))
        else:
            own_gpus, own_processes = _judged(answer.result, past, rules, privacy, now)
            hosts.append(_answered(answer, answer.result, len(own_gpus)))
            processes += own_processes
        gpus += own_gpus
    return Snapshot(now, tuple(hosts), tuple(gpus), tuple(processes))


def _down(answer: Answer, error: HostError, past: _Past, gpus: int) -> Host:
    return Host(
        host=answer.host,
        label=answer.label,
        group=answer.group,
        status="down",
        reason=error.reason,
        error=clean(str(error)),
        checked_at=answer.checked_at,
        last_seen=past.host.last_seen if past.host else None,
        duration_ms=answer.duration_ms,
        gpus=gpus if past.host and past.host.last_seen else None,
    )


def _answered(answer: Answer, reading: Reading, gpus: int) -> Host:
    return Host(
        host=answer.host,
        label=answer.label,
        group=answer.group,
        status="degraded" if reading.problem else "up",
        reason=reading.problem.reason if reading.problem else None,
        error=clean(str(reading.problem)) if reading.problem else None,
        checked_at=answer.checked_at,
        last_seen=answer.checked_at,
        duration_ms=answer.duration_ms,
        driver=reading.driver,
        gpus=gpus,
        load1=reading.load1,
        cpus=reading.cpus,
        ram_used_mib=reading.ram_used_mib,
        ram_total_mib=reading.ram_total_mib,
    )


def _unread(gpu: Gpu) -> Gpu:
    """Keep a card's identity, and since when it was idle, without any reading."""
    return Gpu(host=gpu.host, index=gpu.index, uuid=gpu.uuid, name=gpu.name, idle_since=gpu.idle_since)


def _judged(
    reading: Reading, past: _Past, rules: Rules, privacy: Privacy, now: datetime
) -> tuple[list[Gpu], list[Process]]:
    measured = _identified(reading.gpus, past.gpus)
    if not measured:
        # It answered, but not for its GPUs (no driver …): the cards that it had are still there.
        return [_unread(gpu) for gpu in past.gpus], []
    processes = None if reading.processes is None else _with_claims_that_tell(reading.processes, rules)
    idle_before: dict[str | None, datetime | None] = {
        gpu.uuid: gpu.idle_since for gpu in past.gpus if gpu.uuid
    }
    gpus: list[Gpu] = []
    for gpu, on_gpu in zip(measured, processes_on(measured, processes or ()), strict=True):
        on_it = None if processes is None else on_gpu
        idle_since = (idle_before.get(gpu.uuid) or now) if is_at_rest(gpu, on_it, rules) else None
        state = state_of(gpu, on_it, rules, now=now, idle_since=idle_since)
        users = users_of([process for process in on_gpu if process.gpu_uuid == gpu.uuid], rules)
        gpus.append(
            gpu._replace(
                state=state,
                idle_since=None if state == "faulty" else idle_since,
                users=tuple(sorted({privacy.user(user) for user in users})),
            )
        )
    return gpus, [privacy.process(process) for process in processes or ()]


def _with_claims_that_tell(processes: Sequence[Process], rules: Rules) -> list[Process]:
    """Leave out the claims of users who are at work on their GPU already: that says enough."""
    at_work = {
        (process.gpu_uuid, process.user)
        for process in processes
        if process.user is not None and not process.is_claim and not is_ignored(process, rules)
    }
    return [
        process
        for process in processes
        if not process.is_claim or (process.gpu_uuid, process.user) not in at_work
    ]


def _identified(measured: Sequence[Gpu], before: Sequence[Gpu]) -> list[Gpu]:
    """Give a lost card, which can't say who it is, the identity of the one that is missing."""
    present = {gpu.uuid for gpu in measured if gpu.uuid}
    missing = [gpu for gpu in before if gpu.uuid and gpu.uuid not in present]
    gpus: list[Gpu] = []
    for gpu in measured:
        if gpu.uuid is not None or not missing:
            gpus.append(gpu)
            continue
        same_index = [old for old in missing if old.index == gpu.index]
        old = (same_index or missing)[0]
        missing.remove(old)
        gpus.append(gpu._replace(uuid=old.uuid, name=old.name))
    return gpus
