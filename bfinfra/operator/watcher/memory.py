"""How much of its memory a watcher uses. A Site can be small or have 10,000 servers, so a number of Sites
alone is no bound.
"""

from __future__ import annotations

import os
from pathlib import Path

LIMITS = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")
UNLIMITED = 1 << 60  # bytes; version 1 of cgroups writes a number like this
FULL, SPILLS = 0.7, 0.9  # of its memory, from which it takes no further Site, and from which it gives up one


def used() -> float:
    """The part of the container's memory that this process uses; 0 without a limit."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / limit()


def limit(places: tuple[Path, ...] = LIMITS) -> float:
    """The bytes that the container may use; infinite without a limit."""
    for place in places:
        try:
            text = place.read_text().strip()
        except OSError:
            continue
        if text.isdecimal() and int(text) < UNLIMITED:
            return float(text)
    return float("inf")


def room(most: int, mine: int, part: float) -> int:
    """How many Sites it may have now. `most`: ever; `mine`: now; `part`: of the memory that is used."""
    if part < FULL:
        return most
    return min(most, mine if part < SPILLS else max(1, mine - 1))
