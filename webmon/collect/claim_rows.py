"""Who has claimed which GPU: the probe's list of claim files, and of the locks on them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from webmon.collect.probe import CLAIM_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable

_FILE = re.compile(rf"file ([0-9a-f]{{1,16}}) ([0-9]{{1,20}}) /.*/{CLAIM_FILE}(GPU-[0-9A-Za-z-]{{1,64}})")
_LOCK = re.compile(r"lock ([0-9]{1,10}) ([0-9a-f]{2,8}):([0-9a-f]{2,8}):([0-9]{1,20})")


def read(lines: Iterable[str]) -> list[tuple[str, int]]:
    """Return each claimed GPU's uuid, with the pid that holds the lock."""
    files: dict[tuple[int, int, int], str] = {}
    claims: dict[tuple[str, int], None] = {}
    for line in lines:
        if match := _FILE.fullmatch(line):
            device, inode, uuid = match.groups()
            files[(*_major_minor(int(device, 16)), int(inode))] = uuid
        elif match := _LOCK.fullmatch(line):
            pid, major, minor, inode = match.groups()
            if uuid := files.get((int(major, 16), int(minor, 16), int(inode))):
                claims[uuid, int(pid)] = None
    return list(claims)


def _major_minor(device: int) -> tuple[int, int]:
    """Take the number of a device apart, as Linux puts it together; os.major would ask this machine's."""
    major = (device >> 8) & 0xFFF | (device >> 32) & ~0xFFF
    minor = device & 0xFF | (device >> 12) & ~0xFF
    return major, minor
