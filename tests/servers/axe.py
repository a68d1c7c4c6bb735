"""axe-core, which finds what keeps people from using a page."""

from __future__ import annotations

import json
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from servers.page import Page

_RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")


def violations(page: Page) -> list[str]:
    """Return what is wrong with a page now: the rule, how grave it is, the first elements and why."""
    if not page.value("'axe' in window"):
        # What comes through the DevTools is not subject to the page's policy.
        page.value(f"{_source()}; 0")
    options = {"resultTypes": ["violations"], "runOnly": {"type": "tag", "values": _RULES}}
    found = page.value(f"axe.run(document, {json.dumps(options)}).then(result => result.violations)")
    return [_told(violation) for violation in found]


def _told(violation: dict[str, Any]) -> str:
    nodes = violation["nodes"]
    first = (f"{' '.join(node['target'])}: {' '.join(node['failureSummary'].split())}" for node in nodes[:3])
    return f"{violation['id']}, {violation['impact']}, elements: {len(nodes)}: {'; '.join(first)}"


@cache
def _source() -> str:
    # The package is only what carries the file here: to import it would need playwright.
    spec = find_spec("axe_playwright_python")
    if spec is None or spec.origin is None:
        missing = "axe-core is missing; install it with: pip install --no-deps axe-playwright-python==0.1.8"
        if os.environ.get("WEBMON_TESTS_REQUIRE_PROGRAMS"):
            pytest.fail(missing)
        pytest.skip(missing)
    return (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")
