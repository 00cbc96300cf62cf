"""The calls that the sandbox got, by API and method; those that write are also counted apart."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Tally:
    """Safe to use from several threads."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    writes: Counter[tuple[str, str]] = field(default_factory=Counter)
    last: float = 0.0
    """The time at which the last write started, in seconds since 1970; 0: there was none."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, api: str, method: str, *, writes: bool) -> None:
        """Count a call."""
        with self._lock:
            self.calls[api, method] += 1
            self.writes[api, method] += writes
            if writes:
                self.last = time.time()

    def clear(self) -> None:
        """Set all counts to zero."""
        with self._lock:
            self.calls.clear()
            self.writes.clear()
            self.last = 0.0

    def read(self) -> dict[str, object]:
        """{"total", "written", "last", "calls": {api: {method: n}}, "writes": {api: {method: n}}}."""
        with self._lock:
            return {
                "total": self.calls.total(),
                "written": self.writes.total(),
                "last": self.last,
                "calls": _by_api(self.calls),
                "writes": _by_api(+self.writes),
            }


def _by_api(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for (api, method), count in sorted(counts.items()):
        found.setdefault(api, {})[method] = count
    return found
