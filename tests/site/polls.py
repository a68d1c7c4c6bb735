"""Polls in a data folder, for the tests of the past: kept snapshots, and the history."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from webmon.availability import Rules
from webmon.model import Gpu, Host, Process, Snapshot
from webmon.publish import past
from webmon.store import history, snapshot

START = datetime(2026, 11, 18, 8, 0, 0, 0, tzinfo=UTC)
CARD = Gpu("gpu01", 0, "GPU-a", "NVIDIA A100", "busy", 0, 1, 78000, 81920, 71, 300.0)


def at(number):
    """Return the time of a poll: one in five minutes."""
    return START + timedelta(minutes=5 * number)


def poll(number, *, hosts=("gpu01", "gpu02"), down=(), time=None):
    """Return a snapshot; a host's utilization is the poll's number, by which it is known again."""
    time = time or at(number)
    up = [host for host in hosts if host not in down]
    return Snapshot(
        time,
        tuple(Host(host, status="up" if host in up else "down", checked_at=time) for host in hosts),
        tuple(
            CARD._replace(host=host, utilization_pct=number, users=("alice",))
            if host in up
            else Gpu(host, 0, "GPU-a", "NVIDIA A100")
            for host in hosts
        ),
        tuple(Process(host, 0, "GPU-a", 4711, "alice", "python", "train.py", 77000) for host in up),
    )


def save(data, *polls, keep=36):
    """Save polls as `fetch` does."""
    for taken in polls:
        snapshot.save(data, taken, keep)
        history.append(data, taken, Rules())
        history.tidy(data, taken.taken_at, 90)


def newest(data, count, *hosts):
    """Return each host's samples, read."""
    found = past.newest(data, hosts or ("gpu01",), count)
    return {host: [json.loads(sample) for sample in samples] for host, samples in found.items()}


def numbers(samples):
    """Return the numbers of the polls of a host's samples; None for one in which it was down."""
    return [one["gpu_data"]["gpu:0"]["gpu_volatile"] if one["gpu_data"] else None for one in samples]


def are_whole(samples):
    """Tell of each sample whether it has processes: those of the history have none."""
    return [one["gpu_data"]["gpu:0"]["processes"] is not None for one in samples]
