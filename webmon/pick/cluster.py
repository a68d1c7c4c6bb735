"""The whole cluster, as the last snapshot has it: from the data folder, or from the published site."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from webmon.errors import ConfigError, NeverEnough, SiteError, WishError
from webmon.model import ssh_arguments
from webmon.pick import choose

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from webmon.availability import Rules
    from webmon.model import Gpu, Snapshot
    from webmon.pick.choose import Wish

SITE_VARIABLE = "WEBMON_SITE"

_TIMEOUT_S = 15.0
_MAX_BYTES = 256 * 1024 * 1024


def load(url: str | None, data: Path | None, usual_data: Callable[[], Path | None]) -> Snapshot:
    """Return the last snapshot: of the site at `url`, of `data`, of $WEBMON_SITE, or of the usual folder."""
    if url is None and data is None:
        url = os.environ.get(SITE_VARIABLE) or None
    if url is not None:
        return from_site(url)
    folder = data or usual_data()
    if folder is None:
        raise ConfigError(
            "no snapshot of the cluster: there is neither a configuration nor a site to read it from",
            f"Say --from URL, with the address of webmon's page, or set ${SITE_VARIABLE} to it",
        )
    from webmon.store.snapshot import load as load_from_folder

    return load_from_folder(folder)


def from_site(url: str) -> Snapshot:
    """Return the snapshot that a site publishes; SiteError says what is wrong with it."""
    from webmon.collect.clean import clean
    from webmon.store.document import from_json

    address = _document_of(url)
    content = _get(address)
    try:
        return from_json(content, clean)
    except (ValueError, RecursionError) as error:
        raise SiteError(
            f"{address} is not a whole snapshot of webmon: {clean(str(error))[:200]}",
            "Is the address that of its page, and its webmon as new as this one?",
        ) from None


def _document_of(url: str) -> str:
    """Return where the snapshot is, for the address of any page at the top of the site."""
    if not re.match(r"https?://[^/\s]", url, re.IGNORECASE) or re.search(r"[\s\x00-\x1f]", url):
        raise WishError(f"{url!r} is no address of a site", "It starts with http:// or https://")
    page = re.sub(r"[?#].*", "", url)
    return re.sub(r"[^/]*\.(?:html|json)$", "", page).rstrip("/") + "/snapshot.json"


def _get(address: str) -> bytes:
    """Fetch a file of the site; many megabytes of JSON travel as a tenth of them."""
    import http.client
    import urllib.error
    import urllib.request

    request = urllib.request.Request(address, headers={"Accept-Encoding": "gzip"})  # noqa: S310 - http(s), see above
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310
            content: bytes = answer.read(_MAX_BYTES)
            if answer.headers.get("Content-Encoding") != "gzip":
                return content
        return _unpacked(content)
    except urllib.error.HTTPError as error:
        remedy = "Its webmon may be older than this one: `webmon render` there writes snapshot.json"
        raise SiteError(f"{address}: {error.code} {error.reason}", remedy) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        why = getattr(error, "reason", None) or error
        raise SiteError(
            f"{address} can't be read: {getattr(why, 'strerror', None) or why or type(error).__name__}",
            "Is the address right? A browser should show webmon's page there",
        ) from None


def _unpacked(content: bytes) -> bytes:
    import zlib

    try:
        return zlib.decompressobj(wbits=31).decompress(content, _MAX_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from None


def pick(wish: Wish, snapshot: Snapshot, rules: Rules) -> tuple[str, tuple[Gpu, ...]]:
    """Pick as many GPUs as are wished for, all on one host; NotEnough if no host has them free."""
    wish.check()
    _check_possible(wish, snapshot)
    fitting = [offer for offer in choose.offers(snapshot) if choose.fits(offer, wish, rules)]
    hosts: dict[str, list[Gpu]] = {}
    for offer in choose.ordered(fitting, wish.sort, lambda: os.urandom(8)):
        hosts.setdefault(offer.gpu.host, []).append(offer.gpu)
    for host, gpus in hosts.items():
        if len(gpus) >= wish.count:
            chosen = gpus[: wish.count]
            return host, tuple(sorted(chosen, key=lambda gpu: gpu.index))
    most = max((len(gpus) for gpus in hosts.values()), default=0)
    raise choose.not_enough(wish, most)


def _check_possible(wish: Wish, snapshot: Snapshot) -> None:
    by_host = snapshot.gpus_by_host()
    able = max((sum(choose.could_fit(gpu, wish) for gpu in gpus) for gpus in by_host.values()), default=0)
    if able < wish.count:
        raise NeverEnough(
            choose.not_enough(wish, able).problem,
            f"None of {len(snapshot.hosts)} hosts has so many of them: it will never do",
        )


def remote_command(
    host: str, gpus: Sequence[Gpu], command: Sequence[str], *, by_uuid: bool = False
) -> list[str]:
    """Return the call of ssh that runs a command on some GPUs of a host, on a terminal if there is one."""
    reach = ssh_arguments(host)
    ids = ",".join((gpu.uuid or "") if by_uuid else str(gpu.index) for gpu in gpus)
    program = ["env", "CUDA_DEVICE_ORDER=PCI_BUS_ID", f"CUDA_VISIBLE_DEVICES={ids}", *command]
    if reach is None:
        return program
    return [
        reach[0],
        "-t",
        *reach[1:-1],
        "--",
        reach[-1],
        "exec " + " ".join(_quoted(word) for word in program),
    ]


def _quoted(word: str) -> str:
    """Quote a word so that sh, csh and fish read the same: they differ on what a backslash is in quotes."""
    if re.fullmatch(r"[A-Za-z0-9_@%+=:,./-]+", word):
        return word
    parts = re.split(r"([\\'!])", word)
    return "".join(f"\\{part}" if part in ("\\", "'", "!") else f"'{part}'" for part in parts if part) or "''"
