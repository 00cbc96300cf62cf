"""Describes existing objects as a site: those of a whole vCenter, or a single one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from bfinfra.app import wiring
from bfinfra.app.context import LIVE, RunContext
from bfinfra.app.plan import plan
from bfinfra.formats.shell import word
from bfinfra.kinds import kind as kind_named
from bfinfra.kinds import names as kind_names
from bfinfra.kinds import spec as spec_of
from bfinfra.model.compare import UNFINISHED
from bfinfra.model.errors import BfinfraError, Problem
from bfinfra.model.refs import Key
from bfinfra.model.resource import Spec
from bfinfra.model.site import Site
from bfinfra.model.suggest import nearest

if TYPE_CHECKING:
    from bfinfra.engine.describe import Described, Written


def describable() -> tuple[str, ...]:
    """The kinds whose objects can be described."""
    return tuple(name for name in kind_names() if not kind_named(name).undescribed)


def describe(site: Site, *, only: frozenset[str] = frozenset(), context: RunContext = LIVE) -> Described:
    """All objects of the site's vCenter that a site can describe; with `only`, those kinds and what they
    need. Only reads. Raises BfinfraError if the vCenter can't be entered, or a kind can't be described.
    """
    from bfinfra.engine.describe import asked
    from bfinfra.engine.describe import describe as described

    _check(only)
    names = asked(only or describable(), spec_of)
    with wiring.bound_kinds(site, context, read_only=True) as bound:
        found = described(bound.make(sorted(names)), site, context.retry, only)
        bound.leave()
        return found


def differing(site: Site, specs: Mapping[Key, Spec], *, context: RunContext = LIVE) -> dict[str, str]:
    """Address → the fields that its adoption would change, or why it would be refused. Resources that are up
    to date are left out. Only reads.
    """
    wanted = replace(site, resources={**site.resources, **specs})
    found = plan(wanted, adopt=frozenset(specs), context=context)
    changed = {
        str(item.key): ", ".join(fields)
        for item in found.items
        if item.key in specs
        and (fields := sorted({each.field for each in item.changes if each.field != UNFINISHED}))
    }
    refused = {each.what.partition(": ")[0]: each.what.partition(": ")[2] for each in found.problems}
    known = {*map(str, specs), *(key.kind for key in specs)}
    unreadable = {where: why for where, why in found.unreadable.items() if where in known}
    return {**changed, **{address: why for address, why in refused.items() if why}, **unreadable}


def describe_one(site: Site, key: Key, *, context: RunContext = LIVE) -> Written:
    """One object as the site would describe it. Raises BfinfraError if the site has it already, it does not
    exist, or it can't be described.
    """
    if key in site.resources:
        raise BfinfraError(
            Problem(
                f"the site describes {key} already",
                site.place(key) or "",
                next=f"adopt it with: bfinfra adopt SITE {word(key)}",
            )
        )
    found = describe(site, only=frozenset({key.kind}), context=context)
    if (written := found.resources.get(key)) is not None:
        return written
    if why := dict(found.left_out).get(key):
        raise BfinfraError(Problem(f"{key} can't be described", why=why))
    if error := found.unreadable.get(key.kind):
        raise error
    there = [each.name for each in found.resources if each.kind == key.kind]
    raise BfinfraError(
        Problem(
            f"there is no {key}",
            why="no object has its name",
            next=nearest(key.name, there)
            or f"list the objects with: bfinfra init --from VCENTER --kind {word(key.kind)}",
        )
    )


def _check(only: frozenset[str]) -> None:
    for name in sorted(only):
        if name not in kind_names():
            raise BfinfraError(Problem(f"there is no kind {name}", next=nearest(name, describable())))
        if why := kind_named(name).undescribed:
            raise BfinfraError(
                Problem(
                    f"a {name} can't be described", why=why, next="write it by hand: bfinfra kinds " + name
                )
            )
