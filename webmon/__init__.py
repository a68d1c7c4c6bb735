"""webmon tells a lab where its free GPUs are."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from webmon.pick.api import available_gpus, gpu_info, gpuselect, gpustatus, select, snapshot
    from webmon.pick.info import GpuInfo

__version__ = "0.1.0"

__all__ = ["GpuInfo", "available_gpus", "gpu_info", "gpuselect", "gpustatus", "select", "snapshot"]


if not TYPE_CHECKING:  # to a type checker, any name would seem to be there

    def __getattr__(name: str) -> object:
        """Load the API when it is asked for: the commands do without it."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from webmon.pick import api

        return getattr(api, name)


def __dir__() -> list[str]:
    """Return what the module offers, for tab completion."""
    return sorted({*globals(), *__all__})
