"""How much memory something takes beyond what this process already held: a worker that ran a thousand tests
holds as much by itself.
"""

from __future__ import annotations

import re
from pathlib import Path

SELF = Path("/proc/self")


class Taken:
    """`peak()`: bytes at most, since it was made, beyond what was held then."""

    def __init__(self) -> None:
        (SELF / "clear_refs").write_text("5")  # the peak begins anew: proc(5)
        self._held = _status("VmRSS")

    def peak(self) -> int:
        return _status("VmHWM") - self._held


def _status(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", (SELF / "status").read_text(), re.MULTILINE)
    assert found, f"{SELF}/status tells no {name}"
    return int(found[1]) * 1024
