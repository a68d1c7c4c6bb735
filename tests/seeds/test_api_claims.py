"""What is picked in Python is claimed: by this process, until it ends, gives it up, or picks others."""

from __future__ import annotations

import sys
import time

import pytest
from servers.states import gpu, healthy, process
from typed import python, shell


@pytest.fixture
def two(machine):
    """A machine with two free cards."""
    return machine(healthy(2))


# Another user's look at what is left, from inside the script that holds a claim.
LEFT = """
import subprocess
def left():
    return subprocess.run(["webmon", "available"], capture_output=True, text=True).stdout.strip()
"""


def test_a_claim_lasts_as_long_as_the_process(two):
    """Others don't get the GPU, nor see it as available; afterwards they do."""
    script = LEFT + "from webmon import gpuselect\nprint(gpuselect(devices=0), left())"
    assert python(two, script).stdout == "0 1\n"
    assert shell(two, "webmon available") == "0,1\n"


def test_a_claim_ends_with_a_process_that_is_killed(two):
    """There is nothing to tidy up."""
    script = "from webmon import gpuselect\nimport os\ngpuselect(2)\nos.kill(os.getpid(), 9)"
    python(two, script, fails=True)
    assert shell(two, "webmon available") == "0,1\n"


@pytest.mark.parametrize("function", ["gpuselect", "select"])
def test_no_claim_where_none_is_wanted(two, function):
    """`claim=False` is what gpuselect does: others may be given the same GPU."""
    script = LEFT + f"import webmon\nwebmon.{function}(2, claim=False)\nprint(left())"
    assert python(two, script).stdout == "0,1\n"


def test_a_claimed_gpu_is_not_available_in_python(two):
    """Not to available_gpus of another process, nor to a selector, which is not even asked."""
    other = (
        "from webmon import available_gpus, gpuselect, gpustatus\n"
        "print(available_gpus(), repr(gpuselect(2, selector=lambda gpu: True, silent=True)))\n"
        "print([gpu['processes'] for gpu in gpustatus(only_cvd=False)])"
    )
    script = f"""
import subprocess, sys, webmon
webmon.select(devices=[0])
print(subprocess.run([sys.executable, "-c", {other!r}], capture_output=True, text=True).stdout)
"""
    assert python(two, script).stdout.split("\n")[:2] == ["['1'] ''", "[0, 0]"]


def test_a_with_block_gives_up_its_claims(two):
    """At its end, also by an exception; until then the GPU is claimed."""
    script = (
        LEFT
        + """
import webmon
try:
    with webmon.select(devices=[1]) as selection:
        print(selection.ids, left())
        raise KeyError
except KeyError:
    print(left())
"""
    )
    assert python(two, script).stdout == "1 0\n0,1\n"


def test_release_gives_up_the_claims(two):
    """Once; a second time does nothing."""
    script = (
        LEFT
        + """
import webmon
selection = webmon.select(2)
print(left(), selection.ids)
selection.release()
selection.release()
print(left(), selection.ids)
"""
    )
    assert python(two, script).stdout == " 0,1\n0,1 0,1\n"


def test_a_selection_says_what_a_program_needs(two):
    """ids, uuids, the GPUs themselves, and an environment; nothing is set."""
    script = """
import os, webmon
selection = webmon.select(2)
print(selection.ids, selection.uuids)
print(selection.environment, {gpu.name for gpu in selection.gpus})
print("CUDA_VISIBLE_DEVICES" in os.environ, selection)
"""
    uuids = ",".join(gpu(index)["uuid"] for index in (0, 1))
    assert python(two, script).stdout.splitlines() == [
        f"0,1 {uuids}",
        "{'CUDA_DEVICE_ORDER': 'PCI_BUS_ID', 'CUDA_VISIBLE_DEVICES': '0,1'} {'NVIDIA RTX A6000'}",
        "False <Selection of GPU 0,1>",
    ]


def test_two_selections_of_a_process_never_have_the_same_gpu(two):
    """A script that starts a worker on each of its GPUs."""
    script = """
import webmon
from webmon.errors import NotEnough
first, second = webmon.select(), webmon.select()
print(sorted([first.ids, second.ids]))
try:
    webmon.select()
except NotEnough as error:
    print(error)
first.release()
print(webmon.select().ids == first.ids)
"""
    assert python(two, script).stdout.splitlines() == [
        "['0', '1']", "Requested 1 GPUs, but 0 matched filters", "True",
    ]  # fmt: skip


def test_selections_of_many_threads_are_distinct(machine):
    """Six threads, four GPUs: four are given one each, two are told that there is none."""
    script = """
from concurrent.futures import ThreadPoolExecutor
import webmon
from webmon.errors import NotEnough
def pick(_):
    try:
        return webmon.select().ids
    except NotEnough:
        return "none"
with ThreadPoolExecutor(6) as threads:
    print(*sorted(threads.map(pick, range(6))))
"""
    assert python(machine(healthy(4)), script).stdout == "0 1 2 3 none none\n"


def test_gpuselect_again_picks_anew(two):
    """What it had before may be among it; what is not is free again, and what is stays claimed."""
    script = (
        LEFT
        + """
from webmon import gpuselect
print(gpuselect(devices=0), left())
print(gpuselect(2), repr(left()))
print(gpuselect(devices=1), left())
print(gpuselect(devices=1), left())
print(gpuselect(claim=False, devices=1), left())
"""
    )
    assert python(two, script).stdout.splitlines() == ["0 1", "0,1 ''", "1 0", "1 0", "1 0,1"]


def test_gpuselect_in_vain_changes_nothing(two):
    """The GPU that CUDA_VISIBLE_DEVICES names is still this process's own."""
    script = (
        LEFT
        + """
import os
from webmon import gpuselect
gpuselect(devices=0)
print(repr(gpuselect(3, silent=True)), os.environ["CUDA_VISIBLE_DEVICES"], left())
try:
    gpuselect(devices=9)
except Exception as error:
    print(error, left())
"""
    )
    assert python(two, script).stdout.splitlines() == [
        "'' 0 1",
        "Invalid device ID 9. This machine has 0, 1 1",
    ]


def test_gpuselect_leaves_what_select_holds(two):
    """The two are different hands."""
    script = """
from webmon import gpuselect, select
held = select(devices=[0])
print(gpuselect(), repr(gpuselect(2, silent=True)))
"""
    assert python(two, script).stdout == "1 ''\n"


def test_set_cvd_false_sets_nothing(two):
    """The claim is there all the same."""
    script = (
        LEFT
        + """
import os
from webmon import gpuselect
print(gpuselect(devices=0, set_cvd=False), os.environ.get("CUDA_VISIBLE_DEVICES"), left())
"""
    )
    assert python(two, script).stdout == "0 None 1\n"


def test_a_script_started_by_select_may_pick_again(two, tmp_path):
    """`webmon select -- python script.py`: the claim is its own, so gpuselect() in it gives that GPU."""
    (tmp_path / "script.py").write_text(
        LEFT
        + """
import os
from webmon import gpuselect
before = os.environ["CUDA_VISIBLE_DEVICES"]
print(gpuselect(devices=int(before)) == before, left())
print(gpuselect(devices=int(before)) == before, left())
"""
    )
    done = shell(two, f"webmon select --devices 1 -- {sys.executable} script.py")
    assert done == "True 0\nTrue 0\n"


def test_a_script_started_with_two_gpus_gives_each_to_one_worker(machine, tmp_path):
    """They are claimed already, and yet select() gives none of them twice; what is released comes again."""
    (tmp_path / "script.py").write_text(
        """
import webmon
from webmon.errors import NotEnough
first, second = webmon.select(), webmon.select()
print(sorted([first.ids, second.ids]))
try:
    print(webmon.select().ids)
except NotEnough as error:
    print(error)
first.release()
print(webmon.select().ids == first.ids)
"""
    )
    here = machine(healthy(2))
    lines = shell(here, f"webmon select --count 2 -- {sys.executable} script.py").splitlines()
    assert lines == ["['0', '1']", "Requested 1 GPUs, but 0 matched filters", "True"]


def test_another_process_does_not_get_the_claims_of_its_parent(two):
    """A worker that calls gpuselect() itself gets another GPU than its parent has."""
    script = """
import multiprocessing, webmon
def pick(queue):
    queue.put(webmon.gpuselect(silent=True))
if __name__ == "__main__":
    mine = webmon.gpuselect()
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    worker = context.Process(target=pick, args=(queue,))
    worker.start()
    print({mine, queue.get()} == {"0", "1"})
    worker.join()
"""
    assert python(two, script).stdout == "True\n"


def test_waiting_callers_come_first(two):
    """Who waits for the GPUs has been there longer; gpuselect() says that there is none."""
    two.state["gpus"][1]["memory.used"] = "30000"
    two.save()
    waiting = two.start("wait", "--count", "2", "--", "true")
    try:
        deadline = time.monotonic() + 20
        while not list(two.claims.glob("webmon-wait-*")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        script = "from webmon import gpuselect\nprint(repr(gpuselect(silent=True)), gpuselect(claim=False))"
        assert python(two, script).stdout == "'' 0\n"
    finally:
        waiting.kill()
        waiting.communicate()


def test_a_gpu_that_this_process_computes_on_is_not_idle(two):
    """Even if it is claimed by the process itself: gpuselect() picks another, and gives this one up."""
    script = """
import json, os
from pathlib import Path
from webmon import gpuselect
print(gpuselect(devices=0))
path = Path(os.environ["WEBMON_STANDIN"])
state = json.loads(path.read_text())
mine = {"gpu_uuid": state["gpus"][0]["uuid"], "pid": str(os.getpid()), "process_name": "python"}
path.write_text(json.dumps(state | {"processes": [mine]}))
print(gpuselect())
"""
    assert python(two, script).stdout == "0\n1\n"


def test_a_busy_gpu_that_is_shared_is_claimed_too(machine):
    """`processes=1` with somebody on it: the next one who wants to share it is too late."""
    here = machine(healthy(1) | {"processes": [process(0, 3_900_000)]})
    script = """
import subprocess, sys
from webmon import gpuselect
print(repr(gpuselect(processes=1, silent=True)), flush=True)
if sys.argv[1:]:
    subprocess.run([sys.executable, "-c", sys.argv[1]])
"""
    assert python(here, script, script).stdout == "'0'\n''\n"
