"""The commands that look at this machine beside gpustat, nvgpu and gpuselect: CPU time, in turns.

    make bench-cli                        21 rounds
    python benchmarks/cli.py --rounds 5

Each peer is installed from PyPI into an environment of its own, in .cache/peers. They ask NVML, so they
get a stand-in for its library (nvml.c); webmon asks nvidia-smi, so it gets a stand-in in plain shell.
Both answer for the same eight idle cards, two of them with a process. What is counted is user and
system time of the whole call, as the kernel has it, with all that it starts. nvidia-smi's own time is
measured in the same run, and taken off webmon's. It exits with 1 if a bound is not kept.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from servers.states import gpu, process

from webmon.collect.probe import GPU_FIELDS, PROCESS_FIELDS

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / ".cache" / "peers"

NVIDIA_SMI = """#!/bin/sh
case $1 in --query-gpu=*) file=gpus ;; *) file=processes ;; esac
while IFS= read -r line; do printf '%s\\n' "$line"; done < "${0%/*}/$file"
"""

# CPU in ms, without nvidia-smi's own; and the share of gpustat's in the same run.
BOUND_MS = 80
BOUND_SHARE = 0.5


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=21)
    rounds = parser.parse_args().rounds
    for peer in ("gpustat", "nvgpu", "gpuselect"):
        install(peer)
    with tempfile.TemporaryDirectory(prefix="webmon-bench-") as name:
        folder = Path(name)
        environment = stand_ins(folder)
        smi = ["sh", "-c", "nvidia-smi --query-gpu=index; nvidia-smi --query-compute-apps=pid"]
        webmon = str(Path(sys.executable).parent / "webmon")
        calls = {
            "nvidia-smi, twice": smi,
            "webmon list": [webmon, "list"],
            "webmon available": [webmon, "available"],
            "webmon select": [webmon, "select"],
            "gpustat": [str(PEERS / "gpustat" / "bin" / "gpustat")],
            "nvgpu list": [str(PEERS / "nvgpu" / "bin" / "nvgpu"), "list"],
            "gpuselect": [str(PEERS / "gpuselect" / "bin" / "gpuselect")],
            "python -c pass": [sys.executable, "-c", "pass"],
        }
        taken: dict[str, list[float]] = {call: [] for call in calls}
        for _ in range(rounds):
            for call, command in calls.items():
                taken[call].append(cpu_ms(command, environment))
    return report(taken)


def install(peer: str) -> None:
    if not (PEERS / peer / "bin" / peer).exists():
        venv.create(PEERS / peer, with_pip=True)
        pip = [str(PEERS / peer / "bin" / "pip"), "install", "--quiet", peer]
        subprocess.run(pip, check=True)


def stand_ins(folder: Path) -> dict[str, str]:
    """Make an nvidia-smi and an NVML that answer alike, and return the environment to find them in."""
    pids = [os.getpid(), os.getppid()]
    gpus = [gpu(index) for index in range(8)]
    processes = [process(index, pid) for index, pid in enumerate(pids)]
    for name, fields, rows in (("gpus", GPU_FIELDS, gpus), ("processes", PROCESS_FIELDS, processes)):
        lines = [", ".join(row[field] for field in fields) for row in rows]
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    (folder / "nvidia-smi").write_text(NVIDIA_SMI)
    (folder / "nvidia-smi").chmod(0o755)
    library = str(folder / "libnvidia-ml.so.1")
    compile_it = ["cc", "-shared", "-fPIC", "-o", library, str(ROOT / "benchmarks" / "nvml.c")]
    subprocess.run(compile_it, check=True)
    claims = folder / "claims"
    claims.mkdir()
    return os.environ | {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "LD_LIBRARY_PATH": str(folder),
        "PIDS": ",".join(map(str, pids)),
        "WEBMON_CLAIMS": str(claims),
        "PYTHONWARNINGS": "ignore",
    }


def cpu_ms(command: list[str], environment: dict[str, str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{command} failed: {done.stdout}{done.stderr}")
    return 1000 * (after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)


def report(taken: dict[str, list[float]]) -> int:
    middle = {call: statistics.median(times) for call, times in taken.items()}
    of_smi, of_gpustat = middle["nvidia-smi, twice"], middle["gpustat"]
    load = ", ".join(f"{number:.1f}" for number in os.getloadavg())
    print(f"{len(taken['gpustat'])} rounds in turns, load {load}: CPU in ms, median (least to most)\n")
    print(f"{'':18} {'CPU ms':>24} {'own':>6} {'of gpustat':>11}")
    kept = True
    for call, times in taken.items():
        spread = f"{middle[call]:.0f} ({min(times):.0f} to {max(times):.0f})"
        is_ours = call.startswith("webmon")
        own = middle[call] - (of_smi if is_ours else 0)
        verdict = ""
        if is_ours:
            good = own <= BOUND_MS and own <= BOUND_SHARE * of_gpustat
            kept = kept and good
            verdict = "  within the bounds" if good else "  OVER A BOUND"
        print(f"{call:18} {spread:>24} {own:6.0f} {own / of_gpustat:11.2f}{verdict}")
    print(f"\nbounds: {BOUND_MS} ms, and {BOUND_SHARE} of gpustat's")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
