"""What existed at the last look and isn't found now. A server hides what an account may not see, so that this
is no proof of absence: it is said, and what should delete it does not end as done. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace

from bfinfra.engine.observe import ObservedState
from bfinfra.engine.plan import DesiredState
from bfinfra.formats.shell import word
from bfinfra.model.errors import Problem, Warned
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key

ADDRESS = re.compile(r"[a-z][a-z0-9_]*/\S+")
GONE = "it is gone, or out of sight of this account"


def lost(
    existed: Collection[str], observed: ObservedState, kinds: Collection[str] | None = None
) -> tuple[Key, ...]:
    """The resources that existed and aren't found, although what was asked could be read. `kinds`: what was
    asked if it was not everything.
    """
    found = (Key.parse(each) for each in sorted(existed) if ADDRESS.fullmatch(each))
    return tuple(
        key
        for key in found
        if key not in observed.states
        and not observed.why_unreadable(key)
        and (kinds is None or key.kind in kinds)
    )


def absent(desired: DesiredState, observed: ObservedState) -> bool:
    """Return whether something that should exist isn't found."""
    return any(key not in observed.states for key in desired.wanted)


def with_lost(found: Plan, lost: Collection[Key], desired: DesiredState) -> Plan:
    """The plan that names them. A plan that should delete one of them can't say that it is done."""
    about = [key for key in lost if found.partial is None or key in found.partial.keys]
    missed = tuple(key for key in about if not desired.wanted)
    return replace(found, lost=missed, warnings=(*found.warnings, *_warnings(about, desired)))


def _warnings(lost: Collection[Key], desired: DesiredState) -> Iterator[Warned]:
    for key in lost:
        if key in desired.wanted:
            then = "an apply would make another one: compare with what an administrator of its server sees"
            yield Warned(replace(problem(key), next=then))
        else:
            yield Warned(problem(key))


def problem(key: Key) -> Problem:
    """What is said of one of them."""
    return Problem(
        f"{key}: it existed at an earlier check, and is not found any more",
        why=GONE,
        next=(
            "ask an administrator of its server whether it exists; if it doesn't: bfinfra state forget "
            f"{word(key)} SITE"
        ),
    )
