"""A stand-in for nvidia-smi: answers `--query-gpu` and `--query-compute-apps` as real drivers do.

    WEBMON_STANDIN=state.json python -I -S nvidia_smi.py --query-gpu=index,uuid,name --format=csv

It is run as a program of its own, by a host's shell, so it uses the standard library only and
starts quickly. What it says comes from the JSON file that $WEBMON_STANDIN names:

    gpus              a list of rows: field → text without unit; a field that is missing is [N/A]
    processes         a list of rows, likewise
    refused_fields    fields that this driver lacks: the whole query is refused, exit 2
    failure           {"text": …, "exit": …}: what is printed in place of everything
    process_failure   the same, for --query-compute-apps only
    complaint         {"text": …, "exit": …}: printed after the rows
    hangs             true: never answers, and ignores SIGTERM as a driver that hangs does
"""

import json
import os
import signal
import sys
import time

UNITS = {
    "memory.used": "MiB",
    "memory.total": "MiB",
    "memory.free": "MiB",
    "used_gpu_memory": "MiB",
    "utilization.gpu": "%",
    "utilization.memory": "%",
    "fan.speed": "%",
    "power.draw": "W",
    "power.limit": "W",
    "clocks.current.sm": "MHz",
}
# Asked for one name, it heads the column with another.
HEADINGS = {"gpu_name": "name", "used_memory": "used_gpu_memory", "clocks.sm": "clocks.current.sm"}


def main(arguments: list[str]) -> int:
    """Answer one call."""
    with open(os.environ["WEBMON_STANDIN"], encoding="utf-8") as file:
        state = json.load(file)
    if state.get("hangs"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)
    options = dict(argument.lstrip("-").partition("=")[::2] for argument in arguments)
    if failure := state.get("failure"):
        return say(failure)
    if "query-gpu" in options:
        code = answer(options["query-gpu"], options, state, state.get("gpus", []))
        return say(state["complaint"]) if code == 0 and state.get("complaint") else code
    if "query-compute-apps" in options:
        if failure := state.get("process_failure"):
            return say(failure)
        return answer(options["query-compute-apps"], options, state, state.get("processes", []))
    return say({"text": "This stand-in knows --query-gpu and --query-compute-apps", "exit": 2})


def answer(query: str, options: dict[str, str], state: dict[str, object], rows: list[dict[str, str]]) -> int:
    """Print the rows as CSV: cells are separated by a comma and a space, and never quoted."""
    fields = query.split(",")
    refused = state.get("refused_fields") or []
    assert isinstance(refused, list)
    for field in fields:
        if field in refused:
            return say({"text": f'Field "{field}" is not a valid field to query.\n', "exit": 2})
    names = [HEADINGS.get(field, field) for field in fields]
    style = options.get("format", "csv").split(",")
    lines = []
    if "noheader" not in style:
        lines.append(", ".join(f"{name} [{UNITS[name]}]" if name in UNITS else name for name in names))
    columns = list(zip(fields, names, strict=True))
    lines += [", ".join(cell(row, field, name, style) for field, name in columns) for row in rows]
    sys.stdout.write("".join(line + "\n" for line in lines))
    return 0


def cell(row: dict[str, str], field: str, name: str, style: list[str]) -> str:
    """Return one cell, with its unit where units are wanted and there is a value."""
    value = str(row.get(field, row.get(name, "[N/A]")))
    has_unit = name in UNITS and "nounits" not in style and value[:1].isdigit()
    return f"{value} {UNITS[name]}" if has_unit else value


def say(failure: object) -> int:
    """Print a failure, to standard output as nvidia-smi does, and return its exit code."""
    assert isinstance(failure, dict)
    sys.stdout.write(str(failure["text"]).rstrip("\n") + "\n")
    return int(failure["exit"])


if __name__ == "__main__":
    sys.stdout.reconfigure(encoding="utf-8", errors="surrogateescape")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))
