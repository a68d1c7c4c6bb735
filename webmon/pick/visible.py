"""Which GPUs a program sees: what CUDA makes of CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webmon.model import Gpu


def visible(gpus: Sequence[Gpu], variable: str | None) -> list[Gpu]:
    """Return the GPUs that the variable names, by index or UUID: all if it is not set, none if it is empty.

    As CUDA does: a UUID may be cut short as long as it says which one is meant, and whatever comes
    after the first entry that names no GPU is not seen.
    """
    if variable is None or variable.strip() == "all":
        return list(gpus)
    seen: list[Gpu] = []
    for entry in variable.split(","):
        named = [gpu for gpu in gpus if _names(entry.strip(), gpu)]
        if len(named) != 1:
            break
        seen += [gpu for gpu in named if gpu not in seen]
    return seen


def _names(entry: str, gpu: Gpu) -> bool:
    if entry.isascii() and entry.isdigit():
        return (entry.lstrip("0") or "0") == str(gpu.index)  # int() refuses thousands of digits
    # MIG-GPU-<uuid>/1/0, as older drivers call a part of a card.
    uuid = entry.removeprefix("MIG-").partition("/")[0]
    return uuid.startswith("GPU-") and len(uuid) > len("GPU-") and (gpu.uuid or "").startswith(uuid)
