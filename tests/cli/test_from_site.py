"""`--from URL` and $WEBMON_SITE: the published snapshot, through a real nginx; no account and no key."""

from __future__ import annotations

import gzip
import os
import shutil

import pytest
from clusters_seen import cluster
from servers.command import webmon
from servers.nginx import Nginx
from servers.settings import write_config

from webmon.store import snapshot


@pytest.fixture
def published(tmp_path):
    """Publish the cluster as the commands do: `published("/gpus/")` returns nginx and the address."""
    started = []

    def start(path, extra=""):
        config = write_config(tmp_path, {"hosts": ["gpu07"]})
        snapshot.save(tmp_path / "data", cluster(), keep=3)
        done = webmon("render", "-c", config)
        assert done.returncode == 0, done.stderr
        block = webmon("deploy", "nginx", "-c", config, "--path", path).stdout
        nginx = Nginx(tmp_path / "nginx", block + extra)
        started.append(nginx)
        return f"http://127.0.0.1:{nginx.port}{path}"

    yield start
    for nginx in started:
        nginx.stop()


def test_the_list_is_that_of_the_data_folder(published, tmp_path):
    """At the top of a server and in a folder, whatever page the address names."""
    expected = webmon("list", "--data", tmp_path / "nowhere")
    assert expected.returncode == 2
    url = published("/gpus/")
    expected = webmon("list", "--data", tmp_path / "data")
    assert expected.returncode == 0
    for address in (
        url, url.rstrip("/"), f"{url}index.html", f"{url}snapshot.json", f"{url}#gpu07", f"{url}?q=free+a100",
        url.replace("http", "HTTP", 1),
    ):  # fmt: skip
        done = webmon("list", "--from", address, cwd=tmp_path / "nginx")
        assert (done.returncode, done.stdout, done.stderr) == (0, expected.stdout, expected.stderr), address


def test_at_the_top_of_a_server(published, tmp_path):
    """With and without a slash behind it."""
    url = published("/")
    expected = webmon("list", "--data", tmp_path / "data").stdout
    for address in (url, url.rstrip("/"), f"{url}index.html"):
        assert webmon("list", "--from", address).stdout == expected


def test_a_redirect_is_followed(published, tmp_path):
    """The page has moved; whoever has the old address gets there."""
    url = published("/gpus/", "location /old/ { rewrite ^/old/(.*)$ /gpus/$1 permanent; }")
    done = webmon("list", "--from", url.replace("/gpus/", "/old/"))
    assert done.returncode == 0
    assert done.stdout == webmon("list", "--data", tmp_path / "data").stdout


def test_it_travels_packed(published, tmp_path):
    """gzip, as the deployed block has it: a tenth of the bytes."""
    url = published("/gpus/", "access_log off;")
    port = int(url.split(":")[2].split("/")[0])
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/gpus/snapshot.json", headers={"Accept-Encoding": "gzip"})
    response = connection.getresponse()
    body = response.read()
    connection.close()
    assert response.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(body) == (tmp_path / "site" / "snapshot.json").read_bytes()
    assert len(body) * 5 < len(gzip.decompress(body))


def test_a_variable_names_the_site_for_all_of_them(published, tmp_path):
    """$WEBMON_SITE in everybody's profile, and --cluster is enough; without it this machine is meant."""
    env = {"WEBMON_SITE": published("/gpus/")}
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert webmon("list", "--cluster", env=env, cwd=elsewhere).stdout
    assert webmon("list", "gpu08", env=env, cwd=elsewhere).stdout.count("gpu08") == 2
    free = webmon("available", "--cluster", env=env, cwd=elsewhere)
    assert free.stdout.split() == ["gpu07:1", "gpu07:2", "gpu08:1", "mixed:2222:0"]
    assert webmon("select", "--cluster", "-n", "A6000", env=env, cwd=elsewhere).stdout == "mixed:2222:0\n"
    alone = webmon("list", env=env | {"PATH": "/usr/bin:/bin"}, cwd=elsewhere)
    assert alone.returncode == 1
    assert "nvidia-smi was not found" in alone.stderr


def test_which_one_is_asked(published, tmp_path):
    """--from or --data before $WEBMON_SITE, and that before the configuration's folder."""
    url = published("/gpus/")
    broken = "http://127.0.0.1:1/"
    other = tmp_path / "other"
    snapshot.save(other, cluster()._replace(gpus=cluster().gpus[:1]), keep=3)
    everything, one = 9, 1

    def gpus(*arguments, **env):
        done = webmon("list", "--csv", *arguments, env=env, cwd=tmp_path)
        return len(done.stdout.splitlines()) - 1 if done.returncode == 0 else None

    assert gpus("--from", url, WEBMON_SITE=broken) == everything
    assert gpus("--data", other, WEBMON_SITE=broken) == one
    assert gpus("--cluster", WEBMON_SITE=broken) is None
    assert gpus("--cluster", WEBMON_SITE="") == everything
    shutil.rmtree(tmp_path / "data")
    shutil.copytree(other, tmp_path / "data", symlinks=True)
    assert gpus("--cluster", WEBMON_SITE=url) == everything
    assert gpus("--cluster") == one


def test_a_host_that_is_down_is_told_of_there_too(published):
    """On standard error, with what it said."""
    done = webmon("list", "--from", published("/"))
    assert done.stderr == "webmon: gpu09 is down: no answer within 20 s\n"


def test_nothing_of_the_readers_is_needed(published, tmp_path):
    """Neither a configuration nor a folder that can be written, nor a home."""
    url = published("/gpus/")
    done = webmon("list", "--from", url, cwd="/", env={"HOME": "/nonexistent"})
    assert done.returncode == 0
    assert os.listdir(tmp_path / "data" / "snapshots")
