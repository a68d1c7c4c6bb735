"""What each command does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from webmon import config as configuration
from webmon import pipeline

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable

    from webmon.collect.assemble import Answer
    from webmon.config import Config


def run(options: Namespace) -> int:
    """Run the command that was asked for and return its exit code."""
    code: int = _COMMANDS[options.command](options)
    return code


def _fetch(options: Namespace) -> int:
    config = _load(options)
    return _locked(options, config, lambda: _ask_and_save(options, config))


def _render(options: Namespace) -> int:
    config = _load(options)
    pipeline.render(config, _data(options, config), _site(options, config))
    _say(options, f"wrote {_site(options, config) / 'index.html'}")
    return 0


def _update(options: Namespace) -> int:
    config = _load(options)

    def work() -> None:
        _ask_and_save(options, config)
        pipeline.render(config, _data(options, config), _site(options, config))

    return _locked(options, config, work)


def _ask_and_save(options: Namespace, config: Config) -> None:
    from webmon.cli.progress import Progress

    progress = Progress(len(config.hosts), shown=sys.stderr.isatty() and not options.quiet)
    warnings: list[str] = []
    remarks: dict[str, tuple[str, ...]] = {}

    def on_answer(answer: Answer) -> None:
        progress(answer)
        remarks[answer.host] = getattr(answer.result, "remarks", ())

    try:
        snapshot = pipeline.fetch(config, _data(options, config), on_answer, warnings.append)
    finally:
        progress.clear()
    for warning in warnings:
        print(f"webmon: {warning}", file=sys.stderr)
    if options.verbose:
        for host in snapshot.hosts:
            error = f": {host.error}" if host.error else ""
            _say(options, f"{host.host}: {host.status} in {host.duration_ms} ms{error}")
            for remark in remarks.get(host.host, ())[:3]:
                _say(options, f"{host.host}: it also said: {remark}")
    _say(options, snapshot.summary())


def _locked(options: Namespace, config: Config, work: Callable[[], None]) -> int:
    from webmon.store import lock

    try:
        with lock.hold(_data(options, config)):
            work()
    except lock.Locked as holder:
        print(f"webmon: another fetch is at work ({holder}); nothing done", file=sys.stderr)
    return 0


def _config(options: Namespace) -> int:
    from webmon.config import explain
    from webmon.resources import resource

    if options.example:
        print(resource("config.example.ini").read_text(encoding="utf-8"), end="")
        return 0
    config = _load(options)
    print(explain.as_json(config, options.hosts) if options.json else explain.as_text(config, options.hosts))
    return 0


def _deploy(options: Namespace) -> int:
    from webmon import deploy

    config = _load(options)
    print(deploy.text(options.what, config, path=options.path, user=options.user), end="")
    return 0


def _serve(options: Namespace) -> int:
    from webmon.publish import serve

    site = Path(options.site) if options.site else _load(options).site.dir
    with serve.Server(site, options.bind, options.port) as server:
        _say(options, f"{site} is at {server.url}  (Ctrl-C ends it)", always=True)
        server.serve_forever()
    return 0


def _demo(options: Namespace) -> int:
    from webmon.demo import show

    def say(text: str) -> None:
        _say(options, text, always=True)

    if options.once:
        show.once(Path(options.dir) if options.dir else None, say)
    else:
        show.run(Path(options.dir) if options.dir else None, options.port, options.every, say)
    return 0


def _load(options: Namespace) -> Config:
    config = configuration.load(configuration.find(options.config))
    if options.verbose or (sys.stderr.isatty() and not options.quiet):
        for warning in config.warnings:
            print(f"webmon: {warning}", file=sys.stderr)
    return config


def _data(options: Namespace, config: Config) -> Path:
    return Path(options.data) if options.data else config.data.dir


def _site(options: Namespace, config: Config) -> Path:
    return Path(options.site) if options.site else config.site.dir


def _say(options: Namespace, text: str, *, always: bool = False) -> None:
    """Tell a person: on a terminal, or when asked to; cron mails whatever is printed."""
    if not options.quiet and (always or options.verbose or sys.stderr.isatty()):
        print(text, file=sys.stderr, flush=True)


_COMMANDS = {
    "fetch": _fetch,
    "render": _render,
    "update": _update,
    "config": _config,
    "deploy": _deploy,
    "serve": _serve,
    "demo": _demo,
}
