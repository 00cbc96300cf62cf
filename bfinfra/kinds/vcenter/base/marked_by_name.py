"""Objects whose create call can't set a mark. bfinfra creates such an object under a pending name that tells
the site, notes the mark on it in a custom attribute, then renames it. Before it deletes the object it gives
back the pending name, then removes the note. So the object is recognisable at every instant.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key
from bfinfra.model.rights import ROOT, Entity, PrivilegePlaces, Right, holds

LONGEST = 60  # characters of an object's own name that fit beside the site's digest: vCenter takes 80
NAME = rf"[^\s/\\%]{{1,{LONGEST}}}"
"""Pattern of an object's own name. A pending name has one blank, before its suffix; vCenter escapes the other
three.
"""
NAME_RULE = f"no blanks, no slash, no backslash and no %, at most {LONGEST} characters"
"""The pattern in words."""
PENDING = re.compile(r"(?P<name>\S+) bfinfra-(?P<site>[0-9a-f]{10})")


def pending_name(name: str, site: str) -> str:
    """The name of a site's object while it has no note."""
    return f"{name} bfinfra-{_digest(site)}"


class Found(Protocol):
    """An object as vCenter reports it."""

    @property
    def name(self) -> str:
        """Its name in vCenter."""

    @property
    def note(self) -> str:
        """The text of its note; "" without one."""


class Calls(Protocol):
    """The writes to objects of one type, by the object's id. Each raises RemoteError."""

    def rename(self, moid: str, name: str) -> None:
        """Set its name only. Raises Exists if that is taken there."""

    def note(self, moid: str, attribute: str, text: str) -> None:
        """Write the note in this custom attribute, which is defined if it isn't yet."""

    def forget(self, moid: str, attribute: str) -> None:
        """Empty the note; nothing happens if there is none."""

    def remove(self, moid: str) -> None:
        """Delete it."""


F = TypeVar("F", bound=Found)


@dataclass(frozen=True)
class Identity:
    """What the name and the note of an object say. `name`: the name that it has or will get; `mark`: of the
    note, or implied by a pending name of the site; None without either; `unnamed`: whether it still has its
    pending name.
    """

    name: str
    mark: Mark | None
    unnamed: bool = False


@dataclass(frozen=True, kw_only=True)
class MarkedByName:
    """How a kind marks its objects. `kind`: its name, as in addresses; `place`: the word for them in the
    rights of its steps; `create`, `rename`, `delete`: the privileges that these calls take there.
    """

    kind: str
    place: str
    create: str
    rename: str
    delete: str

    @property
    def attribute(self) -> str:
        """The custom attribute with the note."""
        return f"bfinfra.{self.kind}"

    def identity(self, found: Found, site: str) -> Identity:
        """What the name and the note of an object say to a site."""
        mark = Mark.decode(found.note)
        match = PENDING.fullmatch(found.name)
        if match is None or match["site"] != _digest(site):
            return Identity(found.name, mark)
        return Identity(match["name"], mark or Mark(site, str(Key(self.kind, match["name"]))), unnamed=True)

    def of_site(self, found: Iterable[F], site: str) -> dict[str, F]:
        """The objects that a site made, by the names that they have or will get. What somebody renamed, or
        copied with its note, is not among them.
        """
        known = ((self.identity(each, site), each) for each in found)
        return {
            has.name: each
            for has, each in known
            if has.mark is not None and has.mark.name_of(site, self.kind) == has.name
        }

    def make(self, calls: Calls, mark: Mark, create: Callable[[str], str]) -> None:
        """Make the object of a mark. `create`: makes one of this name and returns its id."""
        called = pending_name(mark.name, mark.site)
        self.finish(calls, create(called), called, mark)

    def finish(self, calls: Calls, moid: str, called: str, mark: Mark) -> None:
        """Note the mark on an object, then rename it if it has its pending name. `called`: the name that
        it has. A complete object, or an adopted one, gets the note only.
        """
        calls.note(moid, self.attribute, mark.encode())
        if called != mark.name:
            calls.rename(moid, mark.name)

    def remove(self, calls: Calls, moid: str, pending: str) -> None:
        """Delete an object. `pending`: the pending name to give it first; "" if it has it already."""
        if pending:
            calls.rename(moid, pending)
        calls.forget(moid, self.attribute)
        calls.remove(moid)

    def to_make(self, *more: str) -> tuple[Right, ...]:
        """The rights of a step that makes an object. `more`: what else it takes there."""
        return self._rights(self.create, self.rename, *more)

    def to_finish(self, *more: str) -> tuple[Right, ...]:
        """The rights of a step that finishes an object."""
        return self._rights(self.rename, *more)

    def to_remove(self, *more: str) -> tuple[Right, ...]:
        """The rights of a step that removes an object."""
        return self._rights(self.rename, self.delete, *more)

    def _rights(self, *names: str) -> tuple[Right, ...]:
        return (
            holds(self.place, *names, "Global.SetCustomField"),
            holds("definitions", "Global.ManageCustomFields"),
        )

    def places(self, *objects: Entity) -> PrivilegePlaces:
        """The objects, and the root, where custom attributes are defined."""
        return {self.place: objects, "definitions": (ROOT,)}


def _digest(site: str) -> str:
    return hashlib.sha256(site.encode()).hexdigest()[:10]
