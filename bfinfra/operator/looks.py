"""All known checks, by the Site's uid. The running ones are counted as they come and go, as every turn needs
their number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bfinfra.operator.decide import Look


class Looks:
    """Not safe for threads: callers hold a lock."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, Look]] = {}
        self._running: set[tuple[str, str]] = set()

    def __iter__(self) -> Iterator[tuple[str, Look]]:
        """Each check with its Site's uid, as of now."""
        return iter([(uid, look) for uid, looks in self._of.items() for look in looks.values()])

    @property
    def running(self) -> int:
        """The number of checks that have not ended."""
        return len(self._running)

    def of(self, uid: str) -> Mapping[str, Look]:
        """The checks of a Site, by name."""
        return self._of.get(uid, {})

    def put(self, uid: str, look: Look) -> None:
        """Add a check, or replace what is known of it."""
        self._of.setdefault(uid, {})[look.name] = look
        if look.ended:
            self._running.discard((uid, look.name))
        else:
            self._running.add((uid, look.name))

    def drop(self, uid: str, name: str) -> None:
        """Remove a check."""
        self._of.get(uid, {}).pop(name, None)
        self._running.discard((uid, name))

    def forget(self, uid: str) -> None:
        """Remove a Site's checks."""
        for name in self._of.pop(uid, {}):
            self._running.discard((uid, name))
