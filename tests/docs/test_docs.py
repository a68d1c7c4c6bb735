"""The documents are true: every command, key, column and reason is in them, and what they say works."""

from __future__ import annotations

import argparse
import gzip
import re
import shutil
import subprocess
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from servers.command import environment
from servers.programs import need
from servers.ssh_keys import make_key

from webmon import model
from webmon.cli.parser import build
from webmon.config import schema
from webmon.publish.serve import Server
from webmon.store import history
from webmon.store.history import Sample
from webmon.store.rollup import Rollups

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
CONFIGURATION = (ROOT / "docs" / "configuration.md").read_text()
DATA_FORMAT = (ROOT / "docs" / "data-format.md").read_text()
COMMANDS = (ROOT / "docs" / "commands.md").read_text()
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "benchmarks").glob("*.md")]

# What the README says to type, and cannot be typed here: a test by hand, or another test, stands for it.
ELSEWHERE = {
    "make demo": "tests/demo, and .ci/run on a fresh clone",
    "make test": "this is it",
    "python3 -m venv .venv && .venv/bin/pip install .": "tests/docs/test_wheel.py installs the same wheel",
}

# Those of the README that look at GPUs: tests/cli/test_examples.py types them where there are some.
NEEDS_GPUS = ("webmon", "webmon list", "webmon select", "webmon wait")


def commands():
    """Return the parsers of all commands by name."""
    (parsers,) = (action.choices for action in build()._actions if action.choices)
    return parsers


def about(command):
    """Return what docs/commands.md says of a command: its section, or its row in the table of the others."""
    if f"## `webmon {command}`" not in COMMANDS:
        return "\n".join(re.findall(rf"^\| `webmon {command}[ `].*", COMMANDS, re.MULTILINE))
    own = COMMANDS.split(f"## `webmon {command}`", 1)[1].split("\n## ")[0]
    return own + about("select") if command == "wait" else own


def shell_lines(text):
    """Return the lines of all sh blocks, without their comments."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    lines = [re.sub(r"\s+#.*", "", line).strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line]


def test_every_command_is_in_the_readme():
    """In the table of commands."""
    assert len(commands()) >= 7
    for command in commands():
        assert f"| `webmon {command}` |" in README, command


@pytest.mark.parametrize("command", sorted(commands()))
def test_every_option_of_every_command_is_documented(command):
    """In docs/commands.md, in the command's own section or row; what all of them take, at the top."""
    known = COMMANDS.split("\n## ")[0] + about(command)
    for action in commands()[command]._actions:
        words = action.option_strings or (action.choices if action.help != argparse.SUPPRESS else None) or ()
        for word in words:
            assert re.search(rf"`(webmon {command} )?{word}[` ]", known), word


def test_every_documented_option_exists():
    """Nothing is promised that isn't there."""
    flags = {flag for parser in commands().values() for a in parser._actions for flag in a.option_strings}
    told = set(re.findall(r"`(--?[a-z][a-z_-]*)[` ]", COMMANDS))
    assert told <= flags | {"--version", "-t"}


@pytest.mark.parametrize("order", ["index", "free-memory", "power", "name", "random", "state"])
def test_every_order_is_documented(order):
    """What --sort takes."""
    assert f"`{order}`" in about("list")


def test_every_variable_is_documented():
    """Those that the code asks for, but the ones that every program heeds."""
    code = "\n".join(path.read_text() for path in (ROOT / "webmon").rglob("*.py") if "demo" not in path.parts)
    asked = set(re.findall(r'environ(?:\.get\(|\[)"([A-Z_]+)"', code)) | {"WEBMON_SITE"}
    assert len(asked) >= 6
    for name in asked - {
        "HOME",
        "PATH",
        "USER",
        "TERM",
        "XDG_CONFIG_HOME",
        "SSH_AUTH_SOCK",
        "CUDA_VISIBLE_DEVICES",
    }:
        assert f"| `{name}` |" in COMMANDS, name


@pytest.mark.parametrize("section", [*schema.SECTIONS, 'host."NAME"'])
def test_every_section_and_key_is_documented(section):
    """In docs/configuration.md, under its section; and every documented key exists."""
    keys = schema.HOST_KEYS if section.startswith("host") else schema.SECTIONS[section]
    own = CONFIGURATION.split(f"## `[{section}]`", 1)[1].split("\n## ")[0]
    for key in keys:
        assert f"`{key}`" in own, key
    assert set(re.findall(r"^\| `(\w+)` \|", own, re.MULTILINE)) <= set(keys)


@pytest.mark.parametrize("section", schema.SECTIONS)
def test_the_documented_defaults_are_the_real_ones(section):
    """Numbers, texts and lists, as the table has them."""
    rows = dict(
        re.findall(
            r"^\| `(\w+)` \| ([^|]*) \|",
            CONFIGURATION.split(f"## `[{section}]`", 1)[1].split("\n## ")[0],
            re.MULTILINE,
        )
    )
    for name, key in schema.SECTIONS[section].items():
        shown = rows[name].strip().strip("`").strip('"')
        if isinstance(key.default, tuple):
            assert shown == (", ".join(key.default) or "none"), name
        elif key.default is not None:
            assert (
                shown == f"{key.default:g}" if isinstance(key.default, float) else shown == str(key.default)
            ), name


def test_the_example_configuration_knows_every_common_key():
    """config.example.ini shows what can be set, apart from what is rarely needed."""
    example = (ROOT / "config.example.ini").read_text()
    for section in ("common", "free", "data", "site", "privacy"):
        for key in schema.SECTIONS[section]:
            assert re.search(rf"^(# )?{key} = ", example, re.MULTILINE), key


@pytest.mark.parametrize("kind", [model.Host, model.Gpu, model.Process])
def test_every_column_is_documented(kind):
    """In docs/data-format.md."""
    name = {model.Host: "hosts", model.Gpu: "gpus", model.Process: "processes"}[kind]
    own = DATA_FORMAT.split(f"## {name}.csv", 1)[1].split("\n## ")[0]
    named = set(re.findall(r"\w+", " ".join(re.findall(r"^\| ([^|`]*) \|", own, re.MULTILINE))))
    assert set(kind._fields) <= named


def test_every_reason_is_documented():
    """Those in the code are those in the table."""
    code = "\n".join(path.read_text() for path in (ROOT / "webmon" / "collect").rglob("*.py"))
    used = set(re.findall(r'(?:HostError|Problem)\(\s*"([a-z-]+)"', code))
    used |= set(re.findall(r'^\s+(?:r".*",\s+)?"([a-z]+-[a-z]+)",$', code, re.MULTILINE))
    table = set(re.findall(r"^\| `([a-z-]+)` \| (?:down|degraded)", DATA_FORMAT, re.MULTILINE))
    assert used == table


def test_every_template_is_documented():
    """In docs/pages.md, for whoever wants one of their own; and every documented one exists."""
    told = set(re.findall(r"^\| `([\w.]+\.j2)` \|", (ROOT / "docs" / "pages.md").read_text(), re.MULTILINE))
    assert told == {path.name for path in (ROOT / "templates").iterdir()}


def test_every_link_leads_somewhere():
    """Relative links in all documents."""
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_every_file_of_the_site_is_documented():
    """In docs/pages.md, by its path; `<host>` stands for each host's name."""
    golden = ROOT / "tests" / "site" / "golden"
    hosts = sorted(path.stem for path in (golden / "hosts").glob("*.html"))
    text = (ROOT / "docs" / "pages.md").read_text()
    for path in golden.rglob("*.*"):
        if path.is_file():
            name = re.sub("|".join(map(re.escape, hosts)), "<host>", str(path.relative_to(golden)))
            assert f"`{name}`" in text, name


def test_every_column_of_the_history_is_documented():
    """In its section, in the order that the file has them."""
    own = DATA_FORMAT.split("## history/", 1)[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([a-z0-9_, ]+) \|", own, re.MULTILINE)
    assert [name for cell in cells for name in cell.split(", ") if name != "column"] == list(Sample._fields)


def test_every_column_and_file_of_the_rollups_is_documented(tmp_path):
    """In their section: what a day's files are called, and what their columns mean."""
    own = DATA_FORMAT.split("## rollups/", 1)[1].split("\n## ")[0]
    cells = re.findall(r"^\| ([a-z0-9_, ;]+) \|", own, re.MULTILINE)
    told = {name for cell in cells for name in re.split("[,;] ", cell)}
    noon = datetime(2026, 11, 17, 12, tzinfo=UTC)
    history.add(tmp_path, [Sample(noon, "gpu01", 0, "GPU-1", "NVIDIA A100", "free", 0)])
    rollups = Rollups(tmp_path, noon + timedelta(days=1), save=True)
    rollups.make_all()
    files = sorted((tmp_path / "rollups").iterdir())
    assert len(files) >= 2
    for path in files:
        assert f"`{path.name}`" in own
        content = path.read_bytes()
        header = (gzip.decompress(content) if path.suffix == ".gz" else content).partition(b"\n")[0]
        assert set(header.decode().split(",")) <= told, path.name


def test_every_module_stands_in_the_architecture():
    """Someone new finds each module in docs/architecture.md."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    for path in (ROOT / "webmon").rglob("*.py"):
        name = path.stem if path.stem != "__init__" else path.parent.name
        if path.parent.name == "ssh":
            name = "ssh"
        assert name == "__main__" or re.search(rf"\b{name}\b", text), path


@pytest.fixture
def site_address(tmp_path):
    """Where the site folder of this test is served."""
    with Server(tmp_path / "site", "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.url
        server.shutdown()


def test_every_line_of_the_readme_can_be_typed(tmp_path, home, site_address):
    """In a folder with the example configuration; hosts, key and the site's address are real ones."""
    for name in ("config.example.ini", "Makefile"):
        shutil.copy(ROOT / name, tmp_path)
    key = make_key(tmp_path / "id_ed25519")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    webmon = Path(sys.executable).parent / "webmon"
    (tmp_path / ".venv" / "bin" / "webmon").symlink_to(webmon)
    path = f"{webmon.parent}:/usr/local/bin:/usr/bin:/bin"
    typed = 0
    for line in shell_lines(README):
        if line in ELSEWHERE or re.match(rf"({'|'.join(NEEDS_GPUS)})( --?[a-z]|$)", line):
            continue
        if line.startswith("curl "):
            need("curl", "curl")
            line = line.replace("curl ", "curl -sSf ").replace("http://mon.lab/gpus/", site_address)  # noqa: PLW2901
        done = subprocess.run(
            ["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
            env=environment(PATH=path),
        )  # fmt: skip
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        typed += 1
        if line.startswith("cp "):
            config = tmp_path / "config.ini"
            text = re.sub(r"(?m)^hosts = .*", 'hosts = ["self", "127.0.0.1:1"]', config.read_text())
            config.write_text(re.sub(r"(?m)^key_filename = .*", f'key_filename = "{key}"', text))
    assert typed >= 6
    assert (tmp_path / "site" / "index.html").exists()


def test_the_three_lines_of_the_readme_are_a_configuration(tmp_path):
    """The ini block works as it stands."""
    from webmon import config

    block = re.findall(r"^```ini\n(.*?)^```", README, re.DOTALL | re.MULTILINE)[0]
    (tmp_path / "config.ini").write_text(block)
    hosts = config.load(tmp_path / "config.ini").hosts
    assert (len(hosts), hosts[0].name, hosts[-1].name) == (17, "gpu01.lab", "old:2222")


def test_the_blocks_of_the_configuration_document_work(tmp_path):
    """Both dialects say the same."""
    from webmon import config

    common, bare, host = re.findall(r"^```(?:toml|ini)\n(.*?)^```", CONFIGURATION, re.DOTALL | re.MULTILINE)
    loaded = []
    for text in (common + host, bare + host):
        (tmp_path / "config.ini").write_text(text)
        loaded.append(config.load(tmp_path / "config.ini").hosts)
    assert loaded[0] == loaded[1]
    assert (loaded[0][6].label, loaded[0][6].timeout) == ("the DGX", 60)


def test_no_document_names_a_place_of_this_machine():
    """No path of a machine, no address of a registry."""
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    for name in files:
        if name.endswith((".md", ".py", ".ini", ".toml", ".j2", ".sh")) and name != "tests/docs/test_docs.py":
            text = (ROOT / name).read_text()
            assert str(ROOT) + "/" not in text, name
            assert "pypi.org" not in text, name
