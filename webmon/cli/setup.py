"""config, deploy, completion: setting webmon up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from webmon.cli.common import load
from webmon.cli.options import add

if TYPE_CHECKING:
    from argparse import Namespace

    from webmon.cli.options import Commands


def add_commands(commands: Commands) -> None:
    """Add `config`, `deploy` and `completion`."""
    config = add(
        commands,
        "config",
        _config,
        "Show what is in force, host by host, and where each value comes from",
        "  webmon config\n  webmon config gpu01                  one host\n"
        "  webmon config --example > config.ini start from the example",
    )
    config.add_argument("hosts", nargs="*", metavar="HOST", help="only these hosts")
    config.add_argument("--json", action="store_true", help="as JSON")
    config.add_argument("--example", action="store_true", help="print config.example.ini and stop")
    deploy = add(
        commands,
        "deploy",
        _deploy,
        "Print ready-to-paste text for cron, systemd, nginx, authorized_keys or Prometheus",
        "  sudo -u webmon -H webmon deploy cron     for crontab -e\n"
        "  webmon deploy nginx --path /gpus/ > /etc/nginx/snippets/webmon.conf\n"
        "  webmon deploy key | ssh gpu01 'cat >> .ssh/authorized_keys'\n"
        "  webmon deploy prometheus --url http://monitor.lab/gpus/",
    )
    deploy.description = (
        f"{deploy.description} Run it as the user that will run webmon:\n"
        "then ~ is the right one. docs/deployment.md goes through it step by step.\n\n"
        "  cron        a line for its crontab, every five minutes\n"
        "  systemd     a service and a timer instead, locked in: it can write nothing but its folders\n"
        "  nginx       the location for the site, to include in a server { ... }\n"
        "  key         lines for authorized_keys: with them the key runs the probe and nothing else\n"
        "  prometheus  the job that scrapes the site; this needs no configuration of webmon's"
    )
    deploy.add_argument("what", choices=("cron", "systemd", "nginx", "key", "prometheus"))
    deploy.add_argument(
        "--path",
        default="/gpus/",
        help="nginx: where the site is on the server, / for all of it (default: %(default)s)",
    )
    deploy.add_argument("--user", default="webmon", help="systemd: the user to run as (default: %(default)s)")
    deploy.add_argument(
        "--url",
        default="http://localhost/gpus/",
        help="prometheus: the site's address (default: %(default)s)",
    )
    completion = add(
        commands,
        "completion",
        _completion,
        "Print what makes the shell complete webmon's commands and options",
        '  eval "$(webmon completion bash)"                   in ~/.bashrc\n'
        '  eval "$(webmon completion zsh)"                    in ~/.zshrc, after compinit\n'
        "  webmon completion fish > ~/.config/fish/completions/webmon.fish",
        with_config=False,
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))


def _config(options: Namespace) -> int:
    from webmon.config import explain
    from webmon.resources import resource

    if options.example:
        print(resource("config.example.ini").read_text(encoding="utf-8"), end="")
        return 0
    config = load(options)
    print(explain.as_json(config, options.hosts) if options.json else explain.as_text(config, options.hosts))
    return 0


def _deploy(options: Namespace) -> int:
    from webmon import deploy

    if options.what == "prometheus":
        print(deploy.prometheus(options.url), end="")
        return 0
    config = load(options)
    print(deploy.text(options.what, config, path=options.path, user=options.user), end="")
    return 0


def _completion(options: Namespace) -> int:
    from webmon.cli import completion

    print(completion.script(options.shell), end="")
    return 0
