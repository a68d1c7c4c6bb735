"""Everything that webmon says has gone wrong.

WebmonError                 says what is wrong, where, and what to do; knows its exit code
├── ConfigError             the configuration, or a file that it names (exit 2)
├── DataError               the data folder can't be used (exit 2)
├── StorageError            the disk is full (exit 1)
├── SelectionError          what was asked for can't be had
│   ├── WishError           it makes no sense (exit 2)
│   ├── NotEnough           too few GPUs are free just now (exit 1)
│   │   └── NeverEnough     and there are too few of that kind altogether
│   └── WaitedTooLong       nor were they in the time that was given (exit 124)
├── SiteError               the published site can't be read (exit 1)
└── HostError               a host gave no usable answer (never ends a poll; exit 1 where it is this machine)
"""

from __future__ import annotations


class WebmonError(Exception):
    """The root: one line for a person, with the remedy in it."""

    exit_code = 2

    def __init__(self, problem: str, remedy: str = "") -> None:
        """Say what is wrong, and what to do about it."""
        super().__init__(problem, remedy)
        self.problem = problem.rstrip(". ")
        self.remedy = remedy

    def __str__(self) -> str:
        """Return the problem and the remedy in one line."""
        return f"{self.problem}. {self.remedy}" if self.remedy else self.problem


class ConfigError(WebmonError):
    """The configuration is wrong: `config.ini:12: …`."""

    def __init__(self, problem: str, remedy: str = "", *, where: str = "") -> None:
        """Say it with the file and the line, where they are known."""
        super().__init__(f"{where}: {problem}" if where else problem, remedy)


class DataError(WebmonError):
    """The data folder, or the site's, can't be used: nothing to read in it, or no right to write."""


class StorageError(WebmonError):
    """There is no space to write; what was there before is as it was."""

    exit_code = 1


class SelectionError(WebmonError):
    """No GPU can be given."""


class WishError(SelectionError):
    """What was asked for makes no sense, or no GPU here can ever be it."""


class NotEnough(SelectionError):  # noqa: N818 - what it says is `not enough`
    """Fewer GPUs than were asked for are free just now."""

    exit_code = 1


class NeverEnough(NotEnough):
    """There are too few GPUs of that kind, free or not: waiting does not help."""


class WaitedTooLong(SelectionError):  # noqa: N818 - what it says is `waited too long`
    """The GPUs that were asked for did not become free in time."""

    exit_code = 124


class SiteError(WebmonError):
    """The published site can't be reached, or is not webmon's."""

    exit_code = 1


class HostError(WebmonError):
    """One host gave no usable answer. `reason` is one word, for programs."""

    exit_code = 1

    def __init__(self, reason: str, problem: str, remedy: str = "") -> None:
        """Say why; the reasons are listed in docs/data-format.md."""
        super().__init__(problem, remedy)
        self.reason = reason
