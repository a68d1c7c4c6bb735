"""A snapshot that is always the same, and a site that is rendered from it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from servers.chromium import Chromium

from webmon.config.settings import SiteSettings
from webmon.publish.render import render
from webmon.publish.serve import Server
from webmon.store import snapshot as store
from webmon.usage import NOTHING_PAST

HERE = Path(__file__).parent
TAKEN = datetime(2026, 11, 18, 8, 20, tzinfo=UTC)


@pytest.fixture
def snapshot():
    """The snapshot of tests/site/snapshot: every state, odd names, a host that is down."""
    return store.read(HERE / "snapshot")


@pytest.fixture
def fresh(snapshot):
    """The snapshot, as if it had been taken just now."""
    return snapshot._replace(taken_at=datetime.now(UTC).replace(microsecond=0))


@pytest.fixture
def make_site(tmp_path, snapshot):
    """Render a snapshot into a folder: `make_site(now=…, past=…, templates=…)`."""

    def make(
        shown=snapshot,
        *,
        now=TAKEN + timedelta(minutes=2),
        folder=tmp_path / "site",
        past=NOTHING_PAST,
        **settings,
    ):
        site = SiteSettings(
            **{"dir": folder, "title": "GPU monitor", "refresh": 60, "templates": None} | settings
        )
        render(shown, site, folder, now=now, period=None, past=past)
        return folder

    return make


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One Chromium for all tests of pages."""
    with Chromium(tmp_path_factory.mktemp("chromium")) as running:
        yield running


@pytest.fixture(autouse=True)
def _close_pages(request):
    """Leave no page open: one that refreshes itself would go on asking."""
    yield
    if "browser" in request.fixturenames:
        request.getfixturevalue("browser").close_pages()


@pytest.fixture
def serve():
    """Serve a site folder and return its address: `serve(folder)`, or `serve(folder, data)`."""
    import threading

    servers = []

    def start(folder, data=None):
        server = Server(folder, "127.0.0.1", 0, data)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return server.url

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()
