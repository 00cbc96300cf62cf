"""When to read what no server reports: each kind once in the interval, spread over it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence


class Polling:
    """`kinds`: in the order in which they are read. `interval`, and all times: seconds, by one clock."""

    def __init__(self, kinds: Sequence[str], interval: float, now: float) -> None:
        self._interval = interval
        self._next = {kind: now + interval * n / len(kinds) for n, kind in enumerate(kinds, 1)}
        self._soon: set[str] = set()

    def hasten(self, kinds: Collection[str]) -> None:
        """Make these kinds due now; later they are due as before."""
        self._soon |= self._next.keys() & kinds

    def due(self, now: float) -> frozenset[str]:
        """Return the kinds to be read now. Each of them is due again an interval later."""
        late = {kind: now - at for kind, at in self._next.items() if at <= now}
        for kind, seconds in late.items():
            self._next[kind] += self._interval * (math.floor(seconds / self._interval) + 1)
        found = frozenset(late) | self._soon
        self._soon = set()
        return found
