"""A plan for some resources alone: what is targeted, what is adopted, what is rotated."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from bfinfra.engine.observe import Kinds, ObservedState
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.order import Before
from bfinfra.model.partial import Partial
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.suggest import nearest


def part(targets: Collection[Key], before: Before) -> Partial | None:
    """The part of a site that these are, with all that must be done before them: what is made waits for what
    it needs, what goes for what needs it. None where nothing is targeted. BfinfraError for what there is not.
    """
    if not targets:
        return None
    if problems := [_no_target(key, before) for key in targets if key not in before]:
        raise BfinfraError(*problems)
    keys, left = set[Key](), list(targets)
    while left:
        if (key := left.pop()) not in keys:
            keys.add(key)
            left += before[key]
    return Partial(tuple(dict.fromkeys(targets)), frozenset(keys), len(before.keys() - keys))


def _no_target(key: Key, before: Before) -> Problem:
    alike = [other for other in before if other.kind == key.kind] or list(before)
    return Problem(
        f"there is no {key} to target",
        "--target",
        "neither the site has it, nor does it stand with the site's mark",
        nearest(str(key), map(str, alike)),
    )


def only(found: Plan, keys: frozenset[Key], places: Collection[str] = ()) -> Plan:
    """The plan for these alone, with the problems and the blind spots that are theirs, and those of all of
    these kinds in which they may stand.
    """
    items = tuple(replace(item, waits_for=(), because={}) for item in found.items if item.key in keys)
    problems = tuple(p for p in found.problems if any(p.what.startswith(f"{key}:") for key in keys))
    unreadable = {
        where: why
        for where, why in found.unreadable.items()
        if where in {str(key) for key in keys} or where.partition("/")[0] in places
    }
    return replace(found, items=items, problems=problems, unreadable=unreadable, warnings=())


def adopting(found: Plan, keys: frozenset[Key], site: Site, world: ObservedState, kinds: Kinds) -> Plan:
    """The plan cut down to what is adopted."""
    cut = only(found, keys)
    if cut.problems or cut.unreadable:
        return cut
    return replace(
        cut,
        problems=tuple(
            problem for key in sorted(keys, key=str) if (problem := _nothing(key, site, world, kinds))
        ),
    )


def _nothing(key: Key, site: Site, world: ObservedState, kinds: Kinds) -> Problem | None:
    """Why there is nothing to take over, or None."""
    if key not in site.resources:
        near = nearest(str(key), map(str, site.resources))
        return Problem(
            f"the site has no {key}",
            why="what is adopted is brought in line with what the site says of it",
            next=near or "write it into the site",
        )
    if not kinds[key.kind].managed:
        return Problem(
            f"{key} needs no adoption",
            site.place(key) or "",
            "bfinfra doesn't make it, so it never belongs to somebody else",
            "bfinfra apply SITE",
        )
    if key not in world.states:
        return Problem(
            f"there is no {key} yet",
            site.place(key) or "",
            "nothing stands there under its name",
            "bfinfra apply SITE makes it",
        )
    return None
