"""When to read what no server reports: each kind once in the interval, spread over it."""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Sequence

from bfinfra.model.pauses import pause

SELDOM = 10  # intervals between two reads of a kind of which the site has nothing


class Polling:
    """`kinds`: in the order in which they are read. `used`: those of which the site has something; others are
    read once in ten intervals. `interval`, and all times: seconds, by one clock.
    """

    def __init__(self, kinds: Sequence[str], used: Container[str], interval: float, now: float) -> None:
        self._interval = {kind: interval if kind in used else interval * SELDOM for kind in kinds}
        self._next = {
            kind: now + seconds * n / len(kinds)
            for n, (kind, seconds) in enumerate(self._interval.items(), 1)
        }
        self._soon: set[str] = set()

    def hasten(self, kinds: Collection[str]) -> None:
        """Make these kinds due now; later they are due as before."""
        self._soon |= self._next.keys() & kinds

    def due(self, now: float) -> frozenset[str]:
        """Return the kinds to be read now. Each of them is due again after its interval."""
        late = {kind: now - at for kind, at in self._next.items() if at <= now}
        for kind, seconds in late.items():
            each = self._interval[kind]
            self._next[kind] += each * (math.floor(seconds / each) + 1)
        found = frozenset(late) | self._soon
        self._soon = set()
        return found


class Again:
    """When to read again what could not be read: soon, then ever more seldom. All times: seconds, by one
    clock.
    """

    def __init__(self) -> None:
        self._failures, self._at = 0, 0.0

    def due(self, unread: frozenset[str], now: float) -> frozenset[str]:
        """Return the kinds to be read now, of those that could not be read."""
        if not unread:
            self._failures = 0
            return frozenset()
        again = self._failures > 0
        if again and now < self._at:
            return frozenset()
        self._failures += 1
        self._at = now + pause(self._failures)
        return unread if again else frozenset()
