"""Refuses what a name or a path in a site doesn't lead to, in one way for all kinds."""

from __future__ import annotations

from typing import TypeVar

from bfinfra.backends.vcenter.places import Found, Lookup, Nowhere, Several
from bfinfra.model.errors import Refusal
from bfinfra.model.suggest import nearest

T = TypeVar("T")


def the(found: Lookup[T], what: str, text: str, field: str, around: str = "") -> T:
    """The one object that is meant. Raises Refusal if there is none or more than one, with the paths of
    those. `what`: in words, such as `datastore`; `around`: where it was looked for, if not in all of vCenter.
    """
    match found:
        case Found(thing):
            return thing
        case Several(paths):
            raise Refusal(
                f"{len(paths)} {what}s are called {text}",
                field=field,
                why=", ".join(paths),
                next="write the path of the one that is meant",
            )
        case Nowhere(known):
            raise Refusal(
                f"there is no {what} {text}{around and f' {around}'}",
                field=field,
                why="" if around else "vCenter doesn't know it",
                next=nearest(text, known) or "make it first",
            )
