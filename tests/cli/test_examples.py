"""The examples that --help shows can be typed as they stand, and do what is said beside them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from clusters_seen import card, cluster
from servers.command import webmon
from servers.programs import need
from servers.settings import write_config

from webmon.cli.parser import build
from webmon.model import Host
from webmon.store import document, snapshot

RECORDER = """
printf '%s\\n' "$0 $*" >> {record}
printf 'CUDA_VISIBLE_DEVICES=%s\\n' "$CUDA_VISIBLE_DEVICES" >> {record}"""


def examples(command):
    """Return the lines of the examples of a command, without what is said beside them."""
    (parsers,) = (action.choices for action in build()._actions if action.choices)
    lines = parsers[command].epilog.splitlines()[1:]
    return [re.split(r"  +", line.strip())[0] for line in lines]


@pytest.fixture
def machine(here, serve, tmp_path):
    """A machine with four cards, a configuration with the cluster's data, and what the examples run."""
    seen = cluster()
    more = {
        "hosts": (*seen.hosts, Host("gpu10", status="up", last_seen=seen.taken_at)),
        "gpus": (*seen.gpus, card("gpu10", 0, "NVIDIA H100 PCIe", 81559)),
    }
    snapshot.save(tmp_path / "data", seen._replace(**more), keep=3)
    write_config(tmp_path, {"hosts": ["gpu07"]})
    (tmp_path / "gpus").mkdir()
    (tmp_path / "gpus" / "snapshot.json").write_text(document.to_json(seen))
    here.site = serve(tmp_path)
    here.record = tmp_path / "record"
    for name in ("python", "docker", "ssh", "run.sh"):
        here.program(name, RECORDER.format(record=here.record))
    (tmp_path / "run.sh").symlink_to(here.bin / "run.sh")
    (tmp_path / ".config" / "fish" / "completions").mkdir(parents=True)
    return here


def typed(machine, line, shell="bash"):
    """Type a line; return what came of it and what its programs were told."""
    machine.record.write_text("")
    line = line.replace("http://mon/", machine.site)
    done = machine.run([shell, "-c", line], env={"HOME": str(machine.folder)})
    told = re.sub(r"\S*/(bin/|\./)?(?=(python|docker|ssh|run\.sh) )", "", machine.record.read_text())
    return done, told.splitlines()


@pytest.mark.parametrize(
    "line", [line for name in ("list", "available", "select", "wait") for line in examples(name)]
)
def test_each_example_works(machine, line):
    """It ends with 0, and says nothing but what it should."""
    if "jq" in line:
        need("jq", "jq")
    done, _ = typed(machine, line)
    assert done.returncode == 0, done.stderr
    assert set(done.stderr.splitlines()) <= {"webmon: gpu09 is down: no answer within 20 s"}


def test_the_lines_of_the_readme_work(machine):
    """Those of `In a terminal`, one after the other in one shell."""
    readme = (Path(__file__).parents[2] / "README.md").read_text()
    block = readme.split("## In a terminal", 1)[1].split("```sh\n", 1)[1].split("```")[0]
    done, told = typed(machine, "set -e\n" + block.replace("http://mon.lab/", machine.site))
    assert done.returncode == 0, done.stderr
    assert told[0] == told[2] == "python train.py"
    assert re.fullmatch(r"CUDA_VISIBLE_DEVICES=[0-3],[0-3]", told[1])
    assert re.match(r"ssh -t -p 2222 mixed exec sh -c .* -- env CUDA_DEVICE_ORDER=PCI_BUS_ID", told[4])


def test_all_free_cards_or_at_most_one(machine):
    """As the examples of `available` have it."""
    everything, one = examples("available")[:2]
    assert typed(machine, everything)[1] == ["python train.py", "CUDA_VISIBLE_DEVICES=0,1,2,3"]
    assert typed(machine, one)[1] == ["python train.py", "CUDA_VISIBLE_DEVICES=0"]


def test_the_command_sees_what_was_selected(machine):
    """One card, or two."""
    one, two = examples("select")[:2]
    told = typed(machine, one)[1]
    assert told[0] == "python train.py --lr 0.1"
    assert re.fullmatch(r"CUDA_VISIBLE_DEVICES=[0-3]", told[1])
    assert re.fullmatch(r"CUDA_VISIBLE_DEVICES=[0-3],[0-3]", typed(machine, two)[1][1])


def test_docker_gets_its_quotes(machine):
    """It wants `"device=0,1"` with the quotes in it, because of the comma."""
    (line,) = (line for line in examples("select") if line.startswith("docker"))
    assert re.fullmatch(r'docker run --gpus "device=[0-3],[0-3]" image', typed(machine, line)[1][0])


def test_the_states_are_those_of_the_json(machine):
    """`jq` reads what --json prints."""
    need("jq", "jq")
    assert typed(machine, examples("list")[-1])[0].stdout == '"free"\n' * 4


def test_what_runs_elsewhere_goes_through_ssh(machine):
    """`select --cluster -- nvidia-smi`."""
    told = typed(machine, examples("select")[-1])[1]
    assert re.match(
        r"ssh -t (-p 2222 )?\w+ exec sh -c .* -- env CUDA_DEVICE_ORDER=PCI_BUS_ID .* nvidia-smi$", told[0]
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_lines_for_the_shells_work(machine, shell):
    """In the file that is said beside them."""
    need(shell, shell)
    (line,) = (line for line in examples("completion") if f"completion {shell}" in line)
    before = "autoload -Uz compinit; compinit -u -D; " if shell == "zsh" else ""
    done, _ = typed(machine, before + line, shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    if shell == "fish":
        assert (machine.folder / ".config/fish/completions/webmon.fish").read_text().startswith("# webmon")


def test_help_is_as_wide_as_the_screen():
    """No line of any help is wider than 100 columns where nobody looks."""
    for command in ("list", "available", "select", "wait", "completion"):
        text = webmon(command, "--help").stdout
        assert max(map(len, text.splitlines())) <= 100
