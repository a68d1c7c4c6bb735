"""The pages: a snapshot in, (path, text) pairs out. jinja2 is imported here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jinja2

from webmon.publish import words
from webmon.publish.overview import overview
from webmon.resources import resource

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime, timedelta

    from webmon.config.settings import SiteSettings
    from webmon.model import Snapshot


def pages(
    snapshot: Snapshot, site: SiteSettings, assets: Mapping[str, str], *, now: datetime, period: timedelta
) -> Iterator[tuple[str, str]]:
    """Return every page; `assets` gives the published name of each asset."""
    environment = _environment(site)
    page = overview(snapshot, now, period)
    template = environment.get_template("index.html.j2")
    yield "index.html", template.render(page=page, site=site, asset=assets)


def _environment(site: SiteSettings) -> jinja2.Environment:
    folders = [resource("templates")]
    if site.templates is not None:
        folders.insert(0, site.templates)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folders),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["moment"] = words.moment
    environment.filters["iso"] = words.iso
    return environment
