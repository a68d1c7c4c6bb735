"""The CSVs of one poll: written beside the old ones, swapped in at once, pruned.

    data/latest -> snapshots/20261118T080500.123Z/{hosts,gpus,processes}.csv

A reader follows `latest` once and then sees one whole snapshot. A run that is killed leaves a
folder whose name starts with a dot, which the next one clears away.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from webmon.errors import DataError
from webmon.model import Gpu, Host, Process, Snapshot
from webmon.store import table
from webmon.store.files import FILE_MODE, FOLDER_MODE, make_folder, storing

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    import pandas

_TIME = re.compile(r"\d{8}T\d{6}\.\d{3}Z")


def frames(snapshot: Snapshot) -> dict[str, pandas.DataFrame]:
    """Return the snapshot as data frames of texts, just as they are saved."""
    import pandas

    tables: Mapping[str, tuple[Sequence[object], type]] = {
        "hosts": (snapshot.hosts, Host),
        "gpus": (snapshot.gpus, Gpu),
        "processes": (snapshot.processes, Process),
    }
    return {
        name: pandas.DataFrame(table.cells(rows, kind), dtype=object)  # type: ignore[type-var]
        for name, (rows, kind) in tables.items()
    }


def save(folder: Path, snapshot: Snapshot, keep: int) -> Path:
    """Save a snapshot, make it the latest, and remove those beyond the newest `keep`."""
    with storing(folder):
        snapshots = folder / "snapshots"
        make_folder(snapshots)
        _clear_leftovers(folder, snapshots)
        new = snapshots / f".new-{secrets.token_hex(4)}"
        try:
            new.mkdir(mode=FOLDER_MODE)
            for name, frame in frames(snapshot).items():
                _write_csv(new / f"{name}.csv", frame)
            os.chmod(new, FOLDER_MODE)
            saved = _rename(new, snapshots, snapshot.taken_at)
        except BaseException:
            shutil.rmtree(new, ignore_errors=True)
            raise
        _swap(folder, saved)
        _prune(snapshots, saved, keep)
    return saved


def load(folder: Path) -> Snapshot:
    """Return the latest snapshot; DataError if there is none that can be read."""
    try:
        target = os.readlink(folder / "latest")
    except FileNotFoundError:
        raise DataError(f"{folder} has no snapshot yet", "Run `webmon fetch` first") from None
    except OSError:
        target = "latest"  # a copy of the folder in which the link has become a folder
    return read(folder / target)


def read(folder: Path, only: Collection[str] | None = None) -> Snapshot:
    """Return the snapshot in this very folder; or, of a large one, what is in it of some hosts."""
    hosts = table.read(folder / "hosts.csv", Host, only)
    gpus = table.read(folder / "gpus.csv", Gpu, only)
    processes = table.read(folder / "processes.csv", Process, only)
    return Snapshot(_taken_at(folder, hosts), hosts, gpus, processes)


def kept(folder: Path) -> list[Path]:
    """Return the folders of the snapshots that are kept, in the order of their times."""
    return [folder / "snapshots" / name for name in _saved(folder / "snapshots")]


def latest_time(folder: Path) -> datetime | None:
    """Return when the latest snapshot was taken, to the second; None if that can't be told."""
    try:
        time = _time(os.path.basename(os.readlink(folder / "latest")))
    except OSError:
        return None
    return time.replace(microsecond=0) if time else None


def period(folder: Path) -> timedelta | None:
    """Return the usual time between two polls, by the snapshots that are kept."""
    times = [time for name in _saved(folder / "snapshots") if (time := _time(name))]
    gaps = sorted(later - earlier for earlier, later in pairwise(times))
    return gaps[len(gaps) // 2] if gaps else None


def _write_csv(path: Path, frame: pandas.DataFrame) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        frame.to_csv(file, index=False, lineterminator="\n")
        os.fchmod(file.fileno(), FILE_MODE)
        file.flush()
        os.fsync(file.fileno())


def _rename(new: Path, snapshots: Path, time: datetime) -> Path:
    while True:
        saved = snapshots / _name(time)
        if not saved.exists():
            new.rename(saved)
            return saved
        time += timedelta(milliseconds=1)


def _swap(folder: Path, saved: Path) -> None:
    link = folder / f".latest-{secrets.token_hex(4)}"
    link.symlink_to(saved.relative_to(folder))
    latest = folder / "latest"
    if latest.is_dir() and not latest.is_symlink():
        shutil.rmtree(latest)  # a copied folder; a link can't replace it
    link.replace(latest)


def _prune(snapshots: Path, latest: Path, keep: int) -> None:
    # After a clock that went back, what is later than the latest is the oldest.
    names = sorted(_saved(snapshots), key=lambda name: (name <= latest.name, name))
    for name in names[: max(0, len(names) - keep)]:
        old = snapshots / f".old-{name}"
        (snapshots / name).rename(old)
        shutil.rmtree(old, ignore_errors=True)


def _clear_leftovers(folder: Path, snapshots: Path) -> None:
    for leftover in [*snapshots.glob(".new-*"), *snapshots.glob(".old-*")]:
        shutil.rmtree(leftover, ignore_errors=True)
    for leftover in folder.glob(".latest-*"):
        leftover.unlink(missing_ok=True)


def _saved(snapshots: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(snapshots) if _TIME.fullmatch(name))
    except OSError:
        return []


def _name(time: datetime) -> str:
    return time.strftime("%Y%m%dT%H%M%S.") + f"{time.microsecond // 1000:03d}Z"


def _time(name: str) -> datetime | None:
    try:
        return datetime.strptime(name[:-1], "%Y%m%dT%H%M%S.%f").replace(tzinfo=UTC)
    except ValueError:
        return None


def _taken_at(folder: Path, hosts: Sequence[Host]) -> datetime:
    times = [host.checked_at for host in hosts if host.checked_at]
    time = _time(folder.name) or max(times, default=None)
    if time is None:
        raise DataError(
            f"{folder} does not say when it was taken", "Run `webmon fetch` to write a new snapshot"
        )
    return time
