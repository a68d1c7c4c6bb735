"""kill -9, at any moment: what readers find is one whole snapshot."""

from __future__ import annotations

import random
import signal
import time

import pytest
from servers.command import start, webmon
from servers.settings import write_config
from servers.sshd import Pretended
from servers.states import healthy

from webmon.store import snapshot

TIMES = 12


@pytest.mark.timeout(90)
def test_an_update_that_is_killed_leaves_a_readable_data_folder(start_sshd, tmp_path):
    """A dozen kills at random moments; after each, data and site are whole, and the next update works."""
    sshd = start_sshd([Pretended(healthy(4, number)) for number in range(4)])
    config = write_config(tmp_path, sshd.common(), data={"keep_snapshots": 3})
    data, site = tmp_path / "data", tmp_path / "site"
    started = time.monotonic()
    assert webmon("update", "-c", config).returncode == 0
    usual = time.monotonic() - started
    chance = random.Random(1)
    for _ in range(TIMES):
        with start("update", "-c", config) as running:
            # Most of its time goes into starting Python: the last half is where it writes.
            time.sleep(usual * chance.uniform(0.4, 1.05))
            running.send_signal(signal.SIGKILL)
            running.wait(5)
        assert len(snapshot.load(data).gpus) == 16
        assert {host.status for host in snapshot.load(data).hosts} == {"up"}
        assert (site / "index.html").read_text().rstrip().endswith("</html>")
    done = webmon("update", "-c", config)
    assert (done.returncode, done.stderr) == (0, "")
    entries = [entry.name for entry in (data / "snapshots").iterdir()]
    assert 1 <= len(entries) <= 3  # how many of the killed runs had got that far is chance
    assert not [name for name in entries if name.startswith(".")]
    assert {entry.name for entry in data.iterdir()} == {"latest", "snapshots", "history", "rollups", ".lock"}
