"""fetch and render, as the commands and the demo call them."""

from __future__ import annotations

import contextlib
import gc
import ipaddress
import os
import secrets
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from webmon.errors import DataError, WebmonError
from webmon.usage import NOTHING_PAST

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from webmon.collect.assemble import Answer
    from webmon.config.settings import Config
    from webmon.model import Snapshot
    from webmon.store.history import Sample
    from webmon.usage import Past

# How long a run may sum up days of the history that no run has summed up yet.
_SUMMING_UP_S = 20


def fetch(
    config: Config,
    folder: Path,
    on_answer: Callable[[Answer], None] = lambda _: None,
    on_warning: Callable[[str], None] = lambda _: None,
) -> Snapshot:
    """Ask all hosts, judge their answers, save the snapshot in a data folder and return it."""
    from webmon.collect.assemble import assemble
    from webmon.collect.fetch import ask_all
    from webmon.collect.privacy import Privacy
    from webmon.store import snapshot as store

    _spare_work()
    # pandas takes longer to import than most hosts to answer.
    importing = threading.Thread(target=__import__, args=("pandas",), daemon=True)
    now = datetime.now(UTC)
    answers = ask_all(config, on_answer, when_all_are_asked=importing.start)
    try:
        previous = store.load(folder)
    except DataError as error:
        previous = None
        if (folder / "latest").is_symlink():
            on_warning(f"the last snapshot is not used: {error.problem}")
    salt = _mask_key(folder) if config.privacy.users == "mask" else b""
    privacy = Privacy(config.privacy.command, config.privacy.users, salt)
    snapshot = assemble(answers, previous, config.free, privacy, now)
    importing.join()
    store.save(folder, snapshot, config.data.keep_snapshots)
    _remember(config, folder, snapshot, on_warning)
    return snapshot


def _remember(config: Config, folder: Path, snapshot: Snapshot, on_warning: Callable[[str], None]) -> None:
    """Add a poll to the history. Whatever is wrong with that: the snapshot is whole, and can be shown."""
    from webmon.store import history
    from webmon.store.rollup import Rollups

    try:
        history.append(folder, snapshot, config.free)
    except WebmonError as error:
        on_warning(f"this poll is missing in the history: {error}")
        return
    try:
        history.tidy(folder, snapshot.taken_at, config.data.keep_days)
    except WebmonError as error:
        on_warning(f"the history can't be kept in order: {error}")
    try:
        rollups = Rollups(folder, snapshot.taken_at, save=True, limit_s=_SUMMING_UP_S)
        rollups.make_all()
        rollups.remove_old(config.data.keep_days, config.data.keep_rollup_days)
        if rollups.unsaved:
            raise rollups.unsaved
    except Exception as error:  # noqa: BLE001 - a fault of our own is told, too, and the site is rendered
        kind = "" if isinstance(error, WebmonError) else f"{type(error).__name__}: "
        on_warning(f"the history can't be summed up: {kind}{error}")
        return
    if rollups.left_out:
        on_warning(f"{rollups.left_out} days of the history are yet to be summed up; the next runs go on")


def add_to_history(config: Config, folder: Path, samples: Sequence[Sample]) -> int:
    """Add samples that another tool has kept, with the names of users as this one keeps them."""
    from webmon.collect.privacy import Privacy
    from webmon.store import history
    from webmon.store.rollup import Rollups

    salt = _mask_key(folder) if config.privacy.users == "mask" else b""
    privacy = Privacy(config.privacy.command, config.privacy.users, salt)
    kept = [
        sample._replace(users=tuple(f"{privacy.user(user.removesuffix('='))}=" for user in sample.users))
        for sample in samples
    ]
    rollups = Rollups(folder, datetime.now(UTC), save=True)
    # Of a day whose samples are not kept any more only the sums are left: they can't be added to.
    days = {sample.time.astimezone(UTC).date() for sample in kept} - rollups.days_without_history()
    new = history.add(folder, (sample for sample in kept if sample.time.astimezone(UTC).date() in days))
    rollups.forget(days)
    rollups.make_all()
    if rollups.unsaved:
        raise rollups.unsaved
    return new


def render(
    config: Config, folder: Path, site: Path, on_warning: Callable[[str], None] = lambda _: None
) -> Snapshot:
    """Turn the last snapshot of a data folder into a site, and return it."""
    from webmon.publish.render import render as publish
    from webmon.store import snapshot as store

    _spare_work()
    snapshot = store.load(folder)
    past, failed = NOTHING_PAST, None
    try:
        past = _past(folder, snapshot, on_warning)
    except WebmonError as error:
        on_warning(f"the pages tell nothing of the past: {error}")
    except Exception as error:  # noqa: BLE001 - raised again below: where a GPU is free is shown all the same
        failed = error
    publish(
        snapshot,
        config.site,
        site,
        now=datetime.now(UTC),
        period=store.period(folder),
        addresses=_addresses(config),
        rules=config.free,
        past=past,
        zone=None,
    )
    if failed:
        raise failed
    return snapshot


def _past(folder: Path, snapshot: Snapshot, on_warning: Callable[[str], None]) -> Past:
    from webmon.store import stats
    from webmon.store.rollup import Rollups

    # Saving is a help for the next run; a data folder that is only read will do.
    rollups = Rollups(folder, snapshot.taken_at, save=True, limit_s=_SUMMING_UP_S)
    past = stats.past(rollups)
    if rollups.left_out:
        on_warning(f"the pages lack {rollups.left_out} days of the history, which are yet to be summed up")
    return past


def _addresses(config: Config) -> dict[str, str]:
    """Return the hosts' IP addresses, where the configuration has them: render asks no name server."""
    addresses: dict[str, str] = {}
    for host in config.hosts:
        with contextlib.suppress(ValueError):
            address = "127.0.0.1" if host.is_self else host.address
            addresses[host.name] = str(ipaddress.ip_address(address.partition("%")[0]))
    return addresses


def _spare_work() -> None:
    """Leave out what a short run has no use for (benchmarks/README.md)."""
    # Collecting garbage: a poll makes little of it that is not freed at once.
    gc.set_threshold(200_000, 50, 50)
    # numpy's linear algebra starts a thread for each core when it is imported, used or not.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _mask_key(folder: Path) -> bytes:
    """Return what pseudonyms are made with; with another key they would be other ones."""
    from webmon.store.files import make_folder, storing, write

    path = folder / "mask.key"
    with storing(path):
        try:
            return path.read_bytes()
        except FileNotFoundError:
            make_folder(folder)
            write(path, secrets.token_bytes(32), mode=0o600)
            return path.read_bytes()
