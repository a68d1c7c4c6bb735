"""What nvidia-smi's own words mean: text first, exit code second."""

from __future__ import annotations

import re
from typing import NamedTuple

from webmon.model import Problem


class _Saying(NamedTuple):
    """Patterns are compiled when there is something to match: mostly there is not."""

    pattern: str
    reason: str
    remedy: str


_LOOK = "Run nvidia-smi there by hand, and look at `dmesg | grep -i nvrm`"

_SAYINGS = tuple(
    _Saying(pattern, reason, remedy)
    for pattern, reason, remedy in (
        (
            r"couldn't communicate with the NVIDIA driver",
            "no-driver",
            "Its module is not loaded, or no GPU is in this machine: `modprobe nvidia`, or reinstall it",
        ),
        (
            r"Driver/library version mismatch",
            "driver-mismatch",
            "The driver was upgraded under the running kernel: reboot the host",
        ),
        (
            r"Failed to initialize NVML: Insufficient Permissions",
            "no-permission",
            "The user may not open /dev/nvidia*: add it to the video or render group",
        ),
        (
            r"Failed to initialize NVML",
            "driver-error",
            "A container that lost its devices, or a sick driver: restart the container, or reboot. " + _LOOK,
        ),
        (
            r"couldn't find libnvidia-ml",
            "no-library",
            "The driver's user-space part is missing: reinstall the driver",
        ),
        (r"Unable to determine the device handle", "lost-gpu", "Reboot the host. " + _LOOK),
        (r"GPU is lost", "lost-gpu", "Reboot the host. " + _LOOK),
        (
            r"No devices were found",
            "no-gpu",
            "The driver sees no GPU: is one in this machine? If not, take the host out of `hosts`",
        ),
        (
            r"is not a valid field to query",
            "old-driver",
            "This driver knows too few of the fields that webmon asks for: upgrade it",
        ),
    )
)
_INFOROM = "inforom is corrupted"
_LOST = (
    r"(?:Unable to determine the device handle for )?GPU ?(?:(?P<index>[0-9]{1,3}): ?)?"
    r"(?P<bus>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f])"
    r".*(?:Unknown Error|GPU is lost|reset|ERR!|Not Found)"
)
_HUNG = {124, 137, 143}


def lost_gpu(line: str) -> list[tuple[str, int | None]]:
    """Return the bus id, and the index if it is told, of a card that this line calls lost."""
    match = re.match(_LOST, line, re.IGNORECASE)
    if match is None:
        return []
    bus = match["bus"].lower().split(":", 1)
    return [(f"{int(bus[0], 16):x}:{bus[1]}", int(match["index"]) if match["index"] else None)]


def is_trouble(line: str) -> bool:
    """Tell whether this line is one of nvidia-smi's own complaints."""
    return _saying(line) is not None


def is_warning(line: str) -> bool:
    """Tell whether this line warns of something that leaves the rows as good as ever."""
    return _INFOROM in line.lower()


def no_rows(lines: list[str], code: int | None) -> Problem:
    """Explain an answer without a single GPU."""
    for line in lines:
        if saying := _saying(line):
            return Problem(saying.reason, line[:300], saying.remedy)
    if code in _HUNG:
        return Problem(
            "smi-timeout",
            "nvidia-smi did not answer in time",
            "The driver may hang: reboot. If it is only slow, `nvidia-smi -pm 1` there, or raise `timeout`",
        )
    if code == 127:
        return Problem(
            "not-installed",
            "nvidia-smi was not found",
            'Install the NVIDIA driver, or say where it is: nvidia_smi = "/path/to/nvidia-smi"',
        )
    if code == 126:
        return Problem("not-installed", "nvidia-smi may not be run", "Give the user the right to execute it")
    if code == 0 and not lines:
        return Problem(
            "no-gpu", "nvidia-smi lists no GPU", "Is one in this machine? If not, take it out of `hosts`"
        )
    shown = f": {lines[0][:200]!r}" if lines else ""
    return Problem(
        "garbled", f"nvidia-smi ended with code {code} and no GPU that could be read{shown}", _LOOK
    )


def faulty(lines: list[str], ill: int, total: int) -> Problem:
    """Explain that some of the GPUs are lost or in error."""
    said = next((line for line in lines if lost_gpu(line)), "")
    text = f"{ill} of {total} GPUs lost or in error" + (f": {said[:250]}" if said else "")
    return Problem("lost-gpu", text, "Reboot the host. " + _LOOK)


def unknown_processes() -> Problem:
    """Explain that the GPUs answered but their processes did not."""
    return Problem(
        "no-processes",
        "the list of processes could not be had, so no GPU here counts as free",
        "Run `nvidia-smi --query-compute-apps=pid --format=csv` there; if it is slow, raise `timeout`",
    )


def rows_with_trouble(lines: list[str], code: int | None) -> Problem | None:
    """Explain an answer that has all its rows and yet complains."""
    for line in lines:
        if is_warning(line):
            return Problem("inforom", line[:300], "The readings are good; plan to have the card checked")
        if saying := _saying(line):
            return Problem(saying.reason, line[:300], saying.remedy)
    if code not in (0, None):
        return Problem("driver-error", f"nvidia-smi ended with code {code}", _LOOK)
    return None


def _saying(line: str) -> _Saying | None:
    return next((saying for saying in _SAYINGS if re.search(saying.pattern, line, re.IGNORECASE)), None)
