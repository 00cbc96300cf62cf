"""The resources of a kind that a decision may read, sorted once for all decisions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, ItemsView, Iterator, Mapping
from typing import Any, TypeVar, cast

from bfinfra.model.order import Specs
from bfinfra.model.refs import Key

V = TypeVar("V")
Pair = tuple[Any, Any]
"""Spec and state; either may be None."""


class Everyone(Mapping[str, Pair]):
    """All resources of a kind by name. The site is only searched for them if more than single ones are asked
    for.
    """

    def __init__(self, kind: str, wanted: Specs, states: Specs) -> None:
        self._kind, self._wanted, self._states = kind, wanted, states

    @functools.cached_property
    def _pairs(self) -> dict[str, Pair]:
        keys = dict.fromkeys((*self._states, *self._wanted))
        return {
            key.name: (self._wanted.get(key), self._states.get(key)) for key in keys if key.kind == self._kind
        }

    def __getitem__(self, name: str) -> Pair:
        if "_pairs" in vars(self):
            return self._pairs[name]
        key = Key(self._kind, name)
        if key not in self._wanted and key not in self._states:
            raise KeyError(name)
        return self._wanted.get(key), self._states.get(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def items(self) -> ItemsView[str, Pair]:
        """Names with their pairs."""
        return self._pairs.items()


class Siblings(Mapping[str, Pair]):
    """All resources of a kind but one, by name. All views that `but` makes share what `once` computed."""

    def __init__(
        self, everyone: Mapping[str, Pair], name: str = "", known: dict[Hashable, Any] | None = None
    ) -> None:
        self._everyone, self._name = everyone, name
        self._known: dict[Hashable, Any] = {} if known is None else known

    def but(self, name: str) -> Siblings:
        """The siblings of the resource `name`."""
        return Siblings(self._everyone, name, self._known)

    def once(self, what: Hashable, work: Callable[[], V]) -> V:
        """The result of `work`, computed once for each `what` and kind."""
        if what not in self._known:
            self._known[what] = work()
        return cast("V", self._known[what])

    @property
    def own(self) -> Pair:
        """The spec and state of the excluded resource."""
        return self._everyone.get(self._name, (None, None))

    def naming(self, field: str, target: str) -> dict[str, Pair]:
        """The siblings whose spec or state has `target` in this field."""
        groups = self.once(field, lambda: self._grouped(field))
        return {name: self._everyone[name] for name in groups.get(target, ()) if name != self._name}

    def _grouped(self, field: str) -> dict[str, list[str]]:
        groups: dict[str, list[str]] = {}
        for name, pair in self._everyone.items():
            for found in {getattr(each, field) for each in pair if each is not None}:
                groups.setdefault(found, []).append(name)
        return groups

    def __getitem__(self, name: str) -> Pair:
        if name == self._name:
            raise KeyError(name)
        return self._everyone[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._everyone if name != self._name)

    def __len__(self) -> int:
        return len(self._everyone) - (self._name in self._everyone)
