"""The whole cluster, as the last snapshot has it: from the data folder, or from the published site."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from webmon.errors import ConfigError, NeverEnough
from webmon.pick import choose

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from webmon.availability import Rules
    from webmon.model import Gpu, Snapshot
    from webmon.pick.choose import Wish

SITE_VARIABLE = "WEBMON_SITE"


def load(url: str | None, data: Path | None, usual_data: Callable[[], Path | None]) -> Snapshot:
    """Return the last snapshot: of the site at `url`, of `data`, of $WEBMON_SITE, or of the usual folder."""
    if url is None and data is None:
        url = os.environ.get(SITE_VARIABLE) or None
    if url is not None:
        from webmon.pick.site import snapshot_of

        return snapshot_of(url)
    folder = data or usual_data()
    if folder is None:
        raise ConfigError(
            "no snapshot of the cluster: there is neither a configuration nor a site to read it from",
            f"Say --from URL, with the address of webmon's page, or set ${SITE_VARIABLE} to it",
        )
    from webmon.store.snapshot import load as load_from_folder

    return load_from_folder(folder)


def pick(wish: Wish, snapshot: Snapshot, rules: Rules) -> tuple[str, tuple[Gpu, ...]]:
    """Pick as many GPUs as are wished for, all on one host; NotEnough if no host has them free."""
    wish.check()
    fitting = [offer for offer in choose.offers(snapshot) if choose.fits(offer, wish, rules)]
    hosts: dict[str, list[Gpu]] = {}
    for offer in choose.ordered(fitting, wish.sort, lambda: os.urandom(8)):
        hosts.setdefault(offer.gpu.host, []).append(offer.gpu)
    for host, gpus in hosts.items():
        if len(gpus) >= wish.count:
            chosen = gpus[: wish.count]
            return host, tuple(sorted(chosen, key=lambda gpu: gpu.index))
    most = max((len(gpus) for gpus in hosts.values()), default=0)
    _check_possible(wish, snapshot, most)
    raise choose.not_enough(wish, most)


def _check_possible(wish: Wish, snapshot: Snapshot, matched: int) -> None:
    by_host = snapshot.gpus_by_host()
    able = max((sum(choose.could_fit(gpu, wish) for gpu in gpus) for gpus in by_host.values()), default=0)
    if able < wish.count:
        raise NeverEnough(
            choose.not_enough(wish, matched).problem,
            f"None of {len(snapshot.hosts)} hosts has so many of them: it will never do",
        )
