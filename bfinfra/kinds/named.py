"""Refuses what a name or a path in a site doesn't lead to, in one way for all kinds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from bfinfra.backends.vcenter.places import Found, Lookup, Nowhere, Several
from bfinfra.model.errors import Refusal
from bfinfra.model.suggest import nearest

T = TypeVar("T")
LOOKED = "none is called so in vcenter.datacenter, or in any if the site names none"


def the(found: Lookup[T], what: str, text: str, field: str, around: str = "") -> T:
    """The one object that is meant. Raises Refusal if there is none or more than one, with the paths of
    those. `what`: in words, such as `datastore`; `around`: where it was looked for, if not in all of vCenter.
    """
    match found:
        case Found(thing):
            return thing
        case Several(paths):
            raise _several(what, text, field, paths)
        case Nowhere(known):
            raise _nowhere(what, text, field, known, around)


def nowhere(what: str, text: str, field: str, known: Iterable[str]) -> Refusal:
    """The refusal of a text that is none of those by which objects are `known`: their names, or their paths
    where several have a name.
    """
    there = tuple(known)
    return ambiguous(what, text, field, there) or _nowhere(what, text, field, there)


def ambiguous(what: str, text: str, field: str, known: Iterable[str]) -> Refusal | None:
    """The refusal of a text that several are called, of those by which objects are `known`; None if fewer
    are.
    """
    there = sorted(each for each in known if each.endswith(f"/{text}"))
    return _several(what, text, field, there) if len(there) > 1 else None


def _several(what: str, text: str, field: str, paths: Sequence[str]) -> Refusal:
    return Refusal(
        f"{len(paths)} {what}{'es' if what.endswith('ch') else 's'} are called {text}",
        field=field,
        why=", ".join(paths),
        next="write the path of the one that is meant",
    )


def _nowhere(what: str, text: str, field: str, known: Sequence[str], around: str = "") -> Refusal:
    return Refusal(
        f"there is no {what} {text}{around and f' {around}'}",
        field=field,
        why="" if around else LOOKED,
        next=nearest(text, known) or "make it first",
    )
