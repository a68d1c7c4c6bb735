"""One fetch from a cluster in which nearly everything is wrong at once."""

from __future__ import annotations

import getpass
import subprocess
import time
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

import pytest
from servers.command import host_rows, table, webmon
from servers.hostile import Hostile
from servers.settings import write_config
from servers.ssh_keys import make_key, public
from servers.sshd import Pretended, Sshd
from servers.states import MODEL, NO_DRIVER, gpu, process, uuid

TIMEOUT_S = 5
OVERHEAD_S = 3
PROBLEM = "Unable to determine the device handle for GPU 0000:41:00.0: Unknown Error"
STRANGE = '<script>alert(1)</script>, --x="a,b", ünï'
FORMULA = "=cmd|' /C calc'!A0"

pytestmark = pytest.mark.timeout(60)


def _hosts(sleepers):
    first, second = sleepers
    healthy = {
        "gpus": [
            gpu(0, 1, utilization__gpu="97", memory__used="40000", power__draw="287.46", pstate="P2"),
            gpu(1, 1),
            gpu(2, 1, utilization__gpu="3", memory__used="20000", temperature__gpu="[N/A]"),
        ],
        "processes": [
            process(0, first, "/usr/bin/sleep", "30000", 1),
            process(0, second, "/usr/bin/sleep", "9000", 1),
            process(2, first, "/usr/bin/sleep", "[N/A]", 1),
        ],
    }
    lost = {
        "gpus": [gpu(0, 8), gpu(1, 8), gpu(3, 8)],
        "processes": [],
        "complaint": {"text": PROBLEM, "exit": 6},
    }
    strange = {
        "gpus": [gpu(0, 9, utilization__gpu="50", memory__used="1000")],
        "processes": [process(0, 4194304, STRANGE, "900", 9), process(0, 4194303, FORMULA, "1", 9)],
    }
    return {
        "healthy": Pretended(healthy),
        "changed": Pretended(),
        "yes": Pretended(command="yes"),
        "yes-smi": Pretended(nvidia_smi="exec yes"),
        "no-driver": Pretended(NO_DRIVER),
        "lost": Pretended(lost),
        "strange": Pretended(strange),
    }


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """Ask the cluster once; all tests look at what came of it."""
    folder = tmp_path_factory.mktemp("cluster")
    with ExitStack() as stack:
        started_at = datetime.now(UTC)
        sleepers = [stack.enter_context(subprocess.Popen(["sleep", "300"])) for _ in range(2)]
        for sleeper in sleepers:
            stack.callback(sleeper.kill)
        hosts = _hosts([sleeper.pid for sleeper in sleepers])
        sshd = stack.enter_context(Sshd(tmp_path_factory.mktemp("sshd"), list(hosts.values())))
        servers = stack.enter_context(Hostile(refused="refuse", silent="silent"))
        sections = {
            name: {"hostname": address, "port": sshd.port}
            for name, address in zip(hosts, sshd.addresses, strict=True)
        }
        sections |= {name: {"hostname": "127.0.0.1", "port": port} for name, port in servers.port.items()}
        _forge_known_host(sshd, sections["changed"]["hostname"])
        with sshd.known_hosts.open("a") as file:
            file.write(f"[127.0.0.1]:{servers.port['silent']} {public(sshd.key)}\n")
        common = sshd.common(hosts=list(sections), timeout=TIMEOUT_S)
        write_config(folder, common, sections, privacy={"command": "full"})
        started = time.monotonic()
        done = webmon("fetch", "-c", folder / "config.ini")
        yield {
            "done": done,
            "seconds": time.monotonic() - started,
            "data": folder / "data",
            "started_at": started_at,
            "pids": [str(sleeper.pid) for sleeper in sleepers],
            "sshd": sshd,
        }


def _forge_known_host(sshd, address):
    """Let known_hosts have another key for a host than the one it shows."""
    other = public(make_key(sshd.folder / "other_host_key"))
    name = f"[{address}]:{sshd.port}"
    lines = [f"{name} {other}" if line.startswith(name) else line for line in sshd.known_lines()]
    sshd.known_hosts.write_text("\n".join(lines) + "\n")


def _cells(text):
    return ["" if cell == "-" else cell for cell in text.split()]


def test_it_ends_in_time_with_success_and_says_nothing(cluster):
    """A poll takes its timeout and a little more, whatever hosts do, and is a success."""
    done = cluster["done"]
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert cluster["seconds"] < TIMEOUT_S + OVERHEAD_S


def test_hosts_csv_says_what_is_so(cluster):
    """Each host has one row, in the order of `hosts`, with its own reason."""
    rows = table(cluster["data"], "hosts")
    said = [(row["host"], row["status"], row["reason"], row["driver"], row["gpus"]) for row in rows]
    assert said == [
        ("healthy", "up", "", "550.54.14", "3"),
        ("changed", "down", "host-key", "", ""),
        ("yes", "down", "too-much-output", "", ""),
        ("yes-smi", "down", "too-much-output", "", ""),
        ("no-driver", "degraded", "no-driver", "", "0"),
        ("lost", "degraded", "lost-gpu", "550.54.14", "4"),
        ("strange", "up", "", "550.54.14", "1"),
        ("refused", "down", "refused", "", ""),
        ("silent", "down", "timeout", "", ""),
    ]
    for row in rows:
        answered = row["status"] != "down"
        assert row["checked_at"]
        assert row["last_seen"] == (row["checked_at"] if answered else "")
        assert 0 <= int(row["duration_ms"]) <= 1000 * (TIMEOUT_S + 1)
        for column in ("load1", "cpus", "ram_used_mib", "ram_total_mib"):
            assert bool(row[column]) == answered, column
        assert bool(row["error"]) == bool(row["reason"])


def test_each_error_names_the_remedy(cluster):
    """Whoever reads `error` knows what to do next."""
    rows = host_rows(cluster["data"])
    remedies = {
        "changed": f"ssh-keygen -R '[{cluster['sshd'].addresses[1]}]:{cluster['sshd'].port}'",
        "yes": "Log in by hand",
        "no-driver": "modprobe nvidia",
        "lost": "Reboot the host",
        "refused": "Is sshd running there",
        "silent": "raise `timeout`",
    }
    for host, remedy in remedies.items():
        assert remedy in rows[host]["error"]
    assert "has changed" in rows["changed"]["error"]
    assert PROBLEM in rows["lost"]["error"]


def test_gpus_csv_says_what_is_so(cluster):
    """Each card has one row with its readings; an empty cell is a reading that is not known."""
    rows = table(cluster["data"], "gpus")
    me = getpass.getuser()
    idle = _cells("0 0 4 49140 31 21.53 300 30 210 P8 -")
    assert [[*row.values()][:16] for row in rows] == [
        ["healthy", "0", uuid(0, 1), MODEL, "busy", *_cells("97 0 40000 49140 31 287.46 300 30 210 P2 -")],
        ["healthy", "1", uuid(1, 1), MODEL, "free", *idle],
        ["healthy", "2", uuid(2, 1), MODEL, "busy", *_cells("3 0 20000 49140 - 21.53 300 30 210 P8 -")],
        ["lost", "0", uuid(0, 8), MODEL, "free", *idle],
        ["lost", "1", uuid(1, 8), MODEL, "free", *idle],
        ["lost", "2", "", "", "faulty", *_cells("- - - - - - - - - - -")],
        ["lost", "3", uuid(3, 8), MODEL, "free", *idle],
        ["strange", "0", uuid(0, 9), MODEL, "busy", *_cells("50 0 1000 49140 31 21.53 300 30 210 P8 -")],
    ]
    assert [row["users"] for row in rows] == [me, "", me, "", "", "", "", ""]
    assert [bool(row["idle_since"]) for row in rows] == [False, True, True, True, True, False, True, False]


def test_processes_csv_says_what_is_so(cluster):
    """Owner, command and start come from the host's own ps; what has gone has none."""
    rows = table(cluster["data"], "processes")
    me, (first, second) = getpass.getuser(), cluster["pids"]
    told = [
        [row[name] for name in ("gpu_index", "gpu_uuid", "pid", "user", "name", "command", "memory_mib")]
        for row in rows
    ]
    assert told == [
        ["0", uuid(0, 1), first, me, "/usr/bin/sleep", "sleep 300", "30000"],
        ["0", uuid(0, 1), second, me, "/usr/bin/sleep", "sleep 300", "9000"],
        ["2", uuid(2, 1), first, me, "/usr/bin/sleep", "sleep 300", ""],
        ["0", uuid(0, 9), "4194304", "", STRANGE, "", "900"],
        ["0", uuid(0, 9), "4194303", "", FORMULA, "", "1"],
    ]
    assert [row["host"] for row in rows] == ["healthy"] * 3 + ["strange"] * 2
    for row in rows[:3]:
        started = datetime.strptime(row["started_at"], "%Y-%m-%dT%H:%M:%S%z")
        assert abs(started - cluster["started_at"]) < timedelta(seconds=5)
    assert not any(row["started_at"] for row in rows[3:])


def test_the_snapshot_is_whole_and_readable_by_others(cluster):
    """`latest` leads to the only snapshot; a web server's user may read it."""
    data = cluster["data"]
    assert [entry.name for entry in (data / "snapshots").iterdir()] == [(data / "latest").resolve().name]
    for name in ("hosts", "gpus", "processes"):
        assert (data / "latest" / f"{name}.csv").stat().st_mode & 0o777 == 0o644
