"""All looks that are known, by the Site's uid; how many run is counted as they come and go, for it is asked
at every turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bfinfra.operator.decide import Look


class Looks:
    """Whoever uses it from several threads holds a lock."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, Look]] = {}
        self._running: set[tuple[str, str]] = set()

    def __iter__(self) -> Iterator[tuple[str, Look]]:
        """Each with its Site's uid, as they are now."""
        return iter([(uid, look) for uid, looks in self._of.items() for look in looks.values()])

    @property
    def running(self) -> int:
        """How many have not ended."""
        return len(self._running)

    def of(self, uid: str) -> Mapping[str, Look]:
        """A Site's, by name."""
        return self._of.get(uid, {})

    def put(self, uid: str, look: Look) -> None:
        """A new one, or more that is known of it."""
        self._of.setdefault(uid, {})[look.name] = look
        if look.ended:
            self._running.discard((uid, look.name))
        else:
            self._running.add((uid, look.name))

    def drop(self, uid: str, name: str) -> None:
        """It is gone."""
        self._of.get(uid, {}).pop(name, None)
        self._running.discard((uid, name))

    def forget(self, uid: str) -> None:
        """The Site is."""
        for name in self._of.pop(uid, {}):
            self._running.discard((uid, name))
