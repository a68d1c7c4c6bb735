"""Probe text → Reading, for any bytes whatever. Nothing here raises.

The rules are those of what real drivers print: rows are taken whatever the exit code, error lines
are looked for even at exit 0, and what is neither is kept as a remark.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from webmon.clean import clean
from webmon.collect import diagnose, gpu_rows, process_rows
from webmon.collect.sections import Section, split
from webmon.errors import HostError
from webmon.model import Problem, Reading

if TYPE_CHECKING:
    from datetime import datetime

    from webmon.model import Gpu, Process


def parse(raw: bytes, token: str, host: str, now: datetime) -> Reading | HostError:
    """Return what the host said, or why it can't be used."""
    text = raw.decode("utf-8", errors="replace")
    sections = split(text, token)
    if not sections:
        return _nothing_useful(text)
    if not any(section.name == "end" for section in sections):
        return HostError(
            "cut-off",
            "the answer ended in the middle",
            f"Try it by hand: log in to {host} and run nvidia-smi there; has its disk or memory run full?",
        )
    remarks: list[str] = []
    tries = [section for section in sections if section.name == "gpus"]
    gpus, driver = gpu_rows.read(tries, host, remarks)
    lost = gpu_rows.lost(tries, host, gpus)
    processes = process_rows.read(sections, host, gpus, now, remarks)
    system = _system([line for s in sections if s.name == "system" for line in s.lines])
    return system._replace(
        gpus=tuple(sorted([*gpus, *lost], key=lambda gpu: gpu.index)),
        processes=None if processes is None else tuple(processes),
        problem=_problem(tries, gpus, lost, processes),
        driver=driver,
        remarks=tuple(remarks),
    )


def _nothing_useful(text: str) -> HostError:
    shown = clean(" ".join(text.split())[:200])
    if not shown:
        return HostError(
            "garbled",
            "the host answered nothing at all",
            "Log in by hand with the same user and key: does its shell start?",
        )
    if shown == "This key runs the webmon probe and nothing else.":
        return HostError(
            "garbled",
            "the forced command of the key did not get a token",
            "Install the line that `webmon deploy key` prints",
        )
    return HostError(
        "garbled",
        f"the host answered something else: {shown!r}",
        "Log in by hand with the same user and key: does it give a shell with sh?",
    )


def _system(lines: list[str]) -> Reading:
    """Return a reading of the machine itself, without its GPUs."""
    reading = Reading()
    memory: dict[str, int] = {}
    for line in lines:
        kind, _, rest = line.partition(" ")
        if kind == "load" and re.fullmatch(r"[0-9]{1,6}\.[0-9]{1,3}", rest):
            reading = reading._replace(load1=float(rest))
        elif kind == "cpus":
            reading = reading._replace(cpus=_count_cpus(rest))
        elif kind == "mem" and (match := re.fullmatch(r"(\w+): ([0-9]{1,15})", rest)):
            memory[match[1]] = int(match[2])
    if total := memory.get("MemTotal"):
        parts = (memory.get(name, 0) for name in ("MemFree", "Buffers", "Cached"))
        available = memory.get("MemAvailable", sum(parts))
        used = max(0, total - available)
        reading = reading._replace(ram_used_mib=used // 1024, ram_total_mib=total // 1024)
    return reading


def _count_cpus(text: str) -> int | None:
    count = 0
    for part in text.strip().split(","):
        match = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part)
        if match is None:
            return None
        count += max(0, int(match[2] or match[1]) - int(match[1])) + 1
    return count


def _problem(
    tries: list[Section], gpus: list[Gpu], lost: list[Gpu], processes: list[Process] | None
) -> Problem | None:
    if not tries:
        return Problem(
            "garbled", "the probe asked for no GPUs", "Install the line that `webmon deploy key` prints anew"
        )
    last = tries[-1]
    lines = [clean(line) for line in gpu_rows.words_of(last)]
    ill = sum(gpu.state == "faulty" for gpu in gpus)
    if not gpus:
        return diagnose.no_rows(lines, last.code)
    if lost or ill:
        return diagnose.faulty(lines, len(lost) + ill, len(gpus) + len(lost))
    if processes is None:
        return diagnose.unknown_processes()
    return diagnose.rows_with_trouble(lines, last.code)
