"""Which VMs are a server's, as a run last saw, made or deleted them: what it needs to look at no others
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Moids:
    """Shared by a kind's threads: each server is looked at and changed by one of them at a time."""

    def __init__(self) -> None:
        self._ids: dict[str, frozenset[str]] = {}
        self.own: frozenset[str] = frozenset()
        """VMs that this run made."""
        self.gone: frozenset[str] = frozenset()
        """VMs that are there no more; ids are never given again."""

    def of(self, names: Iterable[str]) -> frozenset[str] | None:
        """The ids of these servers' VMs; None where they must be looked for."""
        known = [self._ids.get(name) for name in names]
        return None if None in known else frozenset().union(*(ids for ids in known if ids))

    def saw(self, names: Iterable[str], found: Mapping[str, str], gone: Iterable[str]) -> None:
        """A survey saw these VMs of the servers, id → server, and no others; and that some VMs are there no
        more.
        """
        ids: dict[str, set[str]] = {name: set() for name in names}
        for moid, name in found.items():
            ids.setdefault(name, set()).add(moid)
        self._ids |= {name: frozenset(each) for name, each in ids.items()}
        self.gone |= frozenset(gone)

    def lost(self, name: str) -> None:
        """What a server's VMs are may change now, and nobody may hear of it."""
        self._ids.pop(name, None)

    def made(self, name: str, moid: str) -> None:
        """The server's VM was made just now."""
        self._ids[name] = frozenset({moid})
        self.own |= {moid}

    def ended(self, name: str, moid: str) -> None:
        """A VM of the server was deleted just now."""
        if name in self._ids:
            self._ids[name] -= {moid}
        self.gone |= {moid}
