"""What the next poll keeps of the last one."""

from __future__ import annotations

import getpass
import os

from servers.command import host_rows, table, webmon
from servers.settings import write_config
from servers.sshd import Pretended
from servers.states import gpu, healthy, process


def test_a_host_that_goes_down_keeps_its_cards_and_comes_back(start_sshd, tmp_path):
    """Its cards are unknown, never free, and `last_seen` says how old that is."""
    sshd = start_sshd([Pretended(healthy(2))])
    config = write_config(tmp_path, sshd.common(timeout=3))
    assert webmon("fetch", "-c", config).returncode == 0
    (up,) = table(tmp_path / "data", "hosts")
    before = table(tmp_path / "data", "gpus")
    port = sshd.port
    sshd.stop()
    for _ in range(2):
        assert webmon("fetch", "-c", config).returncode == 0
        (down,) = table(tmp_path / "data", "hosts")
        assert (down["status"], down["reason"], down["gpus"]) == ("down", "refused", "2")
        assert down["last_seen"] == up["last_seen"]
        assert down["driver"] == down["load1"] == ""
        for was, now in zip(before, table(tmp_path / "data", "gpus"), strict=True):
            kept = {name: was[name] for name in ("host", "index", "uuid", "name", "idle_since")}
            assert now == dict.fromkeys(was, "") | kept | {"state": "unknown"}
    sshd.start(port)
    assert webmon("fetch", "-c", config).returncode == 0
    assert [row["state"] for row in table(tmp_path / "data", "gpus")] == ["free", "free"]
    # Idle all the time, as far as anybody knows.
    assert [row["idle_since"] for row in table(tmp_path / "data", "gpus")] == [
        row["idle_since"] for row in before
    ]


def test_a_host_that_is_taken_out_is_gone(start_sshd, tmp_path):
    """Nothing is kept of hosts that the configuration does not name any more."""
    sshd = start_sshd([Pretended(), Pretended()])
    config = write_config(tmp_path, sshd.common())
    webmon("fetch", "-c", config)
    webmon("fetch", "-c", write_config(tmp_path, sshd.common(hosts=sshd.names[:1])))
    assert set(host_rows(tmp_path / "data")) == {sshd.names[0]}
    assert {row["host"] for row in table(tmp_path / "data", "gpus")} == {sshd.names[0]}


def test_users_may_be_masked(start_sshd, tmp_path):
    """A pseudonym stays the same from poll to poll, and the key to it is nobody else's to read."""
    state = {"gpus": [gpu(0, memory__used="9000")], "processes": [process(0, os.getpid())]}
    sshd = start_sshd([Pretended(state)])
    config = write_config(tmp_path, sshd.common(), privacy={"users": "mask", "command": "none"})
    seen = set()
    for _ in range(2):
        assert webmon("fetch", "-c", config).returncode == 0
        (row,) = table(tmp_path / "data", "processes")
        (card,) = table(tmp_path / "data", "gpus")
        assert card["users"] == row["user"]
        seen.add(row["user"])
    (pseudonym,) = seen
    assert pseudonym.startswith("user-")
    assert getpass.getuser() not in pseudonym
    assert (tmp_path / "data" / "mask.key").stat().st_mode & 0o777 == 0o600
