"""Prometheus' text format 0.0.4: metrics, each with all of its samples behind it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from webmon.columns import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable

    Value = float | None

# No number of this world is larger: one that is comes from a damaged table, as NaN and infinity do.
_TOO_LARGE = 2**63


class Families:
    """Samples by their metric: the format wants those of one metric side by side."""

    def __init__(self) -> None:
        """Start without any."""
        self._meanings: dict[str, str] = {}
        self._samples: dict[str, list[tuple[str, str]]] = {}

    def add(self, name: str, meaning: str, labels: str, value: Value, factor: float = 1) -> None:
        """Add a sample in another unit, unless its value is not known. The labels are written already."""
        self.add_all(name, meaning, ((labels, value),), factor)

    def add_all(
        self, name: str, meaning: str, samples: Iterable[tuple[str, Value]], factor: float = 1
    ) -> None:
        """Add the samples of a metric."""
        # NaN is not between any two numbers. A ratio is rounded: 0.07, not 0.07000000000000001.
        told = [
            (labels, repr(value) if type(value) is int and factor == 1 else repr(round(value * factor, 4)))
            for labels, value in samples
            if value is not None and -_TOO_LARGE < value < _TOO_LARGE
        ]
        if told:
            self._meanings.setdefault(name, meaning)
            self._samples.setdefault(name, []).extend(told)

    def extend(self, other: Families, labels: str) -> None:
        """Add all samples of another one, with more labels."""
        for name, samples in other._samples.items():
            self._meanings.setdefault(name, other._meanings[name])
            ours = self._samples.setdefault(name, [])
            ours += [(f"{labels},{own}" if own else labels, value) for own, value in samples]

    def text(self) -> str:
        """Write them all."""
        lines: list[str] = []
        for name, samples in self._samples.items():
            lines += (f"# HELP {name} {self._meanings[name]}", f"# TYPE {name} gauge")
            lines += [f"{name}{{{own}}} {value}" if own else f"{name} {value}" for own, value in samples]
        return "\n".join([*lines, ""])


def written(**labels: str) -> str:
    r"""Write labels: `user="ann \"the boss\""`."""
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


@lru_cache(maxsize=4096)
def _escaped(value: str) -> str:
    # What is harmless has no newline in it, which would have to be escaped, too.
    return harmless(value).replace("\\", r"\\").replace('"', r"\"")
