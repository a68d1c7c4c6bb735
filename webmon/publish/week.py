"""When the cards of each model are free: the hours of the week, on average."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from webmon.model import natural_order
from webmon.publish import words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import tzinfo

    from webmon.publish.lab import Lab
    from webmon.usage import Hour

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class FreeMap:
    """How many cards of a model were free, on average, in each hour of the week."""

    model: str
    cards: int
    best: str
    rows: Sequence[tuple[str, Sequence[tuple[str, str]]]]


def free_maps(lab: Lab, hours: Sequence[Hour], zone: tzinfo | None) -> list[FreeMap]:
    """Return when the cards of each model are free; the commonest model first."""
    cards = Counter(words.model(gpu.name) for gpu in lab.snapshot.gpus if gpu.name is not None)
    free: dict[str, dict[tuple[int, int], float]] = {model: defaultdict(float) for model in cards}
    polled: dict[str, dict[tuple[int, int], float]] = {model: defaultdict(float) for model in cards}
    for hour in hours:
        local = hour.start.astimezone(zone)
        slot = local.weekday(), local.hour
        by_model: dict[str, float] = defaultdict(float)
        for name, number in hour.free.items():
            by_model[words.model(name)] += number
        for model in by_model.keys() & cards.keys():
            free[model][slot] += by_model[model] * hour.polled_hours
            polled[model][slot] += hour.polled_hours
    models = sorted(cards, key=lambda model: (-cards[model], natural_order(model)))
    means = {
        model: {slot: free[model][slot] / polled[model][slot] for slot in polled[model]} for model in models
    }
    return [_map(model, cards[model], mean) for model, mean in means.items() if mean]


def _map(model: str, cards: int, mean: Mapping[tuple[int, int], float]) -> FreeMap:
    day, hour = max(sorted(mean), key=lambda slot: mean[slot])
    return FreeMap(
        model=model,
        cards=cards,
        best=f"Most are free on {DAYS[day]} from {hour}:00: {words.mean_count(mean[day, hour])} on average"
        if mean[day, hour]
        else "None was ever free",
        rows=[
            (
                DAYS[day][:3],
                [
                    (words.UNKNOWN, "")
                    if number is None
                    else (_few(number), words.level(100 * number / cards))
                    for number in (mean.get((day, hour)) for hour in range(24))
                ],
            )
            for day in range(7)
        ],
    )


def _few(value: float) -> str:
    """Write how many GPUs where there is little room."""
    return f"{value:.0f}" if value >= 9.95 else words.mean_count(value)
