"""How a site is to look: what a view needs beside the lab."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from webmon.config.settings import SiteSettings


class Look(NamedTuple):
    """`[site]`, the published name of each asset, the time, and the usual time between two polls."""

    site: SiteSettings
    assets: Mapping[str, str]
    now: datetime
    period: timedelta
