"""The command line: one error boundary, and the only place that prints."""

from __future__ import annotations

import errno
import os
import signal
import sys
from io import TextIOWrapper
from typing import TYPE_CHECKING, NoReturn

from webmon.cli.parser import parse
from webmon.errors import WebmonError

if TYPE_CHECKING:
    from types import FrameType

# What writing to a full disk, or to one that fails, ends with; some of it may be lost before it is flushed.
_OF_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

# After which SIGTERM comes again, if nothing has come of it.
_AGAIN_S = 0.3


class _Terminated(BaseException):
    """SIGTERM has come: end like Ctrl-C does, with everything tidied up."""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    if signal.getsignal(signal.SIGTERM) != signal.SIG_IGN:  # a command that we become would not ignore it
        signal.signal(signal.SIGTERM, _terminate)
    _open_missing_streams()
    try:
        code = _run(sys.argv[1:] if argv is None else argv)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()  # whoever reads it has had enough, as `head` does
        return 0
    except OSError as error:
        if not _discard_output() and error.errno not in _OF_OUTPUT:
            raise
        print(f"webmon: the output can't be written: {error.strerror}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        _end_by(signal.SIGINT)
    except _Terminated:
        _end_by(signal.SIGTERM)
    return code


def run() -> NoReturn:
    """Run as a program, and leave at once: taking pandas and paramiko apart costs time for nothing."""
    code = main()
    sys.stderr.flush()
    os._exit(code)


def _run(argv: list[str]) -> int:
    try:
        options = parse(argv)
        code: int = options.run(options)
    except SystemExit as end:  # argparse: --help, or a mistake
        return end.code if isinstance(end.code, int) else 2
    except WebmonError as error:
        print(f"webmon: {error}", file=sys.stderr)
        return error.exit_code
    return code


def _open_missing_streams() -> None:
    """Open what our caller has closed: else the next file to be opened would be taken for it."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        pass
    os.close(descriptor)
    if sys.stdout is None or sys.stderr is None:
        nowhere = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as we run
        sys.stdout = sys.stdout or nowhere
        sys.stderr = sys.stderr or nowhere
    elif isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a name that the locale can't write is no reason to fail


def _discard_output() -> bool:
    """Let output that can't be written go nowhere, and tell whether there was any."""
    discarded = False
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            discarded = True
    return discarded


def _terminate(_number: int, _frame: FrameType | None) -> NoReturn:
    # In a destructor, or in what an import calls back, Python drops the exception. So it comes again.
    signal.signal(signal.SIGALRM, _terminate)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
    raise _Terminated


def _end_by(number: signal.Signals) -> NoReturn:
    """End by the signal itself, at once: threads that wait for hosts are not waited for."""
    sys.stderr.flush()
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(128 + number)
