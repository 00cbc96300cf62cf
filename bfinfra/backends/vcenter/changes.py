"""Follows what a session has read: which objects came, changed and went since. (vSphere Web Services API,
PropertyCollector.WaitForUpdatesEx.)
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from lxml.etree import _Element as Element
from pyVmomi import vmodl

from bfinfra.backends.vcenter import queries, reads, refs
from bfinfra.backends.vcenter.reads import Reads
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.model.errors import RemoteError
from bfinfra.model.records import dataclass

PAGE = 500  # objects in one answer
MOST = 8  # filters for single objects, which are made when such are read; then one takes their place
TRUE = ("true", "1")
RESTLESS = {"summary.freeSpace"}  # changes all the time, and says nothing of what a site describes
NAMING = ("name", "customValue", 'config.extraConfig["bfinfra.mark"]')


@dataclass(frozen=True, slots=True)
class Change:
    """One object that came, changed or went.

    `how`: enter, modify or leave. `paths`: its properties that changed; of an object that came, those that it
    has. `words`: the texts in the values of those that say what it is: its name and its mark.
    """

    how: str
    type: str
    moid: str
    paths: tuple[str, ...] = ()
    words: frozenset[str] = frozenset()


class Changes:
    """A collector of its own, with filters for each read of the session. It ends with the session."""

    def __init__(self, session: SoapSession) -> None:
        self._session = session
        self._content: Any = None
        self._collector: Any = None
        self._version = ""
        self._known = Reads()
        self._views = frozenset[str]()
        self._named: list[str] = []

    def start(self) -> None:
        """Follow everything that the session has read up to now. Raises RemoteError."""
        self._content = content = self._session.content()
        self._collector = content.propertyCollector.CreatePropertyCollector()
        self.extend()

    def extend(self) -> bool:
        """Follow what the session has read since as well. Returns whether there are further types of objects
        among it, or further properties, which have to be read again. Called from one thread. Raises
        RemoteError.
        """
        fresh = reads.of_session(self._content).beyond(self._known)
        self._known.take(fresh)
        if fresh.below:
            self._views |= {self._filter(_of_views(self._content, fresh))}
        if len(self._named) >= MOST:  # one instead of many
            fresh.named = self._known.named
        if named := _of_named(fresh):
            before, self._named = self._named, [*self._named, self._filter(named)]
            if len(before) >= MOST:
                self._named = self._named[-1:]
                for each in before:
                    vmodl.query.PropertyCollector.Filter(each, refs.stub(self._content)).Destroy()
        return bool(fresh.below)

    def _filter(self, spec: str) -> str:
        """Create it, and return its id."""
        made = refs.stub(self._content).read(self._collector, "CreateFilter", spec)
        return made.findtext("{*}returnval") or ""

    def wait(self, seconds: int) -> tuple[Change, ...]:
        """Return the changes since the last call, all pages of them; () if there are none within `seconds`.
        The first call returns every object once. Raises RemoteError: changes from then on are not known.
        """
        found: list[Change] = []
        more = True
        while more:
            answer = refs.stub(self._content).read(
                self._collector, "WaitForUpdatesEx", queries.updates(self._version, seconds, PAGE)
            )
            update = answer.find("{*}returnval")
            if update is None:
                break
            self._version = update.findtext("{*}version") or ""
            found += self._seen(update)
            more = update.findtext("{*}truncated") in TRUE
        return tuple(found)

    def _seen(self, update: Element) -> Iterator[Change]:
        for each in update.iterfind("{*}filterSet"):
            single = (each.findtext("{*}filter") or "") not in self._views
            found = (*_changes(each, single=single),)
            gone = [change.moid for change in found if change.how == "leave"]
            for read in (self._known, reads.of_session(self._content)) if gone else ():
                read.forget(gone)
            yield from found

    def cancel(self) -> None:
        """End a `wait` in another thread, which then raises, and the collector."""
        with contextlib.suppress(RemoteError):
            self._collector.CancelWaitForUpdates()
        with contextlib.suppress(RemoteError):
            self._collector.DestroyPropertyCollector()


def _of_views(content: Any, read: Reads) -> str:
    """One filter for all that is below containers: a server does some work for each filter at each change."""
    views, asked = list[str](), dict[type[Any], set[str]]()
    for below in read.below.values():
        view = content.viewManager.CreateContainerView(below.root, list(below.paths), recursive=True)
        views.append(queries.viewed(view))
        for kind, paths in below.paths.items():
            asked.setdefault(kind, set()).update(paths)
    return queries.followed(_by_type(asked), views)


def _of_named(read: Reads) -> str:
    """One filter for single objects; "" without any."""
    named = {kind: each for kind, each in read.named.items() if each.moids}
    objects = [text for kind, each in named.items() for text in queries.named(kind, sorted(each.moids))]
    if not objects:
        return ""
    return queries.followed(_by_type({kind: each.paths for kind, each in named.items()}), objects)


def _by_type(asked: Mapping[type[Any], set[str]]) -> dict[type[Any], list[str]]:
    """The paths of each type with those of its base types, as an object gets those of one type only."""
    return {
        kind: sorted(
            {path for base, paths in asked.items() if issubclass(kind, base) for path in paths - RESTLESS}
        )
        for kind in asked
    }


def _changes(of: Element, *, single: bool) -> Iterator[Change]:
    """The changes that one filter saw. `single`: it is a filter for single objects. These exist already, so
    none of them comes; their names and marks are among the changes of the filter for all objects.
    """
    for each in of.iterfind("{*}objectSet"):
        obj = each.find("{*}obj")
        if obj is not None:
            how, moid = each.findtext("{*}kind") or "", obj.text or ""
            paths = (*each.iterfind("{*}changeSet/{*}name"), *each.iterfind("{*}missingSet/{*}path"))
            named = (
                {str(text) for text in each.itertext()}
                for each in each.iterfind("{*}changeSet")
                if _path(each) in NAMING and not single
            )
            yield Change(
                "modify" if single and how == "enter" else how,
                obj.get("type") or "",
                moid,
                tuple(path.text or "" for path in paths),
                frozenset().union(*named),
            )
    for each in of.iterfind("{*}missingSet/{*}obj"):
        yield Change("leave", each.get("type") or "", each.text or "")


def _path(changed: Element) -> str:
    return changed.findtext("{*}name") or ""
