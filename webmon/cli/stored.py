"""What the commands have in common that look at the data folder: where it is, its age, what can't be read."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from webmon.errors import ConfigError, DataError

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from pathlib import Path

    from webmon.cli.options import Parser
    from webmon.config.glance import Glance
    from webmon.model import Snapshot

# A poll comes every five minutes; after three of them, something is wrong.
OLD_S = 15 * 60


def add_data_options(command: Parser) -> None:
    """Add where the data are, and the forms of the answer."""
    command.add_argument("--data", metavar="DIR", help="the data folder (default: [data] dir)")
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--csv", action="store_true", help="as CSV")


def data_folder(options: Namespace, settings: Glance) -> Path:
    """Return the data folder; ConfigError if nothing says where it is."""
    from pathlib import Path

    folder = Path(options.data) if options.data is not None else settings.data
    if folder is None:
        raise ConfigError(
            "where the data are is not known: there is no configuration",
            "Name it with -c, or the data folder with --data; users.html and history.html need neither",
        )
    return folder


def snapshot_of(folder: Path, options: Namespace) -> Snapshot | None:
    """Return the last snapshot; None if there is none, or, which is said, none that can be read."""
    from webmon.store import snapshot

    try:
        return snapshot.load(folder)
    except DataError as error:
        if (folder / "latest").is_symlink() and not options.quiet:
            print(f"webmon: the last snapshot is not used: {error}", file=sys.stderr)
        return None


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Turn a failure to read the history into one clear line."""
    try:
        yield
    except OSError as error:
        what = error.filename or folder
        raise DataError(f"{what} can't be read: {error.strerror}", "Check its owner and mode") from None


def tell_age(time: datetime, options: Namespace) -> None:
    """Say so if the last poll was long ago."""
    age = (datetime.now(UTC) - time).total_seconds()
    if age > OLD_S and not options.quiet:
        from webmon.cli.gpu_table import ago

        print(f"webmon: the last poll was {ago(age)}ago: is webmon still run by cron?", file=sys.stderr)
