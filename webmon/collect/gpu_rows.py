"""The rows of `nvidia-smi --query-gpu`, and the cards that are named as lost and have no row."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from webmon.clean import clean
from webmon.collect import cells, diagnose
from webmon.model import Gpu

if TYPE_CHECKING:
    from webmon.collect.sections import Section

MAX_GPUS = 1024
_ROW = re.compile(r"[0-9]{1,4}, GPU-")


def read(tries: list[Section], host: str, remarks: list[str]) -> tuple[list[Gpu], str | None]:
    """Return the rows of the last try that has any."""
    for section in reversed(tries):
        columns = section.args.split(",")
        if columns[-1] != "name" or not {"index", "uuid"} <= set(columns):
            continue
        rows: dict[tuple[str, str], Gpu] = {}
        driver: str | None = None
        for line in section.lines:
            values = [cell.strip() for cell in line.split(", ", len(columns) - 1)]
            row = dict(zip(columns, values, strict=False))
            if not _is_gpu_row(row, columns):
                if not line.startswith("index"):
                    remarks.append(clean(line)[:300])
                continue
            key = (row["index"], row["uuid"])
            if key in rows:
                remarks.append(f"a second row for {clean(row['uuid'])}")
                continue
            if len(rows) == MAX_GPUS:
                remarks.append(f"more than {MAX_GPUS} rows")
                break
            rows[key] = _gpu(row, host)
            driver = driver or cells.text(row.get("driver_version"))
        if rows:
            return list(rows.values()), driver
    return [], None


def _is_gpu_row(row: dict[str, str], columns: list[str]) -> bool:
    return (
        len(row) == len(columns)
        and re.fullmatch(r"[0-9]{1,4}", row["index"]) is not None
        and (row["uuid"].startswith("GPU-") or cells.is_fault(row["uuid"]))
    )


def _gpu(row: dict[str, str], host: str) -> Gpu:
    return Gpu(
        host=host,
        index=int(row["index"]),
        uuid=cells.text(row["uuid"]),
        name=cells.text(row["name"]),
        state="faulty" if any(cells.is_fault(cell) for cell in row.values()) else "unknown",
        utilization_pct=cells.whole(row, "utilization.gpu"),
        memory_utilization_pct=cells.whole(row, "utilization.memory"),
        memory_used_mib=cells.whole(row, "memory.used"),
        memory_total_mib=cells.whole(row, "memory.total"),
        temperature_c=cells.whole(row, "temperature.gpu"),
        power_w=cells.number(row, "power.draw"),
        power_limit_w=cells.number(row, "power.limit"),
        fan_pct=cells.whole(row, "fan.speed"),
        sm_clock_mhz=cells.whole(row, "clocks.sm"),
        pstate=cells.text(row.get("pstate")),
        mig_mode=cells.text(row.get("mig.mode.current")),
    )


def lost(tries: list[Section], host: str, gpus: list[Gpu]) -> list[Gpu]:
    """Return a row for each card that is named as lost and has none of its own."""
    said = words_of(tries[-1]) if tries else []
    named = dict.fromkeys(name for line in said for name in diagnose.lost_gpu(line))
    taken = {gpu.index for gpu in gpus}
    rows: list[Gpu] = []
    for _bus_id, told in islice(named, MAX_GPUS):
        gap = next(i for i in range(len(taken) + 1) if i not in taken)
        index = gap if told is None or told in taken else told
        taken.add(index)
        rows.append(Gpu(host=host, index=index, state="faulty"))
    return rows


def words_of(section: Section) -> list[str]:
    """Return the lines that are no rows: what nvidia-smi has to say."""
    return [line for line in section.lines if not _ROW.match(line)]
