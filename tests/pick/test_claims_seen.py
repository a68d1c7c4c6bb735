"""The probe reports claims, so the page shows a claimed GPU as claimed, and by whom."""

from __future__ import annotations

import html
import os
import re
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from desk import eventually
from offered import HOST, RULES, claim
from people import me
from servers import processes
from servers.command import STRICT_WEBMON, table
from servers.programs import need
from servers.settings import write_config
from servers.sshd import Pretended
from servers.states import gpu, process, uuid

from webmon.availability import Rules
from webmon.collect.assemble import Answer, assemble
from webmon.collect.privacy import Privacy
from webmon.model import Gpu, Reading


def _page_text(site, host):
    """Return what a host's page says, without its tags."""
    page = (site / "hosts" / f"{host}.html").read_text(encoding="utf-8")
    body = re.sub(r"(?s)<(script|style|template).*?</\1>", " ", page)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).split())


def test_a_poll_of_this_machine_sees_claims(machine):
    """In the data folder, on the page, and in the list that is made from it."""
    desk = machine(2)
    holder = desk.hold("-d", "1")
    eventually(lambda: Path(f"/proc/{holder.pid}/comm").read_text() == "cat\n")
    config = write_config(desk.folder, {"hosts": ["self"], "timeout": 10})
    done = desk.webmon("update", "-c", config)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    free, claimed = table(desk.folder / "data", "gpus")
    assert (free["state"], free["users"]) == ("free", "")
    assert (claimed["state"], claimed["users"]) == ("busy", me())
    (row,) = table(desk.folder / "data", "processes")
    assert (row["gpu_index"], row["gpu_uuid"], row["pid"]) == ("1", uuid(1), str(holder.pid))
    assert (row["user"], row["name"], row["command"], row["memory_mib"]) == (me(), "(claim)", "cat", "")
    assert row["started_at"]
    text = _page_text(desk.folder / "site", "self")
    assert "claimed, cat" in text
    assert me() in text
    (line,) = desk.webmon("list", "--data", desk.folder / "data", "--filter", "claimed").stdout.splitlines()[
        1:
    ]
    assert line.endswith("claimed, cat")
    holder.end()
    assert desk.webmon("update", "-c", config).returncode == 0
    assert [row["state"] for row in table(desk.folder / "data", "gpus")] == ["free", "free"]
    assert table(desk.folder / "data", "processes") == []
    assert "claimed" not in _page_text(desk.folder / "site", "self")


@pytest.fixture
def shared_card():
    """A card that no other test has: its claims are kept where all users of a real machine keep them.

    One file stays there, `webmon-picking`, which is empty and everybody's.
    """
    number = int.from_bytes(os.urandom(4), "big")
    yield number
    for folder in ("/run/lock", "/tmp"):
        Path(folder, f"webmon-claim-{uuid(0, number)}").unlink(missing_ok=True)


def test_a_poll_over_ssh_sees_claims(machine, start_sshd, tmp_path, shared_card):
    """Where the probe runs nothing is set: it looks into the folders that `webmon select` uses by itself."""
    state = {"gpus": [gpu(0, shared_card), gpu(1, shared_card)], "processes": []}
    desk = machine(state)
    holder = desk.hold("-d", "0", env={"WEBMON_CLAIMS": ""})
    sshd = start_sshd([Pretended(state)])
    config = write_config(tmp_path, sshd.common())
    done = desk.run([*STRICT_WEBMON, "update", "-c", str(config)], env={"WEBMON_CLAIMS": ""})
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    claimed, free = table(tmp_path / "data", "gpus")
    assert (claimed["state"], claimed["users"], free["state"]) == ("busy", me(), "free")
    (row,) = table(tmp_path / "data", "processes")
    assert (row["pid"], row["user"], row["name"]) == (str(holder.pid), me(), "(claim)")
    (page,) = (tmp_path / "site" / "hosts").glob("*.html")
    assert re.search(r"claimed, (cat|sh)\b", _page_text(tmp_path / "site", page.stem))


@pytest.mark.parametrize("keep", ["none", "full"])
def test_privacy_is_for_claims_too(machine, keep):
    """That a GPU is claimed is told in any case; what is run, as [privacy] has it."""
    desk = machine(1)
    script = "exec sleep $((300+300)); # --secret"
    holder = desk.start("select", "--", "sh", "-c", script)
    eventually(lambda: desk.available() == [])
    eventually(lambda: Path(f"/proc/{holder.pid}/comm").read_text() == "sleep\n")
    config = write_config(
        desk.folder, {"hosts": ["self"], "timeout": 10}, privacy={"command": keep, "users": "mask"}
    )
    assert desk.webmon("update", "-c", config).returncode == 0
    (row,) = table(desk.folder / "data", "processes")
    assert (row["name"], row["command"]) == ("(claim)", "sleep 600" if keep == "full" else "")
    assert re.fullmatch(r"user-[0-9a-f]{8}", row["user"])
    text = _page_text(desk.folder / "site", "self")
    assert ("claimed, sleep 600" if keep == "full" else "claimed") in text
    assert ("sleep" in text) is (keep == "full")


def _judged(minutes, past=None, rules=RULES):
    """Poll a claimed card so many minutes after the first time."""
    now = datetime(2026, 1, 2, 12, tzinfo=UTC) + timedelta(minutes=minutes)
    card = Gpu(HOST, 0, "GPU-0", "A6000", utilization_pct=0, memory_used_mib=0, memory_total_mib=48_000)
    reading = Reading((card,), (claim(user="carol"),))
    return assemble([Answer(HOST, reading, now, 5)], past, rules, Privacy(), now)


def test_a_claim_without_any_work_is_held_after_a_while():
    """As a process that does nothing is: busy for half an hour, then held; never free."""
    first = _judged(0)
    states = {minutes: _judged(minutes, first).gpus[0].state for minutes in (0, 1, 29, 30, 600)}
    assert states == {0: "busy", 1: "busy", 29: "busy", 30: "held", 600: "held"}
    assert _judged(30, first).gpus[0].users == ("carol",)
    assert _judged(5, first, Rules(held_after_min=5)).gpus[0].state == "held"


SHELLS = [["sh"], ["bash"], ["dash"], ["busybox", "sh"]]


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: shell[0])
@pytest.mark.parametrize("tools", ["of the machine", "of busybox"])
def test_every_shell_finds_claims(machine, shell, tools):
    """With the programs of a usual machine, and with those of a small one."""
    from webmon.collect import probe
    from webmon.collect.parse import parse

    desk = machine(2)
    holder = desk.hold("-d", "1")
    need(shell[0], shell[0])
    if tools == "of busybox":
        need("busybox", "busybox")
        for name in ("stat", "ps", "timeout", "tr", "getent"):
            desk.program(name, f'exec busybox {name} "$@"')
    token = "0123456789abcdef"
    done = subprocess.run(
        [*shell, "-s", token],
        input=probe.script().encode(),
        capture_output=True,
        check=True,
        env=desk.environment,
        timeout=60,
    )
    reading = parse(done.stdout, token, "self", datetime(2026, 1, 2, tzinfo=UTC))
    (found,) = reading.processes
    assert (found.gpu_index, found.pid, found.user, found.is_claim) == (1, holder.pid, me(), True)
    assert reading.remarks == ()


def test_a_process_and_the_claim_of_its_parent_are_one_user(machine):
    """`webmon select -- launcher` that starts the training: only the training is shown."""
    desk = machine(2)
    script = "sleep 600 & echo $!; wait"
    parent = desk.start("select", "-d", "0", "--", "sh", "-c", script)
    child = int(parent.stdout.readline())
    assert child in processes.descendants(parent.pid)
    desk.state["processes"] = [process(0, child)]
    desk.save()
    (row,) = [line for line in desk.webmon("list").stdout.splitlines() if "[~]" in line]
    assert str(child) in row.split()
    assert str(parent.pid) not in row
    assert "claimed" not in row
