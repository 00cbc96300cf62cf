"""Follows what a session has read: which objects came, changed and went since. (vSphere Web Services API,
PropertyCollector.WaitForUpdatesEx.)
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from lxml.etree import _Element as Element

from bfinfra.backends.vcenter import queries, reads, refs
from bfinfra.backends.vcenter.reads import Reads
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.model.errors import RemoteError
from bfinfra.model.records import dataclass

PAGE = 500  # objects in one answer
TRUE = ("true", "1")
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
    """A collector of its own, with a filter for each read of the session. It ends with the session."""

    def __init__(self, session: SoapSession) -> None:
        self._session = session
        self._content: Any = None
        self._collector: Any = None
        self._version = ""

    def start(self) -> None:
        """Follow everything that the session has read up to now. Raises RemoteError."""
        self._content = content = self._session.content()
        self._collector = content.propertyCollector.CreatePropertyCollector()
        for each in _filters(content, reads.of_session(content)):
            refs.stub(content).read(self._collector, "CreateFilter", each)

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
            found += _changes(update)
            more = update.findtext("{*}truncated") in TRUE
        return tuple(found)

    def cancel(self) -> None:
        """End a `wait` in another thread, which then raises, and the collector."""
        with contextlib.suppress(RemoteError):
            self._collector.CancelWaitForUpdates()
        with contextlib.suppress(RemoteError):
            self._collector.DestroyPropertyCollector()


def _filters(content: Any, read: Reads) -> Iterator[str]:
    """One for all that is below containers, one for single objects: a server does some work for each filter
    at each change.
    """
    views, asked = list[str](), dict[type[Any], set[str]]()
    for below in list(read.below.values()):
        view = content.viewManager.CreateContainerView(below.root, list(below.paths), recursive=True)
        views.append(queries.viewed(view))
        for kind, paths in below.paths.items():
            asked.setdefault(kind, set()).update(paths)
    if views:
        yield queries.followed(_by_type(asked), views)
    named = {kind: each for kind, each in list(read.named.items()) if each.moids}
    if named:
        objects = [text for kind, each in named.items() for text in queries.named(kind, sorted(each.moids))]
        yield queries.followed(_by_type({kind: each.paths for kind, each in named.items()}), objects)


def _by_type(asked: Mapping[type[Any], Collection[str]]) -> dict[type[Any], list[str]]:
    """The paths of each type with those of its base types, as an object gets those of one type only."""
    return {
        kind: sorted({path for base, paths in asked.items() if issubclass(kind, base) for path in paths})
        for kind in asked
    }


def _changes(update: Element) -> Iterator[Change]:
    for each in update.iterfind("{*}filterSet/{*}objectSet"):
        obj = each.find("{*}obj")
        if obj is not None:
            how, moid = each.findtext("{*}kind") or "", obj.text or ""
            paths = (*each.iterfind("{*}changeSet/{*}name"), *each.iterfind("{*}missingSet/{*}path"))
            named = (
                {str(text) for text in each.itertext()}
                for each in each.iterfind("{*}changeSet")
                if _path(each) in NAMING
            )
            yield Change(
                how,
                obj.get("type") or "",
                moid,
                tuple(path.text or "" for path in paths),
                frozenset().union(*named),
            )
    for each in update.iterfind("{*}filterSet/{*}missingSet/{*}obj"):
        yield Change("leave", each.get("type") or "", each.text or "")


def _path(changed: Element) -> str:
    return changed.findtext("{*}name") or ""
