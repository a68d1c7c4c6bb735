"""The commands, their options and their help."""

from __future__ import annotations

import argparse
import sys

from webmon import __version__

_FORMAT = argparse.RawDescriptionHelpFormatter


class _Parser(argparse.ArgumentParser):
    """Without abbreviated options: a mistyped one is an error."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        kwargs.setdefault("allow_abbrev", False)
        kwargs.setdefault("formatter_class", _FORMAT)
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]


def parse(argv: list[str]) -> argparse.Namespace:
    """Return the options of one call; exit 2 with a usage line if they make no sense."""
    parser = build()
    if not argv:
        parser.print_help(sys.stderr)
        raise SystemExit(2)
    return parser.parse_args(argv)


def build() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = _Parser(
        prog="webmon",
        description="webmon tells a lab where its free GPUs are.",
        epilog="Start with `webmon demo`, or copy config.example.ini to config.ini and edit three lines.\n"
        "`webmon COMMAND --help` has examples.",
    )
    parser.add_argument("--version", action="version", version=f"webmon {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    _pipeline(commands)
    _config(commands)
    _deploy(commands)
    _trial(commands)
    return parser


def _add(commands: argparse._SubParsersAction[_Parser], name: str, text: str, examples: str) -> _Parser:
    command = commands.add_parser(name, help=text, description=f"{text}.", epilog=f"examples:\n{examples}")
    command.add_argument(
        "-c",
        "--config",
        metavar="FILE",
        help="the configuration (default: $WEBMON_CONFIG, ./config.ini, "
        "~/.config/webmon/config.ini, /etc/webmon/config.ini)",
    )
    level = command.add_mutually_exclusive_group()
    level.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    level.add_argument("-v", "--verbose", action="store_true", help="say more, also without a terminal")
    return command


def _pipeline(commands: argparse._SubParsersAction[_Parser]) -> None:
    fetch = _add(
        commands,
        "fetch",
        "Ask all hosts and save a snapshot as CSV",
        "  webmon fetch -c config.ini\n  webmon fetch --data /tmp/try        save it somewhere else",
    )
    render = _add(
        commands,
        "render",
        "Turn the last snapshot into the site",
        "  webmon render -c config.ini\n  webmon render --site /var/www/gpus   put it somewhere else",
    )
    update = _add(
        commands,
        "update",
        "fetch and render, one at a time: what cron calls",
        "  webmon update -c /etc/webmon/config.ini",
    )
    for command in (fetch, render, update):
        command.add_argument("--data", metavar="DIR", help="the data folder (default: [data] dir)")
    for command in (render, update):
        command.add_argument("--site", metavar="DIR", help="the site folder (default: [site] dir)")


def _config(commands: argparse._SubParsersAction[_Parser]) -> None:
    config = _add(
        commands,
        "config",
        "Show what is in force, host by host, and where each value comes from",
        "  webmon config\n  webmon config gpu01                  one host\n"
        "  webmon config --example > config.ini start from the example",
    )
    config.add_argument("hosts", nargs="*", metavar="HOST", help="only these hosts")
    config.add_argument("--json", action="store_true", help="as JSON")
    config.add_argument("--example", action="store_true", help="print config.example.ini and stop")


def _deploy(commands: argparse._SubParsersAction[_Parser]) -> None:
    deploy = _add(
        commands,
        "deploy",
        "Print ready-to-paste text for cron, systemd, nginx or authorized_keys",
        "  sudo -u webmon -H webmon deploy cron     for crontab -e\n"
        "  webmon deploy nginx --path /gpus/ > /etc/nginx/snippets/webmon.conf\n"
        "  webmon deploy key | ssh gpu01 'cat >> .ssh/authorized_keys'",
    )
    deploy.description = (
        f"{deploy.description} Run it as the user that will run webmon:\n"
        "then ~ is the right one. docs/deployment.md goes through it step by step.\n\n"
        "  cron     a line for its crontab, every five minutes\n"
        "  systemd  a service and a timer instead, locked in: it can write nothing but its folders\n"
        "  nginx    the location for the site, to include in a server { ... }\n"
        "  key      lines for authorized_keys: with them the key runs the probe and nothing else"
    )
    deploy.add_argument("what", choices=("cron", "systemd", "nginx", "key"))
    deploy.add_argument(
        "--path",
        default="/gpus/",
        help="nginx: where the site is on the server, / for all of it (default: %(default)s)",
    )
    deploy.add_argument("--user", default="webmon", help="systemd: the user to run as (default: %(default)s)")


def _trial(commands: argparse._SubParsersAction[_Parser]) -> None:
    serve = _add(
        commands,
        "serve",
        "Serve the site folder on this machine, for a look without nginx",
        "  webmon serve\n  webmon serve --port 8000",
    )
    serve.add_argument("--site", metavar="DIR", help="the site folder (default: [site] dir)")
    serve.add_argument("--port", type=_port, default=8080, help="default: %(default)s; 0 takes a free one")
    serve.add_argument("--bind", default="127.0.0.1", metavar="ADDRESS", help="default: %(default)s")
    demo = commands.add_parser(
        "demo",
        help="Show the whole product on a cluster of pretended hosts",
        description="Run a demo cluster: real SSH servers on loopback, a real fetch, a rendered site,\n"
        "served on localhost, until Ctrl-C.",
        epilog="examples:\n  webmon demo\n  webmon demo --once --dir /tmp/demo   one round, to look at",
    )
    demo.add_argument("--dir", metavar="DIR", help="keep everything here (default: a temporary folder)")
    demo.add_argument("--once", action="store_true", help="one round, no server")
    demo.add_argument(
        "--port", type=_port, default=8080, help="default: %(default)s, or a free one if it is taken"
    )
    demo.add_argument("--every", type=_seconds, default=5.0, metavar="SECONDS", help="default: %(default)g")
    demo.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    demo.add_argument("-v", "--verbose", action="store_true", help="say more")


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to 65535)")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.2 <= seconds <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds (0.2 to 86400)")
    return seconds
