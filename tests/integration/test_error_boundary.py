"""Whatever is wrong with files, folders and pipes: one line with a remedy, and the right exit code."""

from __future__ import annotations

import os
import subprocess

import pytest
from servers.command import STRICT_WEBMON, environment, host_rows, webmon
from servers.programs import need
from servers.settings import write_config

from webmon.store import snapshot

MINIMAL = {"hosts": ["self"], "nvidia_smi": "/does/not/exist", "timeout": 5}


@pytest.fixture
def config(tmp_path):
    """A configuration that works: this machine, without a GPU."""
    return write_config(tmp_path, MINIMAL)


def _one_line(done, code):
    """Assert that a command ended with a code and one line on standard error, and return the line."""
    assert (done.returncode, done.stdout) == (code, "")
    assert "Traceback" not in done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("webmon: ")
    return line


def _restricted(*arguments):
    """Run webmon as somebody for whom permissions count; root's rights to all files are taken away."""
    prefix = []
    if os.geteuid() == 0:
        prefix = [need("setpriv", "util-linux"), "--bounding-set=-dac_override,-dac_read_search"]
    return subprocess.run(
        [*prefix, *STRICT_WEBMON, *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=environment(),
        timeout=30,
    )


@pytest.mark.parametrize("command", ["fetch", "update", "render", "config"])
def test_a_configuration_that_may_not_be_read(config, command):
    """Wrong permissions of the file end every command with exit 2."""
    config.chmod(0)
    line = _one_line(_restricted(command, "-c", config), 2)
    assert line == f"webmon: {config}: Permission denied. It has to be a file that this user may read"


def test_a_key_that_may_not_be_read(tmp_path, sshd):
    """The file is there, but not for this user."""
    key = tmp_path / "key"
    key.write_bytes(sshd.key.read_bytes())
    key.chmod(0)
    config = write_config(tmp_path, sshd.common(key_filename=str(key)))
    line = _one_line(_restricted("fetch", "-c", config), 2)
    assert f"the key {key} can't be read: Permission denied" in line


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"[common]\nhosts = ['self']\nkey_filname = 'x'\n",
            "config.ini:3: [common] has no key 'key_filname'",
        ),
        (b"[common]\nuser = 'me'\n", "config.ini:1: [common] has no hosts"),
        (b"[common]\nhosts = ['self']\n\xff\xfe\n", "config.ini:3: not UTF-8 text"),
        (b"", "has no hosts"),
    ],
)
def test_a_configuration_that_is_wrong(tmp_path, content, said):
    """The file, the line, and what to do about it."""
    path = tmp_path / "config.ini"
    path.write_bytes(content)
    assert said in _one_line(webmon("fetch", "-c", path), 2)


def test_no_configuration_at_all(tmp_path):
    """It says where it has looked."""
    assert "no configuration file; looked for config.ini" in _one_line(webmon("fetch", cwd=tmp_path), 2)


def test_a_folder_in_place_of_the_configuration(tmp_path):
    """A folder is no file."""
    assert "Is a directory" in _one_line(webmon("fetch", "-c", tmp_path), 2)


@pytest.mark.parametrize("data", ["file", "file/below", "/dev/null", "/proc/webmon"])
def test_a_data_folder_that_can_not_be_one(config, tmp_path, data):
    """A file stands where the data folder should be, or above it."""
    (tmp_path / "file").write_text("")
    line = _one_line(webmon("fetch", "-c", config, "--data", tmp_path / data), 2)
    assert "can't be written" in line
    assert "name another folder in the configuration" in line


def test_a_data_folder_that_may_not_be_written(config, tmp_path):
    """The folder is somebody else's."""
    (tmp_path / "data").mkdir(mode=0o555)
    line = _one_line(_restricted("fetch", "-c", config), 2)
    assert "can't be written: Permission denied. Make it writable for this user" in line


def test_snapshots_that_may_not_be_read(config, tmp_path):
    """What is there can't be read: render says so; fetch says so and goes on."""
    assert webmon("fetch", "-c", config).returncode == 0
    (tmp_path / "data" / "latest" / "hosts.csv").chmod(0)
    assert "can't be read: Permission denied" in _one_line(_restricted("render", "-c", config), 2)
    done = _restricted("fetch", "-c", config)
    assert done.returncode == 0
    assert "the last snapshot is not used" in done.stderr
    assert set(host_rows(tmp_path / "data")) == {"self"}


@pytest.mark.parametrize(
    ("name", "content"),
    [("hosts", b""), ("gpus", b"\xff\x00\n"), ("processes", b"host\nx\n"), ("hosts", None)],
)
def test_a_snapshot_that_is_broken(config, tmp_path, name, content):
    """render ends with the file's name; the next fetch replaces it."""
    assert webmon("fetch", "-c", config).returncode == 0
    path = tmp_path / "data" / "latest" / f"{name}.csv"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    line = _one_line(webmon("render", "-c", config), 2)
    assert f"latest/{name}.csv" in line or path.resolve().name in line
    assert "webmon fetch" in line
    done = webmon("fetch", "-c", config)
    assert (done.returncode, "the last snapshot is not used" in done.stderr) == (0, True)
    assert webmon("render", "-c", config).stderr == ""


def test_render_before_the_first_fetch(config):
    """It says what to do first."""
    assert "has no snapshot yet. Run `webmon fetch` first" in _one_line(webmon("render", "-c", config), 2)


def test_a_site_folder_that_is_a_file(config, tmp_path):
    """update saves what it has learnt before it fails to show it."""
    (tmp_path / "site").write_text("")
    assert "can't be written" in _one_line(webmon("update", "-c", config), 2)
    assert set(host_rows(tmp_path / "data")) == {"self"}


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 96 KiB; only root can make one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = [need("mount", "mount"), "-t", "tmpfs", "-o", "size=96k", "none", folder]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root can mount a small disk")
    yield folder
    subprocess.run([need("umount", "mount"), folder], check=True)


def _fill(folder, *, but_for):
    """Fill a disk up to so many pages."""
    with open(folder / "ballast", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
        file.truncate(file.tell() - but_for * 4096)


@pytest.mark.parametrize("pages", [0, 1, 2])
def test_a_full_disk(config, small_disk, pages):
    """Exit 1, the last snapshot is as it was, and nothing half-written stays; then all is well again."""
    data = small_disk / "data"
    assert webmon("fetch", "-c", config, "--data", data).returncode == 0
    before = (data / "latest").resolve()
    _fill(small_disk, but_for=pages)
    line = _one_line(webmon("fetch", "-c", config, "--data", data), 1)
    assert "No space left on device. Free some space" in line
    assert (data / "latest").resolve() == before
    assert len(snapshot.load(data).hosts) == 1
    assert [entry.name for entry in (data / "snapshots").iterdir()] == [before.name]
    (small_disk / "ballast").unlink()
    done = webmon("fetch", "-c", config, "--data", data)
    assert (done.returncode, done.stderr) == (0, "")
    assert (data / "latest").resolve() != before


def test_a_disk_that_is_full_before_the_first_poll(config, small_disk):
    """Not even the lock fits."""
    _fill(small_disk, but_for=0)
    assert "Free some space" in _one_line(webmon("fetch", "-c", config, "--data", small_disk / "data"), 1)


def _shell(script, config):
    """Run a line of shell in which `$webmon` is the command and `$config` the configuration."""
    return subprocess.run(
        ["/bin/sh", "-c", script],
        check=False,
        capture_output=True,
        text=True,
        env=environment(webmon=" ".join(STRICT_WEBMON), config=str(config)),
        timeout=30,
    )


@pytest.mark.parametrize(
    "command", ["config -c $config", "config --json -c $config", "config --example", "--help", "fetch --help"]
)
def test_a_reader_that_has_had_enough(config, command):
    """`webmon … | true` is no failure and prints nothing."""
    script = f"{{ $webmon {command}; echo $? >&2; }} | true"
    assert _shell(script, config).stderr == "0\n"


def test_errors_into_a_broken_pipe(config):
    """Nobody reads what is said: that is no failure of the poll."""
    script = "{ $webmon fetch -v -c $config 2>&1 >/dev/null; echo $? >&3; } 3>&2 | true"
    assert _shell(script, config).stderr == "0\n"


@pytest.mark.parametrize("command", ["config -c $config", "config --json -c $config", "config --example"])
def test_output_that_can_not_be_written(config, command):
    """`webmon … > file` on a full disk says so, and fails."""
    done = _shell(f"$webmon {command} > /dev/full", config)
    assert "the output can't be written: No space left on device" in _one_line(done, 1)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("command", ["config", "fetch -v"])
def test_standard_streams_that_are_closed(config, tmp_path, closed, command):
    """Some schedulers start their jobs without them; nothing is written where it does not belong."""
    done = _shell(f"$webmon {command} -c $config {closed}", config)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    if "fetch" in command:
        assert set(host_rows(tmp_path / "data")) == {"self"}


def test_mistakes_on_the_command_line_are_one_line_too():
    """argparse's own errors: exit 2, and where the help is."""
    for arguments in (["fech"], ["fetch", "--datta", "x"], ["fetch", "-q", "-v"]):
        done = webmon(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        assert line.startswith("webmon")
        assert line.endswith("--help`")
