"""A real Prometheus, told what docs/prometheus.md says, scrapes a real nginx: at / and at /gpus/."""

from __future__ import annotations

import re
import subprocess
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from servers.command import webmon
from servers.nginx import Nginx
from servers.programs import need
from servers.prometheus import Prometheus
from servers.settings import write_config

from webmon.config.settings import SiteSettings
from webmon.publish.render import render
from webmon.store import snapshot as store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from webmon.model import Snapshot

TESTS = Path(__file__).resolve().parents[1]
DOCUMENT = (TESTS.parent / "docs" / "prometheus.md").read_text()
*JOBS, RULES = re.findall(r"^```yaml\n(.*?)^```", DOCUMENT, re.DOTALL | re.MULTILINE)
SNAPSHOT = store.read(TESTS / "site" / "snapshot")

HOSTS = {host.host for host in SNAPSHOT.hosts}
DOWN = {host.host for host in SNAPSHOT.hosts if host.status == "down"}
# What Prometheus itself says of a scrape, and of alerts.
OWN = "up|scrape_.+|ALERTS.*"


class Scraped(NamedTuple):
    prometheus: Prometheus
    snapshot: Snapshot
    path: str


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Scraped]]:
    """The golden snapshot as of now, at two paths, each with a Prometheus that is told all three jobs."""
    folder = tmp_path_factory.mktemp("prometheus")
    need("prometheus", "prometheus")
    snapshot = SNAPSHOT._replace(taken_at=datetime.now(UTC).replace(microsecond=0))
    site = SiteSettings(folder / "site", "GPU monitor", 60, None)
    render(snapshot, site, site.dir, now=snapshot.taken_at, period=None)
    config = write_config(folder, {"hosts": ["gpu01"]}, site={"dir": str(site.dir)})
    blocks = [webmon("deploy", "nginx", "-c", config, "--path", path).stdout for path in ("/", "/gpus/")]
    with ExitStack() as stack:
        nginx = stack.enter_context(Nginx(folder / "nginx", "\n".join(blocks)))
        scraped: dict[str, Scraped] = {}
        for bare_path in ("", "/gpus"):
            own = folder / f"prometheus{bare_path.replace('/', '-')}"
            own.mkdir()
            (own / "rules.yml").write_text(RULES)
            prometheus = Prometheus(own, told(f"127.0.0.1:{nginx.port}", bare_path))
            scraped[bare_path] = Scraped(stack.enter_context(prometheus), snapshot, bare_path)
        for one in scraped.values():
            one.prometheus.wait(lambda it: len(it.query("up == 1")) == len(HOSTS) + 2)
        yield scraped


@pytest.fixture(params=["", "/gpus"])
def scraped(running: dict[str, Scraped], request: pytest.FixtureRequest) -> Scraped:
    """One of the two."""
    return running[request.param]


def told(address: str, bare_path: str) -> str:
    """Return the document's jobs as one configuration, with only address, path and interval changed."""
    first, *others = JOBS
    text = first + "".join(job.removeprefix("scrape_configs:\n") for job in others)
    for said, here in (("monitor.lab", address), ("/gpus", bare_path), (": 1m\n", ": 1s\n")):
        assert said in text
        text = text.replace(said, here)
    return f"global: {{evaluation_interval: 1s}}\nrule_files: [rules.yml]\n{text}"


def per_gpu(scraped: Scraped, metric: str, job: str) -> dict[tuple[str, str], float]:
    """Return a metric's values by host and uuid."""
    found = scraped.prometheus.query(f'{metric}{{job="{job}"}}')
    return {
        (labels["instance"], labels["uuid"]): value
        for labels, value in ((dict(series), value) for series, value in found.items())
    }


def test_each_host_is_a_target(scraped: Scraped):
    """Found by http_sd, asked at the page, and its instance is the host; its group can be told."""
    found = {
        target["labels"]["instance"]: target
        for target in scraped.prometheus.targets()
        if target["labels"]["job"] == "webmon"
    }
    assert set(found) == HOSTS
    assert found["mixed:2222"]["scrapeUrl"].endswith(f"{scraped.path}/hosts/mixed_2222.metrics")
    groups = {name: target["discoveredLabels"].get("__meta_webmon_group") for name, target in found.items()}
    assert groups == {host.host: host.group for host in SNAPSHOT.hosts}
    told = scraped.prometheus.query('webmon_host_info{job="webmon"}')
    assert {(dict(series)["instance"], dict(series).get("group")) for series in told} == set(groups.items())


@pytest.mark.parametrize("job", ["webmon", "webmon-all"])
@pytest.mark.parametrize(
    ("metric", "column", "factor"),
    [
        ("nvidia_smi_utilization_gpu_ratio", "utilization_pct", 0.01),
        ("nvidia_smi_memory_used_bytes", "memory_used_mib", 1024 * 1024),
        ("nvidia_smi_temperature_gpu", "temperature_c", 1),
        ("nvidia_smi_power_draw_watts", "power_w", 1),
    ],
)
def test_the_values_are_those_of_the_snapshot(
    scraped: Scraped, job: str, metric: str, column: str, factor: float
):
    """By GPU host and uuid; what is not known is not there."""
    known = {
        (gpu.host, gpu.uuid.removeprefix("GPU-")): getattr(gpu, column) * factor
        for gpu in SNAPSHOT.gpus
        if gpu.uuid and getattr(gpu, column) is not None
    }
    assert len(known) >= 5
    assert per_gpu(scraped, metric, job) == pytest.approx(known)


def test_a_host_that_is_down_says_so_and_no_more(scraped: Scraped):
    """webmon_host_up is 0, and there is nothing of its GPUs."""
    up = scraped.prometheus.by("instance", 'webmon_host_up{job="webmon"}')
    assert up == {name: float(name not in DOWN) for name in HOSTS}
    for name in DOWN:
        theirs = f'{{instance="{name}", __name__!~"webmon_.+|{OWN}"}}'
        assert scraped.prometheus.query(theirs) == {}


def test_one_scrape_says_the_same_as_one_for_each_host(scraped: Scraped):
    """The same series with the same values, but for the time, which it has once."""

    def said(job: str) -> dict[frozenset[tuple[str, str]], float]:
        found = scraped.prometheus.query(f'{{job="{job}", __name__!~"webmon_snapshot.+|{OWN}"}}')
        return {
            frozenset((name, value) for name, value in series if name != "job"): number
            for series, number in found.items()
        }

    assert len(said("webmon")) > 100
    assert said("webmon-all") == said("webmon")


def test_the_time_of_the_poll_is_in_every_file(scraped: Scraped):
    """Whichever way it is scraped, it can be told how old the data is."""
    found = scraped.prometheus.query("count by (job) (webmon_snapshot_timestamp_seconds)")
    assert {dict(series)["job"]: value for series, value in found.items()} == {
        "webmon": len(HOSTS), "webmon-all": 1, "webmon-dcgm": 1,
    }  # fmt: skip
    times = scraped.prometheus.query("webmon_snapshot_timestamp_seconds").values()
    assert set(times) == {scraped.snapshot.taken_at.timestamp()}


def test_the_names_of_dcgm(scraped: Scraped):
    """Instance and Hostname are the GPU host, the units DCGM's."""
    found = {
        (dict(series)["instance"], dict(series)["Hostname"], dict(series)["gpu"]): value
        for series, value in scraped.prometheus.query("DCGM_FI_DEV_FB_USED").items()
    }
    assert found == {
        (gpu.host, gpu.host, str(gpu.index)): gpu.memory_used_mib
        for gpu in SNAPSHOT.gpus
        if gpu.memory_used_mib is not None
    }
    assert scraped.prometheus.query('{job="webmon-dcgm", __name__=~"DCGM.+", instance=~"127.+"}') == {}


def test_readings_can_be_joined_with_the_name_of_their_gpu(scraped: Scraped):
    """As dashboards do it, by the uuid: that finds exactly one nvidia_smi_gpu_info for each reading."""
    joined = scraped.prometheus.query(
        'nvidia_smi_temperature_gpu{job="webmon", instance="gpu2.lab"}'
        ' * on (uuid) group_left (index, name) nvidia_smi_gpu_info{job="webmon", instance="gpu2.lab"}'
    )
    named = {(dict(series)["index"], dict(series)["name"]): value for series, value in joined.items()}
    assert named == {
        (str(gpu.index), gpu.name): gpu.temperature_c for gpu in SNAPSHOT.gpus if gpu.host == "gpu2.lab"
    }


@pytest.mark.parametrize("job", ["webmon", "webmon-all"])
def test_readings_have_no_label_that_the_exporter_has_not(scraped: Scraped, job: str):
    """Dashboards fill gaps with `or sum by (uuid, instance, job) (…)`: one more label would double all."""
    found = scraped.prometheus.query(f'{{job="{job}", __name__=~"nvidia_smi_.+", __name__!~".+_info"}}')
    assert {tuple(sorted(dict(series))) for series in found} == {("__name__", "instance", "job", "uuid")}


def test_the_alerts_of_the_document(scraped: Scraped):
    """They tell of what is wrong in the snapshot, and of nothing else."""
    wanted = {*(("GpuHostIsDown", name) for name in DOWN), ("GpuIsFaulty", "mixed:2222")}
    # They are worked out once a second; before the first scrape, the data was missing.
    scraped.prometheus.wait(lambda it: it.alerts() == wanted)


def test_prometheus_has_nothing_to_complain_of(scraped: Scraped):
    """No series twice, nothing out of order, no target that can't be read."""
    assert not re.search(r"level=(warn|error)", scraped.prometheus.log())


@pytest.mark.parametrize("job", JOBS)
def test_each_configuration_of_the_document_is_a_whole_one(tmp_path: Path, job: str):
    """promtool finds nothing wrong with it."""
    (tmp_path / "prometheus.yml").write_text(job)
    promtool("config", "--lint-fatal", tmp_path / "prometheus.yml")


def test_the_rules_of_the_document_are_rules(tmp_path: Path):
    """promtool finds three of them, and nothing wrong."""
    (tmp_path / "rules.yml").write_text(RULES)
    assert "3 rules found" in promtool("rules", "--lint-fatal", tmp_path / "rules.yml")


@pytest.mark.parametrize("name", ["metrics", "hosts/gpu2.lab.metrics", "hosts/gpu10.lab.metrics"])
def test_promtool_finds_no_fault_with_the_files(name: str):
    """Names, units, texts: all as Prometheus wants them."""
    assert promtool("metrics", content=(TESTS / "site" / "golden" / name).read_text()) == ""


def test_promtool_does_not_like_the_name_that_nvidia_has_chosen():
    """`modelName` of dcgm-exporter, and nothing else in that file."""
    content = (TESTS / "site" / "golden" / "metrics-dcgm").read_text()
    said = promtool("metrics", content=content, status=3)
    assert {line.partition(" ")[2] for line in said.splitlines()} == {
        "label names should be written in 'snake_case' not 'camelCase'"
    }


def promtool(what: str, *arguments: str | Path, content: str = "", status: int = 0) -> str:
    """Return what `promtool check WHAT` says."""
    done = subprocess.run(
        [need("promtool", "prometheus"), "check", what, *arguments],
        input=content, check=False, capture_output=True, text=True, timeout=30,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_the_document_shows_what_is_printed(printed: Callable[..., str]):
    """With the address that the document says."""
    assert printed("prometheus", "--url", "http://monitor.lab/gpus/") == JOBS[0]


def test_no_configuration_is_needed(tmp_path: Path):
    """Prometheus may run elsewhere; by default the page is where `deploy nginx` puts it."""
    done = webmon("deploy", "prometheus", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == JOBS[0].replace("monitor.lab", "localhost")


@pytest.mark.parametrize(
    ("url", "scheme", "address", "path"),
    [
        ("http://mon", "http", "mon", ""),
        ("https://mon.lab:8443/", "https", "mon.lab:8443", ""),
        ("http://mon/lab/gpus", "http", "mon", "/lab/gpus"),
        ("http://mon/gpus/index.html", "http", "mon", "/gpus"),
        ("https://[::1]:8443/gpus/", "https", "[::1]:8443", "/gpus"),
    ],
)
def test_any_address_of_a_page_will_do(
    printed: Callable[..., str], tmp_path: Path, url, scheme, address, path
):
    """With a port or without, with or without its last slash; Prometheus takes what comes of it."""
    text = printed("prometheus", "--url", url)
    assert f"scheme: {scheme}\n" in text
    assert f"url: {scheme}://{address}{path}/targets.json\n" in text
    assert f'replacement: "{address}"\n' in text
    assert f'replacement: "{path}${{1}}"\n' in text
    (tmp_path / "prometheus.yml").write_text(text)
    promtool("config", tmp_path / "prometheus.yml")


@pytest.mark.parametrize(
    "url",
    ["", "mon/gpus/", "ftp://mon/", "http://", "http://mon/?a=1", "http://mon/#gpus", "http://me:secret@mon/",
     "http://mon:port/", "http://mon/a b/", "http://mon/../", 'http://mon/"/', "http://mon/$1/", "http://m\non/"],
)  # fmt: skip
def test_what_is_no_address_of_a_page_is_refused(refused: Callable[..., str], url: str):
    """In one line, which says how it has to look."""
    assert "as in https://monitor.lab/gpus/" in refused("prometheus", "--url", url)
