"""Import paramiko without what it can do without: a third of its import time.

It runs `Match exec` of an ssh_config through the package invoke, if that is there; webmon reads
ssh_config itself. Importing this module first leaves invoke out, and changes nothing for others.
"""

import sys

_is_ours = "invoke" not in sys.modules
if _is_ours:
    sys.modules["invoke"] = None  # type: ignore[assignment]  # Python's way to say: not installed
try:
    import paramiko as _paramiko  # noqa: F401
finally:
    if _is_ours:
        del sys.modules["invoke"]
