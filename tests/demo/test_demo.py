"""`webmon demo`: the whole product on pretended hosts."""

from __future__ import annotations

import re
import signal
import stat
import subprocess
import time
import urllib.request

from servers.command import host_rows, start, table, webmon

from webmon.demo.cluster import CLUSTER, ROLES, state


def test_one_round_leaves_configuration_data_and_site(tmp_path):
    """`--once --dir DIR` ends with 0; what it shows is a cluster with everything in it."""
    done = webmon("demo", "--once", "--dir", tmp_path / "demo")
    assert done.returncode == 0, done.stderr
    assert re.search(r"8 hosts: \d up, \d degraded, 1 down; \d+ GPUs: \d+ free", done.stderr)
    hosts = host_rows(tmp_path / "demo" / "data")
    assert len(hosts) == len(CLUSTER)
    assert (hosts["gpu07"]["status"], hosts["gpu07"]["reason"]) == ("down", "refused")
    assert (hosts["gpu10"]["status"], hosts["gpu10"]["reason"]) == ("degraded", "no-driver")
    gpus = table(tmp_path / "demo" / "data", "gpus")
    assert {gpu["state"] for gpu in gpus} == {"free", "busy", "held", "faulty"}
    assert "Enabled" in {gpu["mig_mode"] for gpu in gpus}
    assert len({gpu["name"] for gpu in gpus}) == 5
    processes = table(tmp_path / "demo" / "data", "processes")
    assert len({process["user"] for process in processes}) >= 3
    assert all(process["started_at"] for process in processes)
    page = (tmp_path / "demo" / "site" / "index.html").read_text()
    assert all(f">{host.name}</a></h2>" in page for host in CLUSTER)
    assert stat.S_IMODE((tmp_path / "demo" / "ssh" / "id_ecdsa").stat().st_mode) == 0o600


def test_its_configuration_serves_the_other_commands(tmp_path):
    """The hosts have ended: render still works, and fetch says that all are down, and keeps their GPUs."""
    assert webmon("demo", "--once", "--dir", tmp_path).returncode == 0
    config = tmp_path / "config.ini"
    assert webmon("render", "-c", config).returncode == 0
    before = len(table(tmp_path / "data", "gpus"))
    assert webmon("fetch", "-c", config).returncode == 0
    gpus = table(tmp_path / "data", "gpus")
    assert len(gpus) == before
    assert {gpu["state"] for gpu in gpus} == {"unknown"}


def test_a_second_round_in_the_same_folder_works(tmp_path):
    """Keys, ports and known hosts are made anew."""
    for _ in range(2):
        done = webmon("demo", "--once", "--dir", tmp_path)
        assert done.returncode == 0, done.stderr
        assert host_rows(tmp_path / "data")["gpu01"]["status"] == "up"


def test_it_serves_the_site_until_it_is_interrupted(tmp_path):
    """The address that it prints works; rounds go on; Ctrl-C ends it at once, without a trace."""
    running = start("demo", "--dir", tmp_path, "--port", "0", "--every", "0.5")
    try:
        url = ""
        while not url:
            line = running.stderr.readline()
            assert line, "the demo has ended"
            url = (re.findall(r"http://127\.0\.0\.1:\d+/", line) or [""])[0]
        first = (tmp_path / "data" / "latest").readlink()
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert b"GPUs free" in answer.read()
        deadline = time.monotonic() + 20
        while (tmp_path / "data" / "latest").readlink() == first:
            assert time.monotonic() < deadline
            time.sleep(0.1)
    finally:
        running.send_signal(signal.SIGINT)
        try:
            _, said = running.communicate(timeout=15)
        except subprocess.TimeoutExpired:
            running.kill()
            raise
    assert running.returncode == 0
    assert "Traceback" not in said


def test_the_cluster_changes_from_minute_to_minute():
    """Jobs come and go; a card of every role is there at every minute."""
    busy = CLUSTER[0]
    states = [state(busy, minute) for minute in range(60)]
    assert len({str(s["processes"]) for s in states}) > 10
    assert {role for host in CLUSTER for role in host.roles} == set(ROLES)


def test_the_hosts_of_the_demo_are_no_special_case():
    """Nothing in fetch or render knows of the demo."""
    from pathlib import Path

    import webmon as package

    folder = Path(package.__file__).parent
    for path in [
        *folder.glob("collect/**/*.py"),
        *folder.glob("publish/**/*.py"),
        *folder.glob("store/*.py"),
    ]:
        assert "webmon.demo" not in path.read_text(), path


def test_a_configuration_of_somebody_is_left_alone(tmp_path):
    """`--dir .` in a folder that is in use."""
    (tmp_path / "config.ini").write_text("[common]\nhosts = mine\n")
    done = webmon("demo", "--once", "--dir", tmp_path)
    assert done.returncode == 2
    assert "is not of the demo. Name another folder: --dir" in done.stderr
    assert (tmp_path / "config.ini").read_text() == "[common]\nhosts = mine\n"
