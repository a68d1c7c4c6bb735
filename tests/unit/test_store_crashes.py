"""Whatever ends a run, and whenever: there is always one whole snapshot to read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from servers.programs import need

HERE = Path(__file__).parent

# Every row of a snapshot has its number in it, so that a mixture of two would show.
NUMBER = """
def number_of(taken):
    rows = (*taken.hosts, *taken.gpus, *taken.processes)
    (name,) = {row.host for row in rows}
    assert len(rows) == 3, rows
    return int(name)
"""

# It forks a child that saves a snapshot and is killed before its first operation on files; another
# before its second; and so on, until one gets through.
EVERY_STEP = f"""
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from snapshots import at
from webmon.store import snapshot
{NUMBER}
folder, steps = Path(sys.argv[1]), []
for number in range(4):
    snapshot.save(folder, at(number, str(number)), 4)
while True:
    number += 1
    child = os.fork()
    if child == 0:
        left = len(steps)
        def hook(event, _):
            global left
            if event == "open" or event.startswith(("os.", "shutil.")):
                left -= 1
                if left == -1:
                    os.write(1, (event + " ").encode())
                    os.kill(os.getpid(), signal.SIGKILL)
        sys.addaudithook(hook)
        snapshot.save(folder, at(number, str(number)), 2)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    read = number_of(snapshot.load(folder))
    if code == 0:
        assert read == number, (read, number)
        break
    assert code == -signal.SIGKILL, code
    assert read in (number - 1, number), (read, number, steps)
    if read == number - 1:
        snapshot.save(folder, at(number, str(number)), 4)
    steps.append(code)
print(len(steps))
"""

# It forks a child that saves one snapshot after the other, kills it, and reads; many times over.
KILLS = f"""
import os, random, signal, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from snapshots import at
from webmon.store import snapshot
{NUMBER}
folder, keep = Path(sys.argv[1]), 3
snapshot.save(folder, at(0, "0"), keep)
started = time.monotonic()
snapshot.save(folder, at(0, "0"), keep)
seconds = min(0.05, time.monotonic() - started)
last = killed = 0
while killed < 50 or last < 10:
    child = os.fork()
    if child == 0:
        number = last
        while True:
            number += 1
            snapshot.save(folder, at(number / 60, str(number)), keep)
    time.sleep(random.uniform(0.2, 3) * seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    killed += 1
    read = number_of(snapshot.load(folder))
    assert read >= last, "a snapshot that was there is gone"
    last = read
snapshot.save(folder, at(1e6, "done"), keep)
assert len(os.listdir(folder / "snapshots")) == keep
hidden = [name for name in os.listdir(folder) + os.listdir(folder / "snapshots") if name.startswith(".")]
assert hidden == [], hidden
print(killed, last)
"""

# It saves a small snapshot, and then one for which there is no space.
FULL_DISK = """
import json, os, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from snapshots import GPU, at
from webmon.errors import StorageError
from webmon.store import snapshot
from webmon.store.files import write

folder = Path(sys.argv[1])
snapshot.save(folder, at(0), 3)
if sys.argv[3:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
said = []
huge = at(1)._replace(gpus=(GPU._replace(name="x" * 4000),) * 2000)
for fails in (lambda: snapshot.save(folder, huge, 3), lambda: write(folder / "page", b"x" * 8_000_000)):
    try:
        fails()
    except (StorageError, OSError) as error:
        said.append([type(error).__name__, str(error)])
assert snapshot.load(folder) == at(0)
print(json.dumps([said, sorted(os.listdir(folder)), os.listdir(folder / "snapshots")]))
"""


def _run(script, folder, *arguments, before=()):
    done = subprocess.run(
        [*before, sys.executable, "-W", "error", "-c", script, folder, HERE, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _check_that_nothing_has_changed(output):
    said, top, snapshots = json.loads(output)
    assert [kind for kind, _ in said] == ["StorageError", "OSError"]
    assert "Free some space; what was there before is as it was" in said[0][1]
    assert top == ["latest", "snapshots"]
    assert snapshots == ["20260102T030405.678Z"]


def test_a_run_that_is_killed_at_any_moment_leaves_a_whole_snapshot(tmp_path):
    """kill -9, fifty times: `latest` is the old one or the new one, and the rest is cleared away."""
    killed, saved = map(int, _run(KILLS, tmp_path).split())
    assert killed >= 50
    assert saved >= 10  # some of them got far enough to save something


def test_a_run_that_is_killed_at_any_step_leaves_a_whole_snapshot(tmp_path):
    """kill -9 before each single operation on files, one after the other."""
    *steps, count = _run(EVERY_STEP, tmp_path).split()
    assert len(steps) == int(count)
    assert {"open", "os.mkdir", "os.rename", "os.symlink", "shutil.rmtree"} <= set(steps)


def test_a_full_disk_leaves_the_old_snapshot_whole(tmp_path):
    """A real one, of 200 KiB, that nobody but this test sees."""
    unshare = need("unshare", "util-linux")
    mount = ["-m", "sh", "-c", 'mount -t tmpfs -o size=200k none "$0" && exec "$@"', tmp_path]
    if subprocess.run([unshare, *mount, "true"], capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    _check_that_nothing_has_changed(_run(FULL_DISK, tmp_path, before=[unshare, *mount]))


def test_a_limit_on_the_size_of_files_leaves_the_old_snapshot_whole(tmp_path):
    """As `ulimit -f` sets it: another way for there to be no space."""
    _check_that_nothing_has_changed(_run(FULL_DISK, tmp_path, "limited"))
