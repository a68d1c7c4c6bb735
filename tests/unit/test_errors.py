"""Errors say what is wrong and what to do, in one line."""

from __future__ import annotations

import pytest

from webmon.errors import ConfigError, DataError, HostError, StorageError, WebmonError


@pytest.mark.parametrize(
    ("error", "text", "exit_code"),
    [
        (WebmonError("It broke."), "It broke", 2),
        (WebmonError("It broke.", "Mend it"), "It broke. Mend it", 2),
        (ConfigError("no such key", "Remove it"), "no such key. Remove it", 2),
        (
            ConfigError("no such key", "Remove it", where="config.ini:3"),
            "config.ini:3: no such key. Remove it",
            2,
        ),
        (DataError("nothing there", "Run `webmon fetch`"), "nothing there. Run `webmon fetch`", 2),
        (StorageError("disk full"), "disk full", 1),
        (HostError("timeout", "no answer", "Look at it"), "no answer. Look at it", 1),
    ],
)
def test_an_error_says_itself(error, text, exit_code):
    """Where, what, and the remedy; and it knows the exit code of the command that it ends."""
    assert isinstance(error, WebmonError)
    assert (str(error), error.exit_code) == (text, exit_code)


def test_the_reason_of_a_host_is_a_word_for_programs():
    """It stands in hosts.csv."""
    assert HostError("timeout", "no answer").reason == "timeout"
