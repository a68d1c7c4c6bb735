"""A host's answers to the probe, put together from parts as the probe itself prints them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from webmon.collect.parse import parse
from webmon.collect.probe import GPU_FIELDS, YOUNG_FIELDS
from webmon.errors import HostError

if TYPE_CHECKING:
    from webmon.model import Reading

TOKEN = "0123456789abcdef"
HOST = "gpu01"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

ALL_FIELDS = ",".join(GPU_FIELDS)
OLD_FIELDS = ",".join(name for name in GPU_FIELDS if name not in YOUNG_FIELDS)

CASES = Path(__file__).resolve().parents[1] / "fixtures" / "probe"

IDLE = {
    "index": "0",
    "uuid": "GPU-7b1d9bbe-ab86-4df7-8a26-ae75b50e9ddf",
    "driver_version": "550.54.14",
    "utilization.gpu": "0",
    "utilization.memory": "0",
    "memory.used": "4",
    "memory.total": "49140",
    "temperature.gpu": "31",
    "power.draw": "21.53",
    "power.limit": "300.00",
    "fan.speed": "30",
    "clocks.sm": "210",
    "pstate": "P8",
    "mig.mode.current": "[N/A]",
    "name": "NVIDIA RTX A6000",
}


def row(**changes: str) -> str:
    """Return the row of an idle card; `memory__used="5"` changes its memory.used."""
    cells = IDLE | {name.replace("__", "."): value for name, value in changes.items()}
    return ", ".join(cells.values())


def section(name: str, text: str = "", *, args: str = "", code: int | str | None = None) -> str:
    """Return one section: its mark, its lines and, if there was one, the exit code."""
    ended = "" if code is None else f"\n@{TOKEN} exit {code}\n"
    return f"\n@{TOKEN} {name}{' ' if args else ''}{args}\n{text}{ended}"


def answer(
    gpus: str | None = None,
    processes: str | None = "",
    *,
    gpus_code: int = 0,
    processes_code: int | None = 0,
    system: str = "",
    owners: str = "",
    cgroups: str = "",
    end: bool = True,
) -> bytes:
    """Return a whole answer; without `gpus`, that of one idle card."""
    parts = [section("system", system), section("gpus", gpus or row(), args=ALL_FIELDS, code=gpus_code)]
    if processes is not None:
        parts.append(section("processes", processes, code=processes_code))
    parts += [section("owners", owners), section("cgroups", cgroups)]
    return "".join([*parts, section("end") if end else ""]).encode()


def folder(case: Path) -> str:
    """Return the answer that a folder of fixtures stands for."""
    parts = [section("system", _text(case / "system.txt"))]
    for stem, fields_asked in (("gpus", ALL_FIELDS), ("gpus.2", OLD_FIELDS), ("gpus.3", "")):
        if (case / f"{stem}.exit").exists():
            asked = _text(case / f"{stem}.fields").strip() or fields_asked
            parts.append(section("gpus", _text(case / f"{stem}.txt"), args=asked, code=_code(case, stem)))
    if (case / "processes.exit").exists():
        parts.append(section("processes", _text(case / "processes.txt"), code=_code(case, "processes")))
    parts += [section(name, _text(case / f"{name}.txt")) for name in ("owners", "cgroups")]
    return "".join([*parts, section("end")])


def read(raw: bytes) -> Reading:
    """Return what an answer says; it has to be a usable one."""
    reading = parse(raw, TOKEN, HOST, NOW)
    assert not isinstance(reading, HostError), reading
    return reading


def refused(raw: bytes) -> HostError:
    """Return why an answer can't be used; it has to be such a one."""
    error = parse(raw, TOKEN, HOST, NOW)
    assert isinstance(error, HostError), error
    return error


def plain(reading: Reading) -> dict[str, Any]:
    """Return a reading as expected.json has it: without what is not known, hosts and remedies.

    `processes` is always there: null is "not known", which is not the same as none.
    """
    assert {row.host for row in (*reading.gpus, *(reading.processes or ()))} <= {HOST}
    return {"processes": None if reading.processes is None else [], **as_plain(reading)}


def as_plain(value: Any) -> Any:
    """Return a part of the model as JSON has it."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if not isinstance(value, tuple):
        return value
    if not hasattr(value, "_asdict"):
        return [as_plain(item) for item in value]
    return {
        name: as_plain(known)
        for name, known in value._asdict().items()
        if known not in (None, ()) and name not in ("host", "remedy")
    }


def _text(path: Path) -> str:
    return path.read_bytes().decode() if path.exists() else ""


def _code(case: Path, stem: str) -> str:
    return _text(case / f"{stem}.exit").strip()
