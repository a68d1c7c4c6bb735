"""Rendering: what is written, what is left alone, and what a stranger's names can do (nothing)."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from usage_seen import lines, past

from webmon.errors import ConfigError, DataError
from webmon.model import Snapshot
from webmon.publish.render import render

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
TAKEN = datetime(2026, 11, 18, 8, 20, tzinfo=UTC)


def read(folder):
    """Return every file of a site, its assets by their names without the digest."""
    return {
        re.sub(r"\.[0-9a-f]{12}\.", ".", str(path.relative_to(folder))): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def index(folder):
    return (folder / "index.html").read_text()


def test_the_site_is_the_golden_one(make_site, snapshot):
    """File by file; after a wanted change, `WEBMON_WRITE_GOLDEN=1 make test` writes it anew."""
    folder = make_site(past=past(TAKEN, lines(snapshot)), price_per_kwh=0.3)
    pages = {
        name: re.sub(rb"\.[0-9a-f]{12}\.", b".", content)
        for name, content in read(folder).items()
        if not name.startswith(("assets/", ".manifest"))
    }
    if os.environ.get("WEBMON_WRITE_GOLDEN"):
        for name, content in pages.items():
            (GOLDEN / name).parent.mkdir(parents=True, exist_ok=True)
            (GOLDEN / name).write_bytes(content)
    assert pages == read(GOLDEN)


def test_every_file_can_be_read_by_the_web_server(make_site):
    """Files have mode 0644 and folders 0755, whatever the umask of cron is."""
    before = os.umask(0o077)
    try:
        folder = make_site()
    finally:
        os.umask(before)
    for path in folder.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o755 if path.is_dir() else 0o644), path


def test_a_second_run_writes_nothing_that_has_not_changed(make_site):
    """The same snapshot leaves every file as it is."""
    folder = make_site()
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    make_site()
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before


def test_only_files_of_its_own_are_removed(make_site):
    """Pages that are gone are removed by the manifest; what others have put there stays."""
    folder = make_site()
    (folder / "robots.txt").write_text("mine")
    (folder / "assets" / "logo.png").write_text("mine")
    (folder / "gone.html").write_text("webmon's, of an earlier run")
    listed = json.loads((folder / ".manifest").read_text())
    (folder / ".manifest").write_text(json.dumps([*listed, "gone.html", "../outside", "/etc/hostname", 3]))
    (folder.parent / "outside").write_text("mine")
    make_site()
    assert not (folder / "gone.html").exists()
    assert (folder / "robots.txt").exists()
    assert (folder / "assets" / "logo.png").exists()
    assert (folder.parent / "outside").exists()


def test_an_old_asset_stays_for_a_day(make_site):
    """A page that was loaded before the change still finds its style sheet."""
    folder = make_site()
    old = folder / "assets" / "style.000000000000.css"
    old.write_text("old")
    listed = json.loads((folder / ".manifest").read_text())
    (folder / ".manifest").write_text(json.dumps([*listed, "assets/style.000000000000.css"]))
    make_site()
    assert old.exists()
    os.utime(old, (time.time() - 90000, time.time() - 90000))
    make_site()
    assert not old.exists()


@pytest.mark.parametrize("text", ["", "{", "[[", "3", '{"a": 1}', "\xff"])
def test_a_broken_manifest_breaks_nothing(make_site, text):
    """It is written anew."""
    folder = make_site()
    (folder / ".manifest").write_text(text, encoding="latin-1")
    make_site()
    assert "index.html" in json.loads((folder / ".manifest").read_text())


def test_names_of_strangers_are_text(make_site):
    """Nothing of a host, user, process or label becomes markup."""
    page = index(make_site())
    assert "<script>document" not in page
    assert "<img src=x" not in page
    assert "<b>bold</b>" not in page
    assert "&lt;img src=x onerror=document.title=1&gt;" in page


def test_what_is_not_known_is_a_dash_and_never_zero(make_site, snapshot):
    """A card without readings shows dashes."""
    unread = Snapshot(snapshot.taken_at, snapshot.hosts[:1], snapshot.gpus[:1], ())
    page = index(make_site(unread))
    for part in ("use", "mem"):
        assert page.count(f'<span class="{part}">–</span>') == 1  # noqa: RUF001
    assert '<span class="more">– · –</span>' in page  # noqa: RUF001


def test_nothing_is_loaded_from_elsewhere(make_site):
    """Every address in the page is relative, so that it works anywhere, and leads to a file of the site."""
    folder = make_site()
    page = index(folder)
    for address in re.findall(r'(?:href|src)="([^"]*)"', page):
        assert re.fullmatch(r"[a-z][\w./-]*(#gpu\d+)?", address), address
        assert (folder / address.partition("#")[0]).is_file(), address
    assert " style=" not in page
    assert "default-src 'none'" in page


def test_hosts_come_in_natural_order(make_site):
    """gpu2 stands before gpu10."""
    page = index(make_site())
    assert page.index(">gpu2.lab</a></h2>") < page.index(">gpu10.lab</a></h2>")


@pytest.mark.parametrize(("minutes", "is_stale"), [(14, False), (16, True)])
def test_old_data_is_said_to_be_old(make_site, minutes, is_stale):
    """Older than three periods of five minutes."""
    page = index(make_site(now=TAKEN + timedelta(minutes=minutes)))
    assert ('id="stale" role="alert">' in page) == is_stale
    assert ('id="stale" role="alert" hidden>' in page) != is_stale


def test_a_longer_period_is_waited_for(tmp_path, snapshot, make_site):
    """Where cron asks every half hour, 80 minutes are not old."""
    from webmon.config.settings import SiteSettings

    site = SiteSettings(tmp_path, "t", 60, None)
    now = TAKEN + timedelta(minutes=80)
    render(snapshot, site, tmp_path, now=now, period=timedelta(minutes=30))
    assert 'id="stale" role="alert" hidden>' in index(tmp_path)


def test_a_template_of_ones_own_is_used(make_site, tmp_path):
    """One file in [site] templates replaces webmon's; the others stay."""
    own = tmp_path / "own"
    own.mkdir()
    (own / "legend.html.j2").write_text("<p>our legend</p>")
    page = index(make_site(templates=own))
    assert "<p>our legend</p>" in page
    assert "gpu2.lab" in page


@pytest.mark.parametrize("text", ["{{ nothing }}", "{% if %}", "{{ 1 / 0 }}"])
def test_a_broken_template_of_ones_own_is_named(make_site, tmp_path, snapshot, text):
    """The old page stays as it was; what needs no template is new, and nothing is removed."""
    folder = make_site()
    before = index(folder)
    own = tmp_path / "own"
    own.mkdir()
    (own / "legend.html.j2").write_text(text)
    newer = snapshot._replace(taken_at=TAKEN + timedelta(minutes=1), hosts=snapshot.hosts[:1])
    with pytest.raises(ConfigError, match=r"a template in .*own fails"):
        make_site(newer, templates=own)
    assert index(folder) == before
    assert json.loads((folder / "snapshot.json").read_bytes())["taken_at"] == "2026-11-18T08:21:00Z"
    assert len(list((folder / "hosts").glob("*.html"))) == len(snapshot.hosts)


def test_nothing_is_left_of_a_host_that_is_gone(make_site, snapshot):
    """Not even an empty folder, which nginx would forbid where it is to be unknown."""
    folder = make_site()
    host = snapshot.hosts[0].host
    assert (folder / "states" / host).is_dir()
    make_site(snapshot._replace(hosts=snapshot.hosts[1:]))
    assert [path for path in folder.rglob(f"*{host}*") if path.name != ".manifest"] == []
    make_site(Snapshot(TAKEN))
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["assets", "states"]


def test_a_folder_that_can_not_be_written_is_named(make_site, tmp_path):
    """A file where the folder should be."""
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file/site can't be written"):
        make_site(folder=tmp_path / "file" / "site")


def test_no_host_at_all_still_gives_a_page(make_site):
    """An empty snapshot."""
    assert "No host has been asked yet" in index(make_site(Snapshot(TAKEN)))


def test_hosts_whose_names_differ_only_in_odd_characters_have_pages_of_their_own(make_site, snapshot):
    """`a:1` and `a_1` would be one file name."""
    first = snapshot.hosts[0]
    hosts = tuple(first._replace(host=name) for name in ("a:1", "a_1", "A_1", "..", "ä"))
    page = index(make_site(Snapshot(TAKEN, hosts)))
    anchors = re.findall(r'<section class="host down bare" id="host-([^"]*)"', page)
    assert sorted(anchors) == ["A_1_3", "_", "__", "a_1", "a_1_2"]


def test_what_a_killed_run_has_left_is_cleared(make_site):
    """Half-written files, once they are an hour old; nothing else."""
    folder = make_site()
    old, new, other = (
        folder / name for name in (".index.html.0123abcd", ".index.html.ffffffff", ".htaccess")
    )
    for path in (old, new, other):
        path.write_text("x")
    for path in (old, other):
        os.utime(path, (time.time() - 4000, time.time() - 4000))
    make_site()
    assert (old.exists(), new.exists(), other.exists()) == (False, True, True)
