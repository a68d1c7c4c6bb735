"""Ask hosts from within the tests' own process, without a data folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servers.settings import write_config
from webmon import config as configuration
from webmon.collect.fetch import ask_all
from webmon.errors import HostError

if TYPE_CHECKING:
    from pathlib import Path

    from webmon.collect.assemble import Answer


def ask(
    folder: Path, common: dict[str, Any], hosts: dict[str, dict[str, Any]] | None = None
) -> dict[str, Answer]:
    """Return each host's answer."""
    config = configuration.load(write_config(folder, common, hosts))
    return {answer.host: answer for answer in ask_all(config)}


def outcomes(answers: dict[str, Answer]) -> list[str]:
    """Return, in the order of `hosts`, the reason why there is no answer, or `3 GPUs`."""
    return [
        answer.result.reason if isinstance(answer.result, HostError) else f"{len(answer.result.gpus)} GPUs"
        for answer in answers.values()
    ]


def failure(answers: dict[str, Answer]) -> HostError:
    """Return why the only host gave no answer."""
    (answer,) = answers.values()
    assert isinstance(answer.result, HostError)
    return answer.result
