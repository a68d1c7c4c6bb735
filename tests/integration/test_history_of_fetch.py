"""What fetch appends to the history, and `webmon serve` gives back; a history that can't be written."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import urllib.request
from pathlib import Path
from urllib.error import HTTPError

import pytest
from servers.command import host_rows, start, webmon
from servers.settings import write_config


@pytest.fixture
def config(sshd, tmp_path):
    """A configuration with one healthy host, and one that nobody listens for."""
    own = {"127.0.0.2": {"port": 1, "timeout": 2}}
    return write_config(tmp_path, sshd.common(hosts=[*sshd.names, "127.0.0.2"]), own)


@pytest.fixture
def served():
    """Start `webmon serve …`; return the process and the address that it says."""
    running = []

    def serve(*arguments, **options):
        running.append(start("serve", "--port", "0", *arguments, **options))
        line = running[-1].stderr.readline()
        found = re.search(r"http://\S+/", line)
        assert found, line
        return running[-1], found[0]

    yield serve
    for process in running:
        process.kill()
        process.communicate()


def get(url):
    """Return what is there, as JSON."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.loads(answer.read())


def test_two_polls_are_two_samples(config, sshd, served, tmp_path):
    """Both are in the history, and `webmon serve` has them: one whole snapshot is as good as another."""
    assert webmon("update", "-c", config).returncode == 0
    time.sleep(1.1 - time.time() % 1)  # polls of one second would be one sample
    assert webmon("update", "-c", config).returncode == 0
    (file,) = (tmp_path / "data" / "history").iterdir()
    rows = file.read_text().splitlines()
    assert [row.split(",")[1] for row in rows] == ["host", sshd.names[0], sshd.names[0]]
    _, url = served("-c", config)
    (host,) = get(f"{url}states/{sshd.names[0]}/?fetch_num=2").values()
    first, second = host["data"]
    assert first["timestamp"] < second["timestamp"]
    assert first["gpu_data"]["gpu:0"]["processes"] == second["gpu_data"]["gpu:0"]["processes"] == []
    assert get(f"{url}states/127.0.0.2/?fetch_num=2")["127.0.0.2"]["data"][1]["gpu_data"] == {}


@pytest.mark.parametrize("command", ["fetch", "update"])
def test_a_history_that_can_not_be_written_is_told_once(config, sshd, tmp_path, command):
    """In one line, for cron to mail; the snapshot is saved, and the site is rendered."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "history").write_text("in the way")
    done = webmon(command, "-c", config)
    assert (done.returncode, done.stdout) == (0, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"webmon: this poll is missing in the history: {tmp_path}/data/history can't be")
    assert host_rows(tmp_path / "data")[sshd.names[0]]["status"] == "up"
    assert (tmp_path / "site" / "index.html").exists() is (command == "update")
    assert (tmp_path / "data" / "history").read_text() == "in the way"


def test_a_history_that_can_not_be_read_is_an_error_of_the_server(config, sshd, served, tmp_path):
    """500, with JSON, since how many samples there are is not known; all else is served."""
    assert webmon("update", "-c", config).returncode == 0
    _, url = served("-c", config)
    (tmp_path / "data" / "history").rename(tmp_path / "data" / "aside")
    (tmp_path / "data" / "history").write_text("in the way")
    with pytest.raises(HTTPError) as refused:
        get(f"{url}states/?fetch_num=100")
    with refused.value as answer:
        assert (answer.code, json.loads(answer.read())["info"]) == (500, "the data folder can't be read")
    assert len(get(f"{url}states/?fetch_num=1")) == 2  # the snapshot is enough for that
    assert len(get(f"{url}states/")) == 2


def test_the_site_alone_has_the_newest_sample(config, sshd, served, tmp_path):
    """`--site` needs no configuration; without data there is no past; a folder that is not there is named."""
    assert webmon("update", "-c", config).returncode == 0
    _, url = served("--site", tmp_path / "site", cwd=tmp_path / "site")
    (host,) = get(f"{url}states/{sshd.names[0]}/?fetch_num=5").values()
    assert len(host["data"]) == 1
    for wrong in (["--site", "nothing"], ["--site", tmp_path / "site", "--data", "nothing"]):
        done = webmon("serve", "--port", "0", *wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith("webmon: nothing is no folder. ")
    _, url = served("--site", tmp_path / "site", "--data", tmp_path / "data", cwd=tmp_path / "site")
    assert len(get(f"{url}states/?fetch_num=5")) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_the_server_at_once(served, tmp_path, number):
    """By the signal, with a client at hand, and without a traceback."""
    (tmp_path / "index.html").write_text("hello")
    process, url = served("--site", tmp_path)
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.read() == b"hello"
        started = time.monotonic()
        process.send_signal(number)
        assert process.wait(5) == -number
    assert time.monotonic() - started < 1
    assert process.stderr.read() == ""


def test_it_listens_where_it_is_told_and_nowhere_else(served, tmp_path):
    """On 127.0.0.1, or another address of this machine, IPv6 too."""
    (tmp_path / "index.html").write_text("hello")
    for bind, shown in (([], "http://127.0.0.1:"), (["--bind", "::1"], "http://[::1]:")):
        process, url = served("--site", tmp_path, *bind)
        assert url.startswith(shown)
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert answer.read() == b"hello"
        port = f":{int(url.rpartition(':')[2].strip('/')):04X}"
        net = Path(f"/proc/{process.pid}/net")
        rows = [row.split() for name in ("tcp", "tcp6") for row in (net / name).read_text().splitlines()]
        listening = [row[1].removesuffix(port) for row in rows if row[3] == "0A" and row[1].endswith(port)]
        assert listening == ["00000000000000000000000001000000" if bind else "0100007F"]


@pytest.mark.parametrize("bind", ["203.0.113.1", "2001:db8::1", "a..b", "x" * 300])
def test_an_address_that_is_not_ours_is_refused(tmp_path, bind):
    """In one line."""
    done = webmon("serve", "--site", tmp_path, "--port", "0", "--bind", bind)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"webmon: can't listen on \S+ port 0: .+\n", done.stderr)


def test_curl_and_a_person_see_the_same(served, tmp_path):
    """The server says its address on stderr, and nothing on stdout."""
    process, _ = served("--site", tmp_path, stdout=subprocess.PIPE)
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=5) == ("", "")
