"""fetch, render, update: what cron calls."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from webmon import pipeline
from webmon.cli.common import data_of, load, say, site_of
from webmon.cli.options import add

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from webmon.cli.options import Commands
    from webmon.collect.assemble import Answer
    from webmon.config.settings import Config


def add_commands(commands: Commands) -> None:
    """Add `fetch`, `render` and `update`."""
    fetch = add(
        commands,
        "fetch",
        _fetch,
        "Ask all hosts and save a snapshot as CSV",
        "  webmon fetch -c config.ini\n  webmon fetch --data /tmp/try        save it somewhere else",
    )
    render = add(
        commands,
        "render",
        _render,
        "Turn the last snapshot into the site",
        "  webmon render -c config.ini\n  webmon render --site /var/www/gpus   put it somewhere else",
    )
    update = add(
        commands,
        "update",
        _update,
        "fetch and render, one at a time: what cron calls",
        "  webmon update -c /etc/webmon/config.ini",
    )
    for command in (fetch, render, update):
        command.add_argument("--data", metavar="DIR", help="the data folder (default: [data] dir)")
    for command in (render, update):
        command.add_argument("--site", metavar="DIR", help="the site folder (default: [site] dir)")


def _fetch(options: Namespace) -> int:
    config = load(options)
    return _locked(options, config, lambda: _ask_and_save(options, config))


def _render(options: Namespace) -> int:
    config = load(options)
    pipeline.render(config, data_of(options, config), site_of(options, config), _warn)
    say(options, f"wrote {site_of(options, config) / 'index.html'}")
    return 0


def _update(options: Namespace) -> int:
    config = load(options)

    def work() -> None:
        warnings = _ask_and_save(options, config)
        # What is wrong with the history has been told, if anything was.
        on_warning = (lambda _: None) if warnings else _warn
        pipeline.render(config, data_of(options, config), site_of(options, config), on_warning)

    return _locked(options, config, work)


def _warn(text: str) -> None:
    print(f"webmon: {text}", file=sys.stderr)


def _ask_and_save(options: Namespace, config: Config) -> list[str]:
    from webmon.cli.progress import Progress

    progress = Progress(len(config.hosts), shown=sys.stderr.isatty() and not options.quiet)
    warnings: list[str] = []
    remarks: dict[str, tuple[str, ...]] = {}

    def on_answer(answer: Answer) -> None:
        progress(answer)
        remarks[answer.host] = getattr(answer.result, "remarks", ())

    try:
        snapshot = pipeline.fetch(config, data_of(options, config), on_answer, warnings.append)
    finally:
        progress.clear()
    for warning in warnings:
        _warn(warning)
    if options.verbose:
        for host in snapshot.hosts:
            error = f": {host.error}" if host.error else ""
            say(options, f"{host.host}: {host.status} in {host.duration_ms} ms{error}")
            for remark in remarks.get(host.host, ())[:3]:
                say(options, f"{host.host}: it also said: {remark}")
    say(options, snapshot.summary())
    return warnings


def _locked(options: Namespace, config: Config, work: Callable[[], object]) -> int:
    from webmon.store import lock

    try:
        with lock.hold(data_of(options, config)):
            work()
    except lock.Locked as holder:
        print(f"webmon: another fetch is at work ({holder}); nothing done", file=sys.stderr)
    return 0
