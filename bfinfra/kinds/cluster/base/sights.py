"""What a run last saw of single objects: where a resource's stand, in which version, and what a write
answered, which is as good as a look.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bfinfra.model.endpoint import Endpoint

Place = tuple[str, str]
"""Namespace and name."""
Object = dict[str, Any]
VERSION = ("uid", "resourceVersion")


class Sights:
    """Shared by a kind's threads: each resource is looked at and written by one of them at a time."""

    def __init__(self) -> None:
        self._standing: dict[tuple[Endpoint, str], Mapping[Place, Mapping[str, str]]] = {}
        self._answers: dict[tuple[Endpoint, Place], Object | None] = {}

    def saw(self, home: Endpoint, owner: str, objects: Sequence[Object]) -> None:
        """These objects of a resource stand there, and no others."""
        self._standing[home, owner] = {
            place_of(obj): {name: str(obj["metadata"][name]) for name in VERSION} for obj in objects
        }

    def places(self, home: Endpoint, owners: Iterable[str]) -> tuple[Place, ...]:
        """Where the owners' objects stood."""
        return tuple(place for owner in owners for place in self._standing.get((home, owner), ()))

    def version(self, home: Endpoint, owner: str, place: Place) -> Mapping[str, str]:
        """`uid` and `resourceVersion` as last seen; empty where it wasn't."""
        return self._standing.get((home, owner), {}).get(place, {})

    def wrote(self, home: Endpoint, place: Place, answer: Object | None) -> None:
        """How it stands after a write; None: it is gone. What isn't that object is forgotten: the next look
        asks the server.
        """
        metadata = None if answer is None else answer.get("metadata")
        if answer is None or (
            isinstance(metadata, dict)
            and {*VERSION} <= {*metadata}
            and (metadata.get("namespace"), metadata.get("name")) == place
        ):
            self._answers[home, place] = answer

    def answer(self, home: Endpoint, place: Place) -> tuple[Object | None, ...]:
        """What a write answered since the last look, once; empty where there was none."""
        key = home, place
        return (self._answers.pop(key),) if key in self._answers else ()


def place_of(obj: Object) -> Place:
    """Where an object is."""
    return obj["metadata"]["namespace"], obj["metadata"]["name"]
