"""The machine that webmon runs on, as a snapshot of one host: asked now, and without SSH."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from webmon.collect import local
from webmon.collect.assemble import Answer, assemble
from webmon.collect.parse import parse
from webmon.collect.privacy import Privacy
from webmon.collect.probe import TOKEN_DIGITS
from webmon.errors import HostError

if TYPE_CHECKING:
    from webmon.config.glance import Glance
    from webmon.model import Snapshot

# Why a machine may well have no GPU: it is perhaps not this one that was meant.
_WITHOUT_GPUS = ("not-installed", "no-library", "no-gpu")
_NONE_HERE = ". For the GPUs of the other machines, say --cluster"


def look(settings: Glance) -> Snapshot:
    """Ask this machine for its GPUs; HostError if it has none to tell of."""
    token = os.urandom(TOKEN_DIGITS // 2).hex()
    host = os.uname().nodename
    now = datetime.now(UTC).replace(microsecond=0)
    reading = parse(local.ask(settings.nvidia_smi, settings.timeout, token), token, host, now)
    if isinstance(reading, HostError):
        raise reading
    if not reading.gpus and reading.problem:
        problem = reading.problem
        remedy = f"{problem.remedy}{_NONE_HERE if problem.reason in _WITHOUT_GPUS else ''}"
        raise HostError(problem.reason, problem.text, remedy)
    return assemble([Answer(host, reading, now, 0)], None, settings.free, Privacy(settings.command), now)
