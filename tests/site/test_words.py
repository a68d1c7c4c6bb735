"""Numbers, times and names as a person reads them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from webmon.model import CLAIM, Process
from webmon.publish import words


@pytest.mark.parametrize(
    ("used", "total", "shown"),
    [
        (29389, 81559, "28.7/80 GB"),
        (0, 24576, "0/24 GB"),
        (10240, 24576, "10/24 GB"),
        (None, 24576, "–/24 GB"),  # noqa: RUF001
        (512, None, "0.5/– GB"),  # noqa: RUF001
        (None, None, "–"),  # noqa: RUF001
    ],
)
def test_memory_is_told_in_gigabytes(used, total, shown):
    """What is not known is a dash, and never 0."""
    assert words.memory(used, total) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "59 min"), (7200, "2 h"), (86400 * 9, "9 d")],
)
def test_a_duration_is_told_in_its_largest_unit(seconds, shown):
    """A clock that is ahead gives 0."""
    assert words.duration(timedelta(seconds=seconds)) == shown


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("NVIDIA A100-SXM4-80GB", "A100 80GB"),
        ("NVIDIA H100 80GB HBM3", "H100 80GB"),
        ("NVIDIA GeForce RTX 3090", "RTX 3090"),
        ("Tesla V100-PCIE-32GB", "V100 32GB"),
        ("GeForce GTX 1080 Ti", "GTX 1080 Ti"),
        ("NVIDIA GB10", "GB10"),
        ("NVIDIA", "NVIDIA"),
        (None, "–"),  # noqa: RUF001
    ],
)
def test_a_model_is_what_tells_cards_apart(name, short):
    """Neither brand nor form."""
    assert words.model(name) == short


def test_a_host_with_different_models_names_each():
    """With how many there are; a card that does not say its name is left out."""
    assert words.models(["NVIDIA A100-SXM4-80GB"] * 2) == "A100 80GB"
    assert words.models(["A100", "A100", "V100", None]) == "A100 ×2, V100 ×1"  # noqa: RUF001
    assert words.models([]) == ""


@pytest.mark.parametrize(
    ("percentage", "classes"),
    [
        (None, ""),
        (0, " v0"),
        (0.4, " v0"),
        (3, " v3"),
        (40, " v40"),
        (43, " v40 v3"),
        (100, " v100"),
        (250, " v100"),
    ],
)
def test_a_level_is_classes_that_add_up(percentage, classes):
    """Tens and ones; what is not known has no bar, and nothing is fuller than full."""
    assert words.level(percentage) == classes


@pytest.mark.parametrize(
    ("used", "total", "shown"),
    [
        (512 * 1024, 2002 * 1024, "512 of 2002\u202fGB"),
        (12_800 * 1024, 40_000 * 1024, "12.5 of 39.1\u202fTB"),
    ],
)
def test_a_clusters_memory_is_told_in_terabytes_once_there_are_ten(used, total, shown):
    """Both numbers in the same unit."""
    assert words.much_memory(used, total) == shown


@pytest.mark.parametrize(
    ("now", "limit", "shown"),
    [
        (310.4, 400, "310 of 400\u202fW"),
        (None, 400, "– of 400\u202fW"),  # noqa: RUF001
        (62, None, "62\u202fW"),
        (None, None, "–"),  # noqa: RUF001
    ],
)
def test_a_power_is_told_with_its_limit(now, limit, shown):
    """As far as either is known."""
    assert words.power(now, limit) == shown


@pytest.mark.parametrize(
    ("text", "ended"),
    [(None, None), ("", ""), ("gone", "gone."), ("Is it on?", "Is it on?"), ("Look.", "Look.")],
)
def test_a_sentence_ends_once(text, ended):
    """What follows it can be another one."""
    assert words.sentence(text) == ended


@pytest.mark.parametrize(("command", "told"), [("train.py", "claimed, train.py"), (None, "claimed")])
def test_a_claim_is_told_as_one(command, told):
    """With what is run, where that is known."""
    assert words.program(Process("a", 0, "GPU-0", 1, "bob", CLAIM, command)) == told
