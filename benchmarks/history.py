"""The history beside its bounds: rendering with months of it, memory, and room on the disk.

    make bench-history                       50 hosts x 8 GPUs x 90 days, and 1,000 x 8 x 24 hours
    python benchmarks/history.py --days 30 --rounds 5

It exits with 1 if a number is over its bound.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from webmon.model import Gpu, Host, Process, Snapshot
from webmon.store import days, history
from webmon.store import snapshot as store

if TYPE_CHECKING:
    from collections.abc import Iterator

PERIOD = timedelta(minutes=5)
CARDS = (
    ("NVIDIA H100 80GB HBM3", 81559, 700),
    ("NVIDIA A100-SXM4-80GB", 81920, 400),
    ("NVIDIA RTX A6000", 49140, 300),
    ("NVIDIA GeForce RTX 3090", 24576, 350),
)

# What a run reports of itself: the times of its parts, beside those of `webmon render` as a whole.
RUN = """
import json, resource, sys, time
from pathlib import Path
from webmon import config as configuration, pipeline
parts = {}
def timed(name, work):
    def run(*args, **options):
        start = time.perf_counter()
        try:
            return work(*args, **options)
        finally:
            parts[name] = parts.get(name, 0.0) + time.perf_counter() - start
    return run
pipeline._past = timed("past", pipeline._past)
from webmon.publish import pages, people, trends
pages.people, pages.trends = timed("pages", pages.people), timed("pages", pages.trends)
config = configuration.load(Path(sys.argv[1]))
start = time.perf_counter()
pipeline.render(config, config.data.dir, config.site.dir)
parts["render"] = time.perf_counter() - start
parts["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
json.dump(parts, sys.stdout)
"""

# What fetch does for each day that is over, and render for each hour; here for all at once.
SUM_UP = """
import sys
from pathlib import Path
from webmon.store import stats
from webmon.store.rollup import Rollups
folder = Path(sys.argv[1])
rollups = Rollups(folder, stats.last_time(folder), save=True)
rollups.make_all()
rollups.gpus(rollups.today)
"""


@dataclass
class Slot:
    """A card, and the job on it."""

    host: str
    index: int
    uuid: str
    card: tuple[str, int, int]
    state: str = "free"
    users: tuple[tuple[str, int], ...] = ()
    left: int = 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--days", type=int, default=90, help="of the smaller cluster")
    parser.add_argument("--hosts", type=int, default=50, help="of the smaller cluster")
    parser.add_argument("--many", type=int, default=1000, help="hosts of the larger one, 24 hours of it")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python {platform.python_version()}")
    print("| what | median | least to most | bound | |\n|---|---|---|---|---|")
    ok = True
    with tempfile.TemporaryDirectory(prefix="webmon-bench-") as name:
        for hosts, days in ((options.hosts, options.days), (options.many, 1)):
            ok = measure(Path(name) / f"{hosts}", hosts, days, options.rounds) and ok
    sys.exit(0 if ok else 1)


def measure(folder: Path, hosts: int, days: int, rounds: int) -> bool:
    """Write a history, sum it up, render it several times, and print the numbers."""
    samples, size = write(folder / "data", hosts, days)
    config = folder / "config.ini"
    config.write_text(f'[common]\nuser = "nobody"\nhosts = "{names(hosts)}"\n', encoding="utf-8")
    title = f"{hosts:,} hosts x 8 x {days} days" if days > 1 else f"{hosts:,} hosts x 8 x 24 hours"
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", SUM_UP, str(folder / "data")], check=True)
    together = time.perf_counter() - started
    runs = [run(config) for _ in range(rounds)]
    ok = show(f"{title}: once, summing up all days", [together], "s")
    bounds: dict[str, float] = {"whole": 3, "memory": 600} if days > 1 else {"past and pages": 3}
    for part, unit in (("whole", "s"), ("past", "s"), ("past and pages", "s"), ("memory", "MB")):
        ok = show(f"{title}: {part}", [one[part] for one in runs], unit, bounds.get(part)) and ok
    if size:
        ok = show(f"{title}: bytes a sample in closed days", [size / samples], "", 60) and ok
    room = sum(path.stat().st_size for path in (folder / "data" / "rollups").iterdir())
    return show(f"{title}: rollups, a day", [room / (days + 1) / 1000], "kB") and ok


def run(config: Path) -> dict[str, float]:
    """Render once, as a process of its own: start, imports, history, pages."""
    started = os.times().elapsed
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(config)], check=True, stdout=subprocess.PIPE, text=True
    )
    parts: dict[str, float] = json.loads(done.stdout)
    whole = os.times().elapsed - started
    return {**parts, "whole": whole, "past and pages": parts["past"] + parts.get("pages", 0.0)}


def show(what: str, values: list[float], unit: str, bound: float | None = None) -> bool:
    """Print one line of the table, and tell whether the number is within its bound."""
    middle = statistics.median(values)
    is_within = bound is None or middle <= bound
    limit = "" if bound is None else f"{bound:g} {unit}".strip()
    spread = f"{min(values):.2f} to {max(values):.2f}" if len(values) > 1 else ""
    verdict = "" if bound is None else "ok" if is_within else "OVER"
    print(f"| {what} | {middle:.2f} {unit} | {spread} | {limit} | {verdict} |".replace("  ", " "), flush=True)
    return is_within


def names(hosts: int) -> str:
    return f"gpu[{1:04}-{hosts:04}].lab"


def write(data: Path, hosts: int, number: int) -> tuple[int, int]:
    """Write the days, the closed ones compressed, and the last poll as the snapshot.

    Returns how many samples the closed days have, and their size.
    """
    draw = random.Random(11)
    users = [f"user{number:03}" for number in range(hosts)]
    slots = [
        Slot(
            f"gpu{host + 1:04}.lab",
            index,
            f"GPU-{draw.getrandbits(32):08x}-7c1e-4f5a-9d2b-{draw.getrandbits(48):012x}",
            CARDS[host % len(CARDS)],
        )
        for host in range(hosts)
        for index in range(8)
    ]
    now = datetime.now(UTC)
    end = now.replace(minute=now.minute // 5 * 5, second=0, microsecond=0)
    start = end - timedelta(days=number)
    (data / "history").mkdir(parents=True)
    samples = size = 0
    day = start
    while day <= end:
        midnight = day.replace(hour=0, minute=0) + timedelta(days=1)
        is_over = midnight <= end
        path = data / "history" / f"{day.date()}.csv"
        with open(path, "wb") as file:
            file.write((",".join(history.Sample._fields) + "\n").encode())
            while day < midnight and day <= end:
                file.write("".join(lines(slots, users, day, draw)).encode())
                samples += len(slots) * is_over
                day += PERIOD
        os.utime(path, (day.timestamp(), day.timestamp()))
        if is_over:
            days.close(path)
            size += path.with_name(f"{path.name}.gz").stat().st_size
    store.save(data, snapshot(slots, end), 2)
    return samples, size


def lines(slots: list[Slot], users: list[str], time: datetime, draw: random.Random) -> Iterator[str]:
    """Return a poll. Jobs last for hours; there are fewer of them at night."""
    stamp = f"{time:%Y-%m-%dT%H:%M:%SZ}"
    is_night = time.hour < 8 or time.weekday() > 4
    for slot in slots:
        if slot.left <= 0:
            slot.state = draw.choices(("free", "busy", "held"), (50, 45, 5) if is_night else (20, 70, 10))[0]
            several = 0 if slot.state == "free" else draw.choices((1, 2, 3), (85, 12, 3))[0]
            slot.users = tuple((user, draw.randint(500, 20_000)) for user in draw.sample(users, several))
            slot.left = draw.randint(3, 300)
        slot.left -= 1
        name, memory, power = slot.card
        is_busy = slot.state == "busy"
        used = sum(mib for _, mib in slot.users) + draw.randint(1, 9)
        watts = power * (draw.uniform(0.4, 1) if is_busy else 0.13)
        yield (
            f"{stamp},{slot.host},{slot.index},{slot.uuid},{name},{slot.state},"
            f"{draw.randint(8, 100) if is_busy else 0},{used},{memory},{watts:.2f},{draw.randint(28, 84)},"
            f"{';'.join(f'{user}={mib}' for user, mib in slot.users)}\n"
        )


def snapshot(slots: list[Slot], time: datetime) -> Snapshot:
    hosts = dict.fromkeys(slot.host for slot in slots)
    return Snapshot(
        time,
        tuple(
            Host(host, None, f"group {number % 9}", "up", checked_at=time, last_seen=time, gpus=8)
            for number, host in enumerate(hosts)
        ),
        tuple(
            Gpu(
                slot.host,
                slot.index,
                slot.uuid,
                slot.card[0],
                slot.state,
                50 if slot.state == "busy" else 0,
                memory_total_mib=slot.card[1],
                users=tuple(user for user, _ in slot.users),
            )
            for slot in slots
        ),
        tuple(
            Process(
                slot.host, slot.index, slot.uuid, 4000 + slot.index, user, "python", "train.py", mib, time
            )
            for slot in slots
            for user, mib in slot.users
        ),
    )


if __name__ == "__main__":
    main()
