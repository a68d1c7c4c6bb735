"""The pages: a snapshot in, (path, text) pairs out. jinja2 is imported here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jinja2

from webmon.publish import words
from webmon.publish.addresses import file_names
from webmon.publish.overview import overview
from webmon.publish.sheet import sheets
from webmon.resources import resource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime, timedelta

    from webmon.config.settings import SiteSettings
    from webmon.model import Snapshot


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old the data is, and from when on it is old: after three periods."""

    taken_at: datetime
    stale_after_s: int
    is_stale: bool


def pages(
    snapshot: Snapshot, site: SiteSettings, assets: Mapping[str, str], *, now: datetime, period: timedelta
) -> Iterator[tuple[str, str]]:
    """Return every page; `assets` gives the published name of each asset."""
    environment = _environment(site)
    old = 3 * period
    fresh = Freshness(snapshot.taken_at, int(old.total_seconds()), now - snapshot.taken_at > old)
    environment.globals |= {"site": site, "asset": assets, "fresh": fresh}
    names = file_names([host.host for host in snapshot.hosts])
    template = environment.get_template("host.html.j2")
    for sheet in sheets(snapshot, names):
        yield sheet.path, template.render(host=sheet)
    # Last: an open overview takes the details from the pages of the hosts.
    yield "index.html", environment.get_template("index.html.j2").render(page=overview(snapshot, names))


def _environment(site: SiteSettings) -> jinja2.Environment:
    folders = [resource("templates")]
    if site.templates is not None:
        folders.insert(0, site.templates)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        # A template that is included a thousand times is not looked for on the disk a thousand times.
        auto_reload=False,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["moment"] = words.moment
    environment.filters["iso"] = words.iso
    return environment
