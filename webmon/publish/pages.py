"""The pages: a lab in, (path, text) pairs out. jinja2 is imported here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import jinja2

from webmon.errors import ConfigError
from webmon.publish import words
from webmon.publish.overview import overview
from webmon.publish.people import people
from webmon.publish.sheet import sheets
from webmon.publish.trends import trends
from webmon.resources import resource

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from webmon.config.settings import SiteSettings
    from webmon.publish.lab import Lab
    from webmon.publish.look import Look


@dataclass(frozen=True, slots=True)
class Freshness:
    """How old the data is, and from when on it is old: after three periods."""

    taken_at: datetime
    stale_after_s: int
    is_stale: bool


def pages(lab: Lab, look: Look) -> Iterator[tuple[str, str]]:
    """Return every page; ConfigError if a template of the user's own fails."""
    try:
        yield from _pages(lab, look)
    except Exception as error:
        if look.site.templates is None:
            raise
        raise ConfigError(
            f"a template in {look.site.templates} fails: {type(error).__name__}: {error}",
            "Compare it with the one in webmon's templates folder, or remove [site] templates",
        ) from error


def _pages(lab: Lab, look: Look) -> Iterator[tuple[str, str]]:
    environment = _environment(look.site)
    old = 3 * look.period
    fresh = Freshness(lab.taken_at, int(old.total_seconds()), look.now - lab.taken_at > old)
    environment.globals |= {"site": look.site, "asset": look.assets, "fresh": fresh, "free": lab.free}
    template = environment.get_template("host.html.j2")
    for sheet in sheets(lab):
        yield sheet.path, template.render(host=sheet)
    yield "users.html", environment.get_template("users.html.j2").render(page=people(lab, look))
    yield "history.html", environment.get_template("history.html.j2").render(page=trends(lab, look))
    # Last: an open overview takes the details from the pages of the hosts.
    yield "index.html", environment.get_template("index.html.j2").render(page=overview(lab))


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
