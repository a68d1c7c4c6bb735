"""The command line: one error boundary, and the only place that prints."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

from webmon.cli import commands
from webmon.cli.parser import parse
from webmon.errors import WebmonError

if TYPE_CHECKING:
    from types import FrameType


class _Terminated(BaseException):
    """SIGTERM has come: end like Ctrl-C does, with everything tidied up."""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    signal.signal(signal.SIGTERM, _terminate)
    try:
        options = parse(sys.argv[1:] if argv is None else argv)
        code = commands.run(options)
        sys.stdout.flush()
    except WebmonError as error:
        print(f"webmon: {error}", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        # Whoever read our output has had enough, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        _end_by(signal.SIGINT)
    except _Terminated:
        _end_by(signal.SIGTERM)
    return code


def run() -> NoReturn:
    """Run as a program, and leave at once: taking pandas and paramiko apart costs 70 ms for nothing."""
    try:
        code = main()
    except SystemExit as end:  # argparse: --help, or a mistake
        code = end.code if isinstance(end.code, int) else 2
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _Terminated


def _end_by(number: signal.Signals) -> NoReturn:
    """End by the signal itself, at once: threads that wait for hosts are not waited for."""
    sys.stderr.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)
