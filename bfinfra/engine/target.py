"""A plan for some resources only: those targeted, adopted or rotated."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from bfinfra.engine import graph
from bfinfra.engine.graph import closure
from bfinfra.engine.observe import Kinds, ObservedState
from bfinfra.model.compare import UNFINISHED
from bfinfra.model.errors import BfinfraError, Problem, Warned
from bfinfra.model.kind import Source
from bfinfra.model.order import Before, Specs
from bfinfra.model.partial import Partial
from bfinfra.model.plan import Plan
from bfinfra.model.refs import Key
from bfinfra.model.site import Site
from bfinfra.model.suggest import nearest


def part(targets: Collection[Key], before: Before) -> Partial | None:
    """The targets with all that must be done before them; None without targets. Raises BfinfraError for a
    target that does not exist.
    """
    if not targets:
        return None
    if problems := [_no_target(key, before) for key in targets if key not in before]:
        raise BfinfraError(*problems)
    keys = closure(targets, before.__getitem__)
    return Partial(tuple(dict.fromkeys(targets)), keys, len(before.keys() - keys))


def kinds_needed(
    targets: Collection[Key], wanted: Specs, named: Callable[[str], Collection[str]]
) -> frozenset[str] | None:
    """The kinds that must be surveyed for these targets: their own, those of what must be done before them,
    and those of the site that these surveys look at. None (all kinds) if nothing is targeted, or something
    that is to be deleted: any object may need it. `named`: the kinds that a kind's survey looks at.
    """
    if not targets or any(key not in wanted for key in targets):
        return None
    found = part(targets, graph.waits(wanted, {}))
    used = {key.kind for key in wanted}
    needed, left = set[str](), {key.kind for key in found.keys} if found else set()
    while left:
        kind = left.pop()
        needed.add(kind)
        left |= (used & {*named(kind)}) - needed
    return frozenset(needed)


def _no_target(key: Key, before: Before) -> Problem:
    alike = [other for other in before if other.kind == key.kind] or list(before)
    return Problem(
        f"there is no {key} to target",
        "--target",
        "the site does not have it, and no object has the site's mark for it",
        nearest(str(key), map(str, alike)),
    )


def only(found: Plan, keys: frozenset[Key], places: Collection[str] = ()) -> Plan:
    """The plan for `keys` only, with their problems and unreadable resources, and unreadable kinds among
    `places`.
    """
    items = tuple(replace(item, waits_for=(), because={}) for item in found.items if item.key in keys)
    problems = tuple(p for p in found.problems if any(p.what.startswith(f"{key}:") for key in keys))
    unreadable = {
        where: why
        for where, why in found.unreadable.items()
        if where in {str(key) for key in keys} or where.partition("/")[0] in places
    }
    return replace(found, items=items, problems=problems, unreadable=unreadable, stale={}, warnings=())


def adopting_all(
    found: Plan, site: Site, observed: ObservedState, kinds: Kinds, places: Collection[str] = ()
) -> Plan:
    """The plan limited to what an adoption of all takes. What can't be read is left out, and named."""
    limited = only(found, unmarked(found, observed, kinds), places)
    own = [key for key in site.resources if not isinstance(kinds[key.kind], Source)]
    known = {*map(str, own), *(key.kind for key in own)}
    left = {at: why for at, why in found.unreadable.items() if at in known and at not in limited.unreadable}
    warnings = (
        Warned(
            Problem(
                f"{at}: it is not adopted, as it can't be read", why=why, next="adopt it once it can be read"
            )
        )
        for at, why in sorted(left.items())
    )
    return replace(limited, warnings=(*limited.warnings, *warnings))


def unmarked(found: Plan, observed: ObservedState, kinds: Kinds) -> frozenset[Key]:
    """What an adoption of all takes: objects without a mark, and settings that are as the site says. Settings
    that differ are nobody's yet: an apply sets them.
    """
    differ = {item.key for item in found.items if any(each.field != UNFINISHED for each in item.changes)}
    return frozenset(
        key
        for key, state in observed.states.items()
        if state.mark is None
        and not isinstance(kinds[key.kind], Source)
        and (kinds[key.kind].managed or key not in differ)
    )


def adopting(found: Plan, keys: frozenset[Key], site: Site, observed: ObservedState, kinds: Kinds) -> Plan:
    """The plan limited to what is adopted."""
    limited = only(found, keys)
    if limited.problems or limited.unreadable:
        return limited
    return replace(
        limited,
        problems=tuple(
            problem for key in sorted(keys, key=str) if (problem := _nothing(key, site, observed, kinds))
        ),
    )


def _nothing(key: Key, site: Site, observed: ObservedState, kinds: Kinds) -> Problem | None:
    """Return why the resource can't be adopted, or None."""
    if key not in site.resources:
        near = nearest(str(key), map(str, site.resources))
        return Problem(
            f"the site has no {key}",
            why="an adoption marks the object of one of the site's resources",
            next=near or "add it to the site",
        )
    if not kinds[key.kind].managed:
        return Problem(
            f"{key} needs no adoption", site.place(key) or "", "bfinfra only reads it", "bfinfra apply SITE"
        )
    if key not in observed.states:
        return Problem(
            f"there is no {key} yet",
            site.place(key) or "",
            "no object has its name",
            "create it with: bfinfra apply SITE",
        )
    return None
