"""`--json` and `--csv`: what is listed, for programs."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

from webmon.model import Gpu, Snapshot
from webmon.store import document, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from webmon.pick.choose import Offer


def print_json(snapshot: Snapshot, listed: Sequence[Offer]) -> None:
    """Print the snapshot in the form of the site's snapshot.json, with its GPUs as they are listed."""
    _speak_utf8()
    gpus = tuple(offer.gpu for offer in listed)
    if len(gpus) == len(snapshot.gpus):  # all of it, hosts without a GPU and processes of no GPU too
        hosts, processes = snapshot.hosts, snapshot.processes
    else:
        names, on = {gpu.host for gpu in gpus}, {(gpu.host, gpu.uuid) for gpu in gpus}
        hosts = tuple(host for host in snapshot.hosts if host.host in names)
        processes = tuple(p for p in snapshot.processes if (p.host, p.gpu_uuid) in on)
    print(document.to_json(Snapshot(snapshot.taken_at, hosts, gpus, processes)), end="")


def print_csv(listed: Sequence[Offer]) -> None:
    """Print the GPUs with the columns of gpus.csv."""
    from csv import writer

    _speak_utf8()
    columns = table.cells([offer.gpu for offer in listed], Gpu)
    rows = writer(sys.stdout, lineterminator="\n")
    rows.writerow(columns)
    rows.writerows(zip(*columns.values(), strict=True))


def print_document(document: Mapping[str, Any]) -> None:
    """Print a document as JSON."""
    import json

    _speak_utf8()
    print(json.dumps(document, ensure_ascii=False, allow_nan=False))


def print_rows(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows that have these columns; what is not known is an empty cell."""
    from csv import writer

    _speak_utf8()
    lines = writer(sys.stdout, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows([_plain(value) for value in row.values()] for row in rows)


def _plain(value: Any) -> Any:
    return "" if value is None else round(value, 4) if isinstance(value, float) else value


def _speak_utf8() -> None:
    """Write UTF-8 whatever the locale is: it is a program that reads this."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
