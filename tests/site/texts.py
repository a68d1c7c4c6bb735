"""The files for terminals of any snapshot, and how wide their lines are."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime, timedelta
from pathlib import Path

from webmon.config.settings import SiteSettings
from webmon.model import Gpu, Host, Process, Snapshot
from webmon.publish.lab import lab
from webmon.publish.look import Look
from webmon.publish.text import text


def look(title="GPU monitor"):
    """Return what a view needs beside the lab."""
    site = SiteSettings(dir=Path("site"), title=title, refresh=60, templates=None)
    return Look(site, {}, datetime(2026, 11, 18, 8, 22, tzinfo=UTC), timedelta(minutes=5))


def files(snapshot, *, title="GPU monitor", addresses=None):
    """Return the text of each file for terminals."""
    return dict(text(lab(snapshot, addresses), look(title)))


def shown_width(line):
    """Return how many columns a terminal gives a line: the rule of wcwidth, in short."""
    width = 0
    for char in line:
        if unicodedata.category(char) in ("Mn", "Me") or 0x1160 <= ord(char) <= 0x11FF:
            continue
        width += 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1
    return width


def readme():
    """Return two cards whose rows and boxes people know from elsewhere."""
    seen = datetime(2019, 3, 24, 20, 27, 10, tzinfo=UTC)
    name = "mau_local_19e5d26c"
    used = Gpu(name, 0, "GPU-0", "NVIDIA GeForce GTX 1080 Ti", "busy", 92, None, 8018, 11169, 80)
    other = Gpu(name, 1, "GPU-1", "GeForce GTX 1080 Ti", "busy", 0, None, 2, 11172, 38)
    processes = (
        Process(name, 0, "GPU-0", 27182, "user1", "train2", None, 1618),
        Process(name, 0, "GPU-0", 31415, "root", "/usr/bin/train1", "train1", 6400),
    )
    return Snapshot(seen, (Host(name, status="up", last_seen=seen),), (used, other), processes)
