"""The two units: what systemd makes of them, and what they let webmon do."""

from __future__ import annotations

import ctypes
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from servers.command import WEBMON, table
from servers.settings import write_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers.sshd import Sshd

Unit = dict[str, dict[str, str]]

DOCS = Path(__file__).parents[2] / "docs" / "deployment.md"


def split(text: str) -> dict[str, str]:
    """Return the units by the paths that they are to be saved as."""
    _, *parts = re.split(r"^# (/etc/systemd/system/\S+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def parsed(unit: str) -> Unit:
    """Read a unit as strictly as it goes: sections, then `Key=value`, each once."""
    sections: Unit = {}
    for line in unit.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        if header := re.fullmatch(r"\[([A-Z][a-z]+)\]", line):
            section = sections.setdefault(header[1], {})
            continue
        found = re.fullmatch(r"([A-Z][A-Za-z]+)=(.*)", line)
        assert found, line
        assert found[1] not in section
        section[found[1]] = found[2]
    return sections


def words(value: str) -> list[str]:
    """Read a list of words, with quotes, specifiers and variables as systemd does."""
    assert not re.search(r"(?<!%)(%%)*%(?!%)", value)
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(value)]


@pytest.fixture
def units(printed: Callable[..., str]) -> Callable[..., tuple[Unit, Unit]]:
    """The service and the timer of a configuration."""

    def read(*arguments: str, **options: object) -> tuple[Unit, Unit]:
        service, timer = split(printed("systemd", *arguments, **options)).values()
        return parsed(service), parsed(timer)

    return read


def test_both_units_say_where_they_belong(printed: Callable[..., str]):
    """Each unit starts with a comment that has its file name; the end says how to switch it on."""
    text = printed("systemd")
    assert list(split(text)) == ["/etc/systemd/system/webmon.service", "/etc/systemd/system/webmon.timer"]
    assert text.startswith("# /etc/systemd/system/webmon.service\n")
    assert "systemctl enable --now webmon.timer" in text


def test_systemd_takes_them(printed: Callable[..., str], tmp_path: Path):
    """systemd has nothing to say about either unit, odd names of folders included."""
    folder = tmp_path / "the lab's 100% $HOME"
    verify = shutil.which("systemd-analyze")
    for path, unit in split(printed("systemd", folder=folder)).items():
        assert parsed(unit)
        (tmp_path / Path(path).name).write_text(unit)
    if verify:
        names = [tmp_path / "webmon.service", tmp_path / "webmon.timer"]
        result = subprocess.run([verify, "verify", *names], check=False, capture_output=True, text=True)
        assert "webmon" not in result.stderr
        assert result.returncode == 0


def test_the_documented_command_saves_both(printed: Callable[..., str], tmp_path: Path):
    """The awk line of docs/deployment.md makes the two files of the one text."""
    found = re.search(r"awk '(.+)'", DOCS.read_text())
    assert found
    text = printed("systemd").replace("# /etc/systemd/system/", f"# {tmp_path}/")
    program = found[1].replace(r"\/etc\/systemd\/system", str(tmp_path).replace("/", r"\/"))
    subprocess.run(["awk", program], input=text, text=True, check=True)
    for name in ("webmon.service", "webmon.timer"):
        assert parsed((tmp_path / name).read_text())


def test_every_five_minutes_and_nothing_to_catch_up(units: Callable[..., tuple[Unit, Unit]]):
    """The timer runs the service every five minutes, spread a little, and drops what was missed."""
    timer = units()[1]["Timer"]
    assert timer["OnCalendar"] == "*:0/5"
    assert timer["Persistent"] == "no"
    assert 0 < int(timer["RandomizedDelaySec"]) < 60


def test_the_command_runs_as_it_stands(units: Callable[..., tuple[Unit, Unit]], sshd: Sshd, tmp_path: Path):
    """What systemd starts polls and renders, whatever the folder is called."""
    folder = tmp_path / "the lab's 100% $HOME & more"
    service, _ = units(common=sshd.common(), folder=folder)
    command = words(service["Service"]["ExecStart"])
    result = subprocess.run(command, check=False, capture_output=True, text=True, cwd="/", timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert [row["status"] for row in table(folder / "data", "hosts")] == ["up"]


def test_it_writes_to_its_two_folders_only(units: Callable[..., tuple[Unit, Unit]], tmp_path: Path):
    """The file system is read-only, the data and the site folder aside."""
    service = units(data={"dir": "../a b/100%/data"}, site={"dir": "/srv/gpus"})[0]["Service"]
    assert service["ProtectSystem"] == "strict"
    assert words(service["ReadWritePaths"]) == [f"{tmp_path.parent}/a b/100%/data", "/srv/gpus"]


def test_new_host_keys_can_be_saved(units: Callable[..., tuple[Unit, Unit]]):
    """With accept-new, and only then, the folder of known_hosts can be written to."""
    common = {"known_hosts": "/var/lib/webmon/ssh/known_hosts"}
    strict = units(common=common)[0]["Service"]
    accepting = units(common=common | {"host_keys": "accept-new"})[0]["Service"]
    assert "/var/lib/webmon/ssh" not in words(strict["ReadWritePaths"])
    assert "/var/lib/webmon/ssh" in words(accepting["ReadWritePaths"])


def test_one_folder_is_named_once(units: Callable[..., tuple[Unit, Unit]]):
    """Many hosts with one known_hosts make one entry."""
    common = {"hosts": ["gpu[01-40]"], "host_keys": "accept-new", "known_hosts": "/k/known_hosts"}
    assert words(units(common=common)[0]["Service"]["ReadWritePaths"]).count("/k") == 1


def test_it_is_locked_in(units: Callable[..., tuple[Unit, Unit]]):
    """It runs as its own user, without any privilege, and sees no device and no home to write to."""
    service = units("--user", "gpu-monitor")[0]["Service"]
    assert service["Type"] == "oneshot"
    assert service["User"] == "gpu-monitor"
    assert service["CapabilityBoundingSet"] == ""
    assert service["RestrictAddressFamilies"] == "AF_UNIX AF_INET AF_INET6"
    assert service["SystemCallFilter"] == "@system-service"
    assert service["ProtectHome"] == "read-only"
    assert service["UMask"] == "0022"
    for name in ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "MemoryDenyWriteExecute"):
        assert service[name] == "yes"


def test_this_machine_can_be_asked_too(units: Callable[..., tuple[Unit, Unit]]):
    """With the host `self`, nvidia-smi runs here: devices and other users' processes stay visible."""
    service = units(common={"hosts": ["self", "gpu01"]})[0]["Service"]
    assert not {"PrivateDevices", "ProtectClock", "ProtectProc", "MemoryDenyWriteExecute"} & set(service)
    assert service["NoNewPrivileges"] == "yes"


@pytest.mark.parametrize(
    ("common", "least"),
    [
        ({"hosts": ["gpu01"]}, 300),
        ({"hosts": ["gpu[001-500]"], "timeout": 60, "jobs": 10}, 3060),
        ({"hosts": ["gpu01"], "timeout": 600}, 600),
    ],
)
def test_it_is_not_ended_too_early(units: Callable[..., tuple[Unit, Unit]], common: dict, least: int):
    """A round in which every host keeps silent until its timeout comes to its end."""
    assert least <= int(units(common=common)[0]["Service"]["TimeoutStartSec"]) <= 2 * least


@pytest.mark.parametrize("user", ["", "a b", "x\nExecStart=/bin/sh", "-x", "a:b", "ä"])
def test_what_is_no_user_is_refused(refused: Callable[..., str], user: str):
    """--user takes the name of an account and nothing that could be more."""
    assert "--user" in refused("systemd", f"--user={user}")


# <linux/prctl.h>; what systemd does has the same effect, by way of seccomp.
_SET_MDWE, _GET_MDWE = 65, 66


def test_no_memory_is_writable_and_executable(sshd: Sshd, tmp_path: Path):
    """A whole round works under what MemoryDenyWriteExecute forbids; the kernel watches."""
    if ctypes.CDLL(None).prctl(_GET_MDWE, 0, 0, 0, 0) < 0:
        pytest.skip("this kernel is older than 6.3")
    config = write_config(tmp_path, sshd.common())
    forbid = f"import ctypes, os, sys; assert ctypes.CDLL(None).prctl({_SET_MDWE}, 1, 0, 0, 0) == 0; "
    result = subprocess.run(
        [
            sys.executable,
            "-c",
            f"{forbid}os.execv(sys.argv[1], sys.argv[1:])",
            *WEBMON,
            "update",
            "-c",
            config,
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
    assert [row["status"] for row in table(tmp_path / "data", "hosts")] == ["up"]
