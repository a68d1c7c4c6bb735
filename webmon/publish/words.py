"""Numbers, times and names as a person reads them. What is not known is an en dash, never a 0."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime, timedelta

    from webmon.model import Gpu, Host, Process
    from webmon.usage import Window

UNKNOWN = "–"  # noqa: RUF001 - an en dash on purpose
HIDDEN = "owner hidden"

# A state is told by a word, a shape and a colour; shapes and colours are in the style sheet.
STATES = {"free": "free", "busy": "busy", "held": "idle, held", "faulty": "faulty", "unknown": "unknown"}

_BRAND = re.compile(r"\b(?:NVIDIA|GeForce|Tesla|Graphics Device)\b ?")
_FORM = re.compile(r"[- ](?:SXM\d?|PCIE?|HBM\d\w?|NVL)\b", re.IGNORECASE)


def gigabytes(mib: int | None, digits: int = 1) -> str:
    """Write memory: `28.7`, `80`."""
    if mib is None:
        return UNKNOWN
    text = f"{mib / 1024:.{digits}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def whole_gigabytes(mib: int) -> int:
    """Return memory as a card's size is told: 81559 MiB are 80."""
    return round(mib / 1024)


def memory_of(mib: int | None) -> str:
    """Write a process's memory: `6.3 GB`."""
    return UNKNOWN if mib is None else f"{gigabytes(mib)}\u202fGB"


def much_memory(used: int, total: int) -> str:
    """Write a cluster's memory: `310 of 960 GB`, `12.5 of 80 TB`."""
    if total < 10_000 * 1024:
        return f"{gigabytes(used, 0)} of {gigabytes(total, 0)}\u202fGB"
    return f"{gigabytes(used // 1024)} of {gigabytes(total // 1024)}\u202fTB"


def memory(used: int | None, total: int | None) -> str:
    """Write memory used and total: `28.7/80 GB`."""
    if used is None and total is None:
        return UNKNOWN
    return f"{gigabytes(used)}/{gigabytes(total, 0)} GB"


def percent(value: float | None) -> str:
    """Write a percentage: `43 %`, with a space that does not break."""
    return UNKNOWN if value is None else f"{value:.0f}\u202f%"


def share(value: float | None) -> str:
    """Write a percentage of which tenths matter: `99.9 %`."""
    return UNKNOWN if value is None else f"{value:.1f}\u202f%"


def hours(value: float | None) -> str:
    """Write GPU-hours or kWh: `12.4`, as `webmon stats` does."""
    return UNKNOWN if value is None else f"{value:.1f}"


def mean_count(value: float) -> str:
    """Write how many GPUs, on average: `2`, `2.5`."""
    return f"{value:.1f}".removesuffix(".0")


def cost(kwh: float | None, price: float | None) -> str:
    """Write what energy costs; nothing where no price is given."""
    return "" if price is None else UNKNOWN if kwh is None else f"{kwh * price:.2f}"


def coverage(window: Window) -> str:
    """Say how much of a time is known."""
    known = share(window.coverage_pct(window.total))
    return f"Of the time {share(window.polled_pct)} was polled; of the GPU-hours, {known} are known"


def level(percentage: float | None) -> str:
    """Say how full a bar is, as classes of the style sheet that add up: ` v40 v3`; nothing for no bar.

    A style attribute would say it in one number, and need a weaker Content-Security-Policy.
    """
    if percentage is None:
        return ""
    tens, ones = divmod(max(0, min(100, round(percentage))), 10)
    return (f" v{tens}0" if tens else "") + (f" v{ones}" if ones or not tens else "")


def degrees(celsius: int | None) -> str:
    """Write a temperature: `62 °C`."""
    return UNKNOWN if celsius is None else f"{celsius}\u202f°C"


def watts(power: float | None) -> str:
    """Write a power: `310 W`."""
    return UNKNOWN if power is None else f"{power:.0f}\u202fW"


def power(now: float | None, limit: float | None) -> str:
    """Write a power and its limit: `310 of 400 W`."""
    if limit is None:
        return watts(now)
    return f"{UNKNOWN if now is None else f'{now:.0f}'} of {watts(limit)}"


def megahertz(clock: int | None) -> str:
    """Write a clock: `1980 MHz`."""
    return UNKNOWN if clock is None else f"{clock}\u202fMHz"


def load(load1: float | None, cpus: int | None) -> str:
    """Write a host's load, beside its processors: `12.4/64`."""
    if load1 is None:
        return UNKNOWN
    return f"{load1:.1f}" + (f"/{cpus}" if cpus else "")


def user(process: Process) -> str:
    """Say whose a process is."""
    return process.user or HIDDEN


def running(process: Process, taken_at: datetime) -> str:
    """Say for how long a process has been running; nothing where that is not known."""
    return duration(taken_at - process.started_at) if process.started_at else ""


def program(process: Process, *, with_name: bool = False) -> str:
    """Say what a process is: its program, and on request what nvidia-smi calls it, where that differs."""
    command, name = process.command or "", process.name or ""
    if process.is_claim:
        return f"claimed, {command}" if command else "claimed"
    if with_name and command and name and name.rpartition("/")[2] not in command:
        return f"{command} ({name})"
    return command or name


def facts(host: Host, gpus: Sequence[Gpu]) -> str:
    """Say what a host is: its models, driver, load and main memory, as far as they are known."""
    parts = [models(gpu.name for gpu in gpus), f"driver {host.driver}" if host.driver else ""]
    if host.load1 is not None:
        parts.append(f"load {load(host.load1, host.cpus)}")
    if host.ram_used_mib is not None:
        used, total = gigabytes(host.ram_used_mib, 0), gigabytes(host.ram_total_mib, 0)
        parts.append(f"RAM {used}/{total} GB")
    return " · ".join(part for part in parts if part)


def sentence(text: str | None) -> str | None:
    """End a text as a sentence ends."""
    return text + "." if text and text[-1] not in ".?!`)" else text


def duration(span: timedelta) -> str:
    """Write how long something takes or took: `12 min`, `3 h`, `7 d`."""
    seconds = max(0, int(span.total_seconds()))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def moment(time: datetime | None) -> str:
    """Write a time: `2026-11-18 08:23 UTC`."""
    return UNKNOWN if time is None else f"{time:%Y-%m-%d %H:%M} UTC"


def iso(time: datetime) -> str:
    """Write a time for programs: `2026-11-18T08:23:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


@lru_cache(maxsize=1024)
def model(name: str | None) -> str:
    """Shorten a card's name to what tells cards apart: `A100 80GB`, `RTX 3090`."""
    if name is None:
        return UNKNOWN
    short = _FORM.sub("", _BRAND.sub("", name)).replace("-", " ")
    return " ".join(short.split()) or name


def models(names: Iterable[str | None]) -> str:
    """Say which cards a host has: the model alone, or each model and how many."""
    count = Counter(model(name) for name in names if name is not None)
    if len(count) < 2:
        return next(iter(count), "")
    return ", ".join(f"{name} ×{number}" for name, number in count.most_common())  # noqa: RUF001
