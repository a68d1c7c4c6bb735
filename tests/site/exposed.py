"""The files for Prometheus of any snapshot, read back as strictly as Prometheus reads them."""

from __future__ import annotations

import re
from math import isfinite

from prometheus_client.parser import text_string_to_metric_families

from webmon.publish.lab import lab
from webmon.publish.metrics import metrics

# prometheus_client's reader takes more than Prometheus does.
_NAME = "[a-zA-Z_][a-zA-Z0-9_]*"
_VALUE = r'"(?:[^"\\\n]|\\["\\n])*"'
_LINE = re.compile(
    rf"# HELP {_NAME} [^\\]+|# TYPE {_NAME} gauge"
    rf"|{_NAME}(?:{{{_NAME}={_VALUE}(?:,{_NAME}={_VALUE})*}})? -?[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?"
)


def files(snapshot):
    """Return the text of each file for Prometheus."""
    made = list(metrics(lab(snapshot), None))
    assert len({path for path, _ in made}) == len(made)
    return dict(made)


def series(text):
    """Return each metric's samples: labels and value. Nothing in the text is what the format forbids."""
    lines = text.encode().decode().removesuffix("\n").split("\n") if text else []
    # Nothing that anybody would take for the end of a line stands within one.
    assert text.splitlines() == lines
    for line in lines:
        assert _LINE.fullmatch(line), line
    found = {}
    for family in text_string_to_metric_families(text):
        # A metric has one HELP, one TYPE, and all of its samples behind them.
        assert family.name not in found
        assert family.documentation
        assert family.type == "gauge"
        assert family.samples
        found[family.name] = [(sample.labels, sample.value) for sample in family.samples]
        # To Prometheus, a label that is empty is none.
        told = [frozenset((k, v) for k, v in labels.items() if v) for labels, _ in found[family.name]]
        assert len(set(told)) == len(told), family.name
        assert all(isfinite(value) for _, value in found[family.name])
        # A metric's samples all have the same labels.
        assert len({tuple(labels) for labels, _ in found[family.name]}) == 1
    return found


def value(text, metric, **labels):
    """Return the value of the one sample with these labels, or None."""
    (found,) = [number for own, number in series(text).get(metric, ()) if labels.items() <= own.items()] or [
        None
    ]
    return found
