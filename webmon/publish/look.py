"""How a site is to look: what a view needs beside the lab."""

from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta, tzinfo

    from webmon.config.settings import SiteSettings


class Look(NamedTuple):
    """`[site]`, the published name of each asset, the time, the usual time between two polls, and the zone.

    It is that of people's hours, such as Monday at nine; None is the machine's own.
    """

    site: SiteSettings
    assets: Mapping[str, str]
    now: datetime
    period: timedelta
    zone: tzinfo | None = UTC
