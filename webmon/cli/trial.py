"""serve, demo: a look at webmon without a web server, or without hosts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from webmon.cli import common
from webmon.cli.options import add, port, seconds
from webmon.errors import ConfigError

if TYPE_CHECKING:
    from argparse import Namespace

    from webmon.cli.options import Commands


def add_commands(commands: Commands) -> None:
    """Add `serve` and `demo`."""
    serve = add(
        commands,
        "serve",
        _serve,
        "Serve the site folder on this machine, for a look without nginx",
        "  webmon serve\n  webmon serve --port 8000",
    )
    serve.add_argument("--site", metavar="DIR", help="the site folder (default: [site] dir)")
    serve.add_argument(
        "--data",
        metavar="DIR",
        help="the data folder, for fetch_num (default: [data] dir; with --site but no -c, none)",
    )
    serve.add_argument("--port", type=port, default=8080, help="default: %(default)s; 0 takes a free one")
    serve.add_argument("--bind", default="127.0.0.1", metavar="ADDRESS", help="default: %(default)s")
    demo = add(
        commands,
        "demo",
        _demo,
        "Show the whole product on a cluster of pretended hosts",
        "  webmon demo\n  webmon demo --once --dir /tmp/demo   one round, to look at",
        with_config=False,
    )
    demo.description = (
        "Run a demo cluster: real SSH servers on loopback, a real fetch, a rendered site,\n"
        "served on localhost, until Ctrl-C."
    )
    demo.add_argument("--dir", metavar="DIR", help="keep everything here (default: a temporary folder)")
    demo.add_argument("--once", action="store_true", help="one round, no server")
    demo.add_argument(
        "--port", type=port, default=8080, help="default: %(default)s, or a free one if it is taken"
    )
    demo.add_argument("--every", type=seconds, default=5.0, metavar="SECONDS", help="default: %(default)g")


def _serve(options: Namespace) -> int:
    from webmon.publish import serve

    data: Path | None
    if options.site and not options.config:
        site, data = Path(options.site), Path(options.data) if options.data else None
    else:
        config = common.load(options)
        site, data = common.site_of(options, config), common.data_of(options, config)
    if not site.is_dir():
        raise ConfigError(
            f"{site} is no folder", "Run `webmon render` first, or name the site folder: --site"
        )
    if options.data and data and not data.is_dir():
        raise ConfigError(f"{data} is no folder", "Name the data folder: --data, or leave that out")
    with serve.Server(site, options.bind, options.port, data) as server:
        past = "" if data else "no fetch_num without --data or -c; "
        common.say(options, f"{site} is at {server.url}  ({past}Ctrl-C ends it)", always=True)
        server.serve_forever()
    return 0


def _demo(options: Namespace) -> int:
    from webmon.demo import show

    def say(text: str) -> None:
        common.say(options, text, always=True)

    if options.once:
        show.once(Path(options.dir) if options.dir else None, say)
    else:
        show.run(Path(options.dir) if options.dir else None, options.port, options.every, say)
    return 0
