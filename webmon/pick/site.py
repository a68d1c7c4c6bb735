"""The snapshot that a site publishes, fetched from it: whatever answers there, within one deadline."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

from webmon.clean import clean
from webmon.errors import SiteError, WishError
from webmon.store.document import from_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from urllib.request import OpenerDirector

    from webmon.model import Snapshot

# For so long a server may be silent, and for so long all of it may take.
_SILENT_S = 15.0
ALL_S = 60.0

# Enough for more than 100,000 GPUs.
_MAX_MIB = 64
_MAX_BYTES = _MAX_MIB * 2**20
_CHUNK_BYTES = 2**20

_IS_IT_RIGHT = "Is the address right? A browser should show webmon's page there"


class _Stream(Protocol):
    def read1(self, size: int) -> bytes: ...


def snapshot_of(url: str, *, within: float = ALL_S) -> Snapshot:
    """Return the snapshot that a site publishes; SiteError says what is wrong with it."""
    address = document_of(url)
    content = _get_within(within, address)
    try:
        return from_json(content, clean)
    except (ValueError, RecursionError) as error:
        raise SiteError(
            f"{address} is not a whole snapshot of webmon: {_shown(error)}",
            "Is the address that of its page, and its webmon as new as this one?",
        ) from None


def document_of(url: str) -> str:
    """Return where the snapshot is, for the address of any page at the top of the site."""
    try:
        parts = urlsplit(url)
        is_server = bool(parts.hostname) and parts.port != 0 and "@" not in parts.netloc
    except ValueError:  # the port is no number
        is_server = False
    if not is_server or not re.match("https?://", url, re.IGNORECASE) or re.search(r"[\s\x00-\x1f\x7f]", url):
        raise WishError(
            f"{url!r} is no address of a site",
            "It starts with http:// or https://, and a host follows, without a login",
        )
    page = re.sub(r"[?#].*", "", url)
    return re.sub(r"/[^/]*\.(?:html|json)$", "", page).rstrip("/") + "/snapshot.json"


def _get_within(limit: float, address: str) -> bytes:
    """Fetch a file of the site, but wait no longer than this for it, whatever it is that takes so long.

    A timeout of a socket begins anew with every byte, and looking up a name knows none: only a thread
    that nobody waits for can be left in the middle of that.
    """
    import threading
    from concurrent.futures import Future

    content: Future[bytes] = Future()
    given_up = threading.Event()

    def fetch() -> None:
        try:
            content.set_result(_get(address, given_up.is_set))
        except BaseException as error:  # noqa: BLE001 - it goes to whoever waits
            content.set_exception(error)

    threading.Thread(target=fetch, daemon=True).start()
    try:
        return content.result(limit)
    except TimeoutError:
        given_up.set()
        raise SiteError(f"{address} can't be read: it takes longer than {limit:g} s", _IS_IT_RIGHT) from None


def _get(address: str, is_given_up: Callable[[], bool]) -> bytes:
    """Fetch a file of the site; many megabytes of JSON travel as a tenth of them."""
    import http.client
    import urllib.error
    import urllib.request

    request = urllib.request.Request(address, headers={"Accept-Encoding": "gzip"})  # noqa: S310 - http(s), see above
    try:
        with _opener().open(request, timeout=_SILENT_S) as answer:
            content = _read(answer, is_given_up)
            return _unpacked(content) if answer.headers.get("Content-Encoding") == "gzip" else content
    except urllib.error.HTTPError as error:
        error.close()
        raise SiteError(f"{address}: {error.code} {_shown(error.reason)}", _remedy(error.code)) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SiteError(f"{address} can't be read: {_shown(error)}", _IS_IT_RIGHT) from None


def _opener() -> OpenerDirector:
    """Return what opens http and https, and nothing that a redirect may lead to besides."""
    import urllib.request as opening

    opener = opening.OpenerDirector()
    proxies = {scheme: url for scheme, url in opening.getproxies().items() if scheme in ("http", "https")}
    for handler in (
        opening.ProxyHandler(proxies),
        opening.HTTPHandler(),
        opening.HTTPSHandler(),
        opening.HTTPDefaultErrorHandler(),
        opening.HTTPRedirectHandler(),
        opening.HTTPErrorProcessor(),
        opening.UnknownHandler(),
    ):
        opener.add_handler(handler)
    return opener


def _read(answer: _Stream, is_given_up: Callable[[], bool]) -> bytes:
    content = bytearray()
    while chunk := answer.read1(_CHUNK_BYTES):
        content += chunk
        if len(content) > _MAX_BYTES:
            raise ValueError(f"it is larger than {_MAX_MIB} MiB")
        if is_given_up():
            raise ValueError("nobody waits for it any more")
    return bytes(content)


def _unpacked(content: bytes) -> bytes:
    """Unpack a file, but not one that is made to fill the memory."""
    import zlib

    unpacker = zlib.decompressobj(wbits=31)
    try:
        text = unpacker.decompress(content, _MAX_BYTES)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if unpacker.unconsumed_tail:
        raise ValueError(f"it is larger than {_MAX_MIB} MiB")
    return text


def _remedy(code: int) -> str:
    if code in (401, 403):
        return "The web server does not let you in without a login, which webmon doesn't do"
    if code in (404, 410):
        return f"{_IS_IT_RIGHT}; if it does, its webmon is older than this one, and needs `webmon render`"
    return "The web server says that; does a browser show webmon's page there?"


def _shown(error: object) -> str:
    """Say what went wrong, in words that may have come from the server."""
    why = getattr(error, "reason", None) or error
    text = getattr(why, "strerror", None) or str(why) or type(why).__name__
    return clean(str(text).split("\n")[0])[:200].rstrip(".")
