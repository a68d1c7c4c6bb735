"""Running a command on some GPUs of a host of the cluster, through the user's own ssh."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from webmon.collect.probe import CLAIM_FILE
from webmon.errors import SiteError
from webmon.model import ssh_arguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from webmon.model import Gpu

# Nothing of webmon is installed there. This claims the GPUs as `pick.claims` does, with flock(1) where the
# host has it, and becomes the command, which keeps the locks. In sh a descriptor has one digit, which is
# enough for seven GPUs; bash knows more.
_CLAIM = (
    'd=$WEBMON_CLAIMS; n=3; m=9; if [ -n "$BASH_VERSION" ]; then n=20; m=250; fi; '
    'if [ -n "$d" ]; then :; elif [ -k /run/lock ] && [ -w /run/lock ]; then d=/run/lock; else d=/tmp; fi; '
    'until [ "$1" = -- ]; do f=$d/@FILE@$1; shift; '
    'if [ -e "$f" ]; then :; else (umask 222; set -C; : > "$f") 2>/dev/null; fi; '
    'if [ $n -le $m ] && [ -f "$f" ] && [ -r "$f" ] && command -v flock >/dev/null; then '
    r'eval "exec $n<\"\$f\""; flock -n $n 2>/dev/null; '
    'if [ $? = 1 ]; then echo "webmon: somebody has just claimed this GPU: ${f##*@FILE@}" >&2; exit 1; fi; '
    'n=$((n+1)); fi; done; shift; exec "$@"'
).replace("@FILE@", CLAIM_FILE)
_IN_BASH = 's=$1; shift; if command -v bash >/dev/null; then exec bash -c "$s" "$@"; fi; exec sh -c "$s" "$@"'
_ENOUGH_FOR_SH = 7


def command(
    host: str, gpus: Sequence[Gpu], program: Sequence[str], *, by_uuid: bool = False, claim: bool = True
) -> list[str]:
    """Return the call of ssh that runs a program on some GPUs of a host, on a terminal if there is one."""
    ids = ",".join((gpu.uuid or "") if by_uuid else str(gpu.index) for gpu in gpus)
    words = ["env", "CUDA_DEVICE_ORDER=PCI_BUS_ID", f"CUDA_VISIBLE_DEVICES={ids}", *program]
    # The names of the files: a site may have been written by anybody.
    uuids = [gpu.uuid for gpu in gpus if re.fullmatch(r"GPU-[0-9A-Za-z-]{1,64}", gpu.uuid or "")]
    if claim:
        shell = ["sh", "-c", _CLAIM] if len(uuids) <= _ENOUGH_FOR_SH else ["sh", "-c", _IN_BASH, "sh", _CLAIM]
        words = [*shell, "webmon", *map(str, uuids), "--", *words]
    reach = ssh_arguments(host)
    if reach is None:
        return words
    if not re.fullmatch(r"[A-Za-z0-9._:%@][A-Za-z0-9._:%@-]*", reach[-1]):
        raise SiteError(f"{reach[-1]!r} is no name of a host")
    # With a terminal there, Ctrl-C and a connection that breaks end the command too.
    return [reach[0], "-t", *reach[1:], _line(words)]


def _line(program: Sequence[str]) -> str:
    """Return what any login shell runs as this very program."""
    line = "exec " + " ".join(_quoted(word) for word in program)
    if "\n" not in line:
        return line
    # No way to write a newline is the same in csh as in sh, so it travels in a form that needs no quotes.
    from shlex import join

    octal = "".join(f"\\0{byte:03o}" for byte in os.fsencode(join(program)))
    return f"""exec sh -c 'eval "exec $(printf %b "$1")"' sh '{octal}'"""


def _quoted(word: str) -> str:
    """Quote a word so that sh, csh and fish read the same: they differ on what a backslash is in quotes."""
    if re.fullmatch(r"[A-Za-z0-9_@+:,./-][A-Za-z0-9_@%+=:,./-]*", word):
        return word
    parts = re.split(r"([\\'!])", word)
    return "".join(f"\\{part}" if part in ("\\", "'", "!") else f"'{part}'" for part in parts if part) or "''"
