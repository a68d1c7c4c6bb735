"""The API has the names and arguments of the seeds; what is webmon's own comes at the end."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import webmon
from webmon.pick.here import Selection


def shown(function):
    """Return each argument with its default, as one would write it."""
    return [
        f"{'*' if argument.kind is argument.KEYWORD_ONLY else ''}{argument.name}"
        + ("" if argument.default is argument.empty else f"={argument.default!r}")
        for argument in inspect.signature(function).parameters.values()
    ]


@pytest.mark.parametrize(
    ("name", "theirs", "ours"),
    [
        ("gpu_info", [], []),
        ("available_gpus", ["max_used_percent=20.0"], []),
        (
            "gpuselect",
            ["count=1", "devices=None", "name=None", "util=0", "mem_util=0", "processes=0", "selector=None",
             "silent=False", "set_cvd=True"],
            ["claim=True"],
        ),
        ("gpustatus", ["only_cvd=True"], []),
        (
            "select",
            [],
            ["count=1", "*name=None", "*devices=None", "*util=None", "*mem_util=None", "*processes=None",
             "*free_memory_mib=None", "*sort='random'", "*claim=True"],
        ),
        ("snapshot", [], ["url=None", "*data=None", "*config=None"]),
    ],
)  # fmt: skip
def test_the_arguments_of_a_function(name, theirs, ours):
    """In the seeds' order, with the seeds' defaults."""
    assert shown(getattr(webmon, name)) == theirs + ours


def test_what_a_selector_is_given():
    """The fields that gpuselect documents come first."""
    fields = webmon.GpuInfo._fields
    assert fields[:5] == ("device", "name", "util", "mem_util", "processes")
    assert fields[5:] == ("mem_free", "mem_used", "mem_total", "uuid")


def test_every_function_says_what_it_does():
    """`help(webmon.gpuselect)` is no empty page."""
    for name in webmon.__all__:
        assert inspect.getdoc(getattr(webmon, name)), name
    for name in ("ids", "uuids", "environment", "release"):
        assert inspect.getdoc(getattr(Selection, name)), name


def test_what_the_module_offers():
    """For tab completion; and what is not there is an ordinary AttributeError."""
    assert set(webmon.__all__) < set(dir(webmon))
    assert dir(webmon) == sorted(set(dir(webmon)))
    with pytest.raises(AttributeError, match="module 'webmon' has no attribute 'gpuselct'"):
        webmon.gpuselct  # noqa: B018 - the typing error is the test
    with pytest.raises(ImportError, match="cannot import name 'gpuselct'"):
        from webmon import gpuselct  # noqa: F401


def modules_after(script):
    """Return what is loaded once a script has run in a Python of its own."""
    script += "\nimport sys\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_import_is_cheap():
    """`import webmon` loads nothing of webmon, and the functions load none of the large libraries."""
    assert not any(name.startswith("webmon.") for name in modules_after("import webmon"))
    loaded = modules_after(
        "from webmon import gpuselect, gpustatus, gpu_info, available_gpus, select, snapshot"
    )
    assert "webmon.pick.api" in loaded
    assert not loaded & {"pandas", "numpy", "paramiko", "cryptography", "jinja2", "tomli", "asyncio", "ssl"}
