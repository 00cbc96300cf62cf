"""Keeps a survey current: reads again what a change touched, and decides again about that alone."""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, fields, is_dataclass, replace
from typing import Any

from bfinfra.engine import graph
from bfinfra.engine.drift import report
from bfinfra.engine.observe import Kinds, ObservedState, ask
from bfinfra.engine.plan import DesiredState, make, ours
from bfinfra.engine.reconciler import Reconciler
from bfinfra.engine.retry import RetryPolicy
from bfinfra.model.drift import Report
from bfinfra.model.errors import Problem, RemoteError, Unreachable
from bfinfra.model.plan import Plan
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key, kinds_named
from bfinfra.model.site import Site

MOID = re.compile(r"[a-z]+-[a-z]*\d+")
"""How vCenter writes the ids of its objects: vm-42, domain-c8, dvportgroup-21."""


@dataclass
class Watched:
    """A site's survey and its plan, kept current. Its methods are called from one thread."""

    site: Site
    desired: DesiredState
    observed: ObservedState
    kinds: Kinds
    retry: RetryPolicy
    plan: Plan
    _ids: dict[Key, frozenset[str]] = field(default_factory=dict)
    _of: dict[str, set[Key]] = field(default_factory=dict)

    @classmethod
    def of(
        cls, site: Site, desired: DesiredState, observed: ObservedState, kinds: Kinds, retry: RetryPolicy
    ) -> Watched:
        """After a full survey."""
        made = cls(site, desired, observed, kinds, retry, make(site, desired, observed, kinds))
        made._index(observed.states)
        return made

    def report(self, before: Collection[str] = ()) -> Report:
        """Return the differences now. `before`: addresses of resources that existed at an earlier check."""
        return report(self.plan, self.desired, self.observed, self.kinds, before)

    def naming(self, ids: Iterable[str]) -> set[Key]:
        """The resources whose state has one of these ids of vCenter's objects in it."""
        return {key for each in ids for key in self._of.get(each, ())}

    def words(self) -> frozenset[str]:
        """Every text in the site's resources, with the names of their objects."""
        return frozenset(
            text
            for key, spec in self.desired.wanted.items()
            for text in (key.name, *_texts(spec.model_dump(mode="json")))
        )

    def _index(self, keys: Iterable[Key]) -> None:
        for key in keys:
            for each in self._ids.pop(key, ()):
                self._of[each].discard(key)
            texts = _texts(self.observed.states.get(key))
            self._ids[key] = found = frozenset(each for each in texts if MOID.fullmatch(each))
            for each in found:
                self._of.setdefault(each, set()).add(key)

    def look(self, touched: Collection[Key]) -> frozenset[Key]:
        """Read these resources again, one by one where they are few. Returns those whose state changed, or
        could not be read. Raises RemoteError.
        """
        before = {key: self.observed.states.get(key) for key in touched}
        reader = Reconciler(self.desired, self.observed, self.kinds, self.retry, lambda _: None)
        by_kind: dict[str, list[str]] = {}
        for key in touched:
            by_kind.setdefault(key.kind, []).append(key.name)
        for kind in _ordered(self.kinds, by_kind):
            read = functools.partial(reader.look, kind, tuple(by_kind[kind]))
            try:
                self.retry.read(read)
            except Unreachable:
                if not any(self.observed.why_unreadable(Key(kind, name)) for name in by_kind[kind]):
                    raise
        return self._moved(before)

    def survey(self, kinds: Collection[str]) -> frozenset[Key]:
        """Read all resources of these kinds again. Returns those whose state changed, came or
        went, or on whose facts decisions depend that changed, and those that can't be read, or couldn't be.
        """
        unread = self._unread(kinds)
        before = {key: state for key, state in self.observed.states.items() if key.kind in kinds}
        facts = {kind: self.observed.facts.get(kind) for kind in kinds}
        for kind in _ordered(self.kinds, kinds):
            self._forget(kind)
            try:
                observation = ask(self.kinds[kind], kind, self.desired.wanted, self.observed, self.retry)
                self.observed.take(kind, observation)
            except RemoteError as error:
                self.observed.unreadable[kind] = str(error)
        now = {key for key in self.observed.states if key.kind in kinds}
        unread |= self._unread(kinds)
        others = {kind for kind, known in facts.items() if known != self.observed.facts.get(kind)}
        concerned = {key for key in (*self.desired.wanted, *now) if key.kind in others}
        return self._moved(before | dict.fromkeys(now - before.keys())) | unread | concerned

    def _unread(self, kinds: Collection[str]) -> set[Key]:
        return {key for key in self.desired.wanted if key.kind in kinds and self.observed.why_unreadable(key)}

    def dependants(self, moved: Iterable[Key]) -> frozenset[str]:
        """The kinds whose survey looks at resources of these kinds."""
        kinds = {key.kind for key in moved}
        return frozenset(
            name
            for name, kind in self.kinds.items()
            if not kind.alone and not (kinds_named(kind.Spec) | kinds_named(kind.State)).isdisjoint(kinds)
        )

    def behind(self, some: Collection[str]) -> frozenset[str]:
        """The kinds whose survey looks at resources of these kinds, or of others of which this is true."""
        found, fresh = frozenset[str](), frozenset(some)
        while fresh:
            fresh = self.dependants(Key(kind, "") for kind in fresh) - found
            found |= fresh
        return found

    def in_order(self, some: Collection[str]) -> list[str]:
        """These kinds, first what others refer to."""
        return list(_ordered(self.kinds, some))

    def decide(self, moved: Collection[Key]) -> None:
        """Decide again about these resources, about those that wait for them, and about those of which
        something was said that may be about another resource.
        """
        states = ours(self.desired, self.observed)
        known = {*self.desired.wanted, *states}
        behind = {item.key for item in self.plan.items if not {*item.waits_for}.isdisjoint(moved)}
        again = ({*moved} | behind | self._in_question(known)) & known
        gone = ({*moved} | behind) - known
        part = (
            make(self.site, self.desired, self.observed, self.kinds, sorted(again, key=str))
            if again
            else replace(self.plan, items=(), problems=(), unreadable={}, stale={}, warnings=())
        )
        self.plan = _merged(self.plan, part, frozenset(gone), known, self.observed.unreadable)

    @property
    def unread_kinds(self) -> frozenset[str]:
        """The kinds of what could not be read."""
        names = {each.kind if isinstance(each, Key) else each for each in self.observed.unreadable}
        return frozenset(names & self.kinds.keys())

    def _in_question(self, known: Iterable[Key]) -> set[Key]:
        """Resources that could not be read or decided when they were last looked at, and those with a problem
        or a warning.
        """
        problems = (*self.plan.problems, *(each.problem for each in self.plan.warnings))
        said = {*self.plan.unreadable, *map(_address, problems)}
        return {key for key in known if str(key) in said}

    def _moved(self, before: Mapping[Key, Any]) -> frozenset[Key]:
        moved = frozenset(
            key
            for key, state in before.items()
            if state != self.observed.states.get(key) or self.observed.why_unreadable(key)
        )
        self._index(moved)
        return moved

    def _forget(self, kind: str) -> None:
        observed = self.observed
        of: Sequence[dict[Any, Any]] = (observed.states, observed.unreadable, observed.facts)
        for known in of:
            for key in [each for each in known if (each.kind if isinstance(each, Key) else each) == kind]:
                del known[key]


def _ordered(kinds: Kinds, some: Container[str]) -> Iterator[str]:
    """Those of the kinds, first what others refer to."""
    return (kind for level in graph.levels(kinds) for kind in level if kind in some)


def _merged(
    whole: Plan, part: Plan, gone: frozenset[Key], known: Container[Key], unread: Mapping[Key | str, str]
) -> Plan:
    """The whole plan with what a part of it says now."""
    about = (part.partial.keys if part.partial else frozenset[Key]()) | gone
    fresh = {item.key: item for item in part.items}
    kept = [
        fresh.pop(item.key, item)
        for item in whole.items
        if item.key in known and (item.key not in about or item.key in fresh)
    ]
    places = {str(key) for key in about}
    problems = [each for each in whole.problems if _address(each) not in places]
    warnings = [each for each in whole.warnings if _address(each.problem) not in places]
    unreadable = {str(where): why for where, why in unread.items()}  # part has what is behind these
    return replace(
        whole,
        items=(*kept, *fresh.values()),
        problems=(*problems, *(p for p in part.problems if p not in problems)),
        unreadable={**unreadable, **part.unreadable},
        stale={**{at: why for at, why in whole.stale.items() if at not in places}, **part.stale},
        warnings=(*warnings, *(each for each in part.warnings if each not in warnings)),
    )


def _address(problem: Problem) -> str:
    """The address of the resource that it begins with."""
    return problem.what.partition(":")[0]


def _texts(value: object) -> Iterator[str]:
    """Every text in a state."""
    left: list[object] = [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            yield each
        elif is_dataclass(each):
            left += [getattr(each, field.name) for field in fields(each)]
        elif isinstance(each, Mapping):
            left += [*each.keys(), *each.values()]
        elif isinstance(each, Iterable):
            left += each
