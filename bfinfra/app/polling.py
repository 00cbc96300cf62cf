"""When to read what no server reports: each kind once in the interval, spread over it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

FIRST = 1.0  # seconds until what could not be read is read again


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


class Again:
    """When to read again what could not be read: soon, then ever more seldom. `longest`, and all times:
    seconds, by one clock.
    """

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._pause = self._at = 0.0

    def due(self, unread: frozenset[str], now: float) -> frozenset[str]:
        """Return the kinds to be read now, of those that could not be read."""
        if not unread:
            self._pause = 0.0
        elif not self._pause:
            self._pause, self._at = FIRST, now + FIRST
        elif now >= self._at:
            self._pause = min(self._longest, 2 * self._pause)
            self._at = now + self._pause
            return unread
        return frozenset()
