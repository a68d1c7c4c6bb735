"""What the commands do alike: read the configuration, find the folders, tell a person."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from webmon import config as configuration

if TYPE_CHECKING:
    from argparse import Namespace

    from webmon.config.settings import Config


def load(options: Namespace) -> Config:
    """Return the configuration, and tell of what is odd in it."""
    config = configuration.load(configuration.find(options.config))
    if options.verbose or (sys.stderr.isatty() and not options.quiet):
        for warning in config.warnings:
            print(f"webmon: {warning}", file=sys.stderr)
    return config


def data_of(options: Namespace, config: Config) -> Path:
    """Return the data folder."""
    return Path(options.data) if options.data else config.data.dir


def site_of(options: Namespace, config: Config) -> Path:
    """Return the site folder."""
    return Path(options.site) if options.site else config.site.dir


def say(options: Namespace, text: str, *, always: bool = False) -> None:
    """Tell a person: on a terminal, or when asked to; cron mails whatever is printed."""
    if not options.quiet and (always or options.verbose or sys.stderr.isatty()):
        print(text, file=sys.stderr, flush=True)
