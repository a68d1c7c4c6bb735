"""webmon fetch beside `xargs -P64 ssh`, on the same loopback hosts, in turns.

    make bench                         300 hosts and 3 hosts, five rounds
    python benchmarks/fetch.py --hosts 500 --rounds 3

What is measured is the whole of `webmon fetch`: start, imports, SSH, parsing, CSV. ssh runs the
same probe script, its key exchange pinned to curve25519 (and, for three hosts, also as it comes).
CPU is that of the client's processes: user and system time, as the kernel counts it.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from servers.sshd import (
    Pretended,
    Sshd,
)

from webmon.collect import probe

TOKEN = "0123456789abcdef"

# A stand-in in plain shell: Python's start would be most of what is measured.
NVIDIA_SMI = """case "$1" in
--query-gpu=*)
  for i in 0 1 2 3 4 5 6 7; do
    echo "$i, GPU-0000000$i, 550.54.15, 40, 20, 30000, 81559, 60, 400.00, 700.00, [N/A], 1980, P0, Disabled, NVIDIA H100 80GB HBM3"
  done ;;
--query-compute-apps=*) ;;
esac"""  # noqa: E501


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hosts", type=int, action="append", help="how many (default: 300 and 3)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--command", choices=("probe", "query"), default="probe", help="what ssh runs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="webmon-bench-") as name:
        folder = Path(name)
        (folder / "sshd").mkdir()
        folder.chmod(0o755)
        pretended = [Pretended(nvidia_smi=NVIDIA_SMI) for _ in range(16)]
        with Sshd(folder / "sshd", pretended, settings=["MaxStartups 2000:30:4000"]) as sshd:
            for hosts in options.hosts or (300, 3):
                compare(folder, sshd, hosts, options.rounds, options.command)


def compare(folder: Path, sshd: Sshd, hosts: int, rounds: int, command: str) -> None:
    config = write_config(folder, sshd, hosts)
    ways = {
        "webmon fetch": lambda: webmon(config),
        "ssh, curve25519": lambda: ssh(sshd, hosts, command, "-oKexAlgorithms=curve25519-sha256"),
    }
    if hosts <= 16:
        ways["ssh, as it comes"] = lambda: ssh(sshd, hosts, command)
    taken: dict[str, list[tuple[float, float, float]]] = {way: [] for way in ways}
    for _ in range(rounds):
        for way, run in ways.items():
            taken[way].append(measured(run, sshd))
    print(f"\n{hosts} hosts, {rounds} rounds in turns: median (least to most)\n")
    print(f"{'':17} {'wall s':>22} {'client CPU ms/host':>22} {'server':>7} {'wall':>6} {'CPU':>6}")
    base = [statistics.median(numbers) for numbers in zip(*taken["webmon fetch"], strict=True)]
    for way, rows in taken.items():
        walls, cpus, servers = zip(*rows, strict=True)
        wall, cpu = statistics.median(walls), statistics.median(cpus)
        per_host = 1000 / hosts
        print(
            f"{way:17} {wall:6.3f} ({min(walls):6.3f} to {max(walls):6.3f}) "
            f"{cpu * per_host:6.2f} ({min(cpus) * per_host:5.2f} to {max(cpus) * per_host:5.2f}) "
            f"{statistics.median(servers) * per_host:7.1f} {base[0] / wall:6.2f} {base[1] / cpu:6.2f}"
        )
    print("\nThe last two columns are webmon's wall time and CPU, divided by this row's.")


def measured(run, sshd: Sshd) -> tuple[float, float, float]:
    """Return wall time, the client's CPU time, and that of the servers and of what they run."""
    server, start = server_cpu(sshd), time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run()
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    time.sleep(0.5)  # until the last sessions have been reaped
    client = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, client, server_cpu(sshd) - server


def server_cpu(sshd: Sshd) -> float:
    fields = Path(f"/proc/{sshd.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(int(field) for field in fields[11:15]) / os.sysconf("SC_CLK_TCK")


def webmon(config: Path) -> None:
    command = [sys.executable, "-m", "webmon", "fetch", "-c", str(config), "-v"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    summary = done.stderr.strip().splitlines()[-1]
    assert " 0 up" not in summary, done.stderr
    assert "down" not in summary, done.stderr


def ssh(sshd: Sshd, hosts: int, command: str, *options: str) -> None:
    remote = f"{probe.forced_command()} sh {TOKEN}"
    if command == "query":
        remote = f"nvidia-smi --query-gpu={','.join(probe.GPU_FIELDS)} --format=csv"
    known = f"-oUserKnownHostsFile={sshd.known_hosts}"
    login = ["-oBatchMode=yes", "-oIdentitiesOnly=yes", known, "-i", str(sshd.key), "-l", sshd.user]
    call = ["ssh", "-F", "none", *options, *login, "-p", str(sshd.port), "{}", remote]
    names = "\n".join(sshd.addresses[number % 16] for number in range(hosts))
    done = subprocess.run(
        ["xargs", "-P64", "-I{}", *call], input=names, text=True, check=True, capture_output=True
    )
    answers = done.stdout.count("GPU-00000007")
    assert answers == hosts, f"{answers} answers of {hosts}: {done.stderr}"


def write_config(folder: Path, sshd: Sshd, hosts: int) -> Path:
    text = (
        f'[common]\nuser = "{sshd.user}"\nhosts = "gpu[001-{hosts:03d}]"\nkey_filename = "{sshd.key}"\n'
        f'known_hosts = "{sshd.known_hosts}"\nport = {sshd.port}\ntimeout = 60\n'
    )
    for number in range(hosts):
        text += f'[host.gpu{number + 1:03d}]\nhostname = "{sshd.addresses[number % 16]}"\n'
    config = folder / f"config-{hosts}.ini"
    config.write_text(text)
    shutil.rmtree(folder / "data", ignore_errors=True)
    return config


if __name__ == "__main__":
    os.environ["HOME"] = "/nonexistent"
    main()
