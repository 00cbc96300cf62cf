"""Records which of vCenter's objects a session has read, so that exactly their changes can be followed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bfinfra.backends.vcenter import refs
from bfinfra.model.records import dataclass


@dataclass(slots=True)
class Below:
    """All objects of some types below a container, and their paths by type."""

    root: Any
    paths: dict[type[Any], set[str]]


@dataclass(slots=True)
class Named:
    """Objects of one type by id, and their paths."""

    moids: set[str]
    paths: set[str]


class Reads:
    """Grows with each read. Safe to use from several threads, which only add to it."""

    def __init__(self) -> None:
        self.below: dict[str, Below] = {}
        self.named: dict[type[Any], Named] = {}

    def all(self, root: object, asked: Mapping[type[Any], Sequence[str]]) -> None:
        """These paths of all objects of these types below `root`."""
        found = self.below.setdefault(refs.moid(root), Below(root, {}))
        for kind, paths in asked.items():
            found.paths.setdefault(kind, set()).update(paths)

    def some(self, kind: type[Any], moids: Iterable[str], paths: Iterable[str]) -> None:
        """These paths of some objects of a type."""
        found = self.named.setdefault(kind, Named(set(), set()))
        found.moids.update(moids)
        found.paths.update(paths)

    def take(self, other: Reads) -> None:
        """Add these reads."""
        for below in list(other.below.values()):
            self.all(below.root, {kind: tuple(paths) for kind, paths in list(below.paths.items())})
        for kind, named in list(other.named.items()):
            self.some(kind, tuple(named.moids), tuple(named.paths))

    def beyond(self, known: Reads) -> Reads:
        """What is not in `known`. An object whose paths grew is in it with all of them."""
        found = Reads()
        for root, below in list(self.below.items()):
            before = known.below[root].paths if root in known.below else {}
            for kind, paths in list(below.paths.items()):
                if more := tuple(paths - before.get(kind, set())):
                    found.all(below.root, {kind: more})
        for kind, named in list(self.named.items()):
            had = known.named.get(kind) or Named(set(), set())
            moids, paths = named.moids.copy(), named.paths.copy()
            if more_moids := moids if paths - had.paths else moids - had.moids:
                found.some(kind, more_moids, paths)
        return found

    def forget(self, moids: Iterable[str]) -> None:
        """These objects are gone. Ids are never used again."""
        gone = set(moids)
        for named in list(self.named.values()):
            named.moids -= gone


def of_session(content: Any) -> Reads:
    """Return the reads of the session of `content`."""
    found: Reads = refs.stub(content).reads
    return found
