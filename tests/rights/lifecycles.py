"""A life that needs every right that a kind asks for: made, changed in every way, driven apart by others,
mended, deleted.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import kinds.lifecycle as life
from rights.given import POC, Site, administrator, other, paths
from rights.life import Life, life_of
from rights.others import take_labels_off
from torture.watching import watching

from bfinfra.kinds import kind, names
from bfinfra.kinds.cluster.mpi_operator.definition import definition
from bfinfra.model.errors import BfinfraError
from bfinfra.model.rights import Privileges, Rights, Use
from bfinfra.sandbox import Running

BEGUN = 1.0  # seconds after the first report, within which each refused watch is reported


class Refused(Exception):
    """bfinfra ended with a problem; its words."""


def planned(site: Site, sandbox: Running, *, destroy: bool = False) -> None:
    """A plan that sees everything. Refused."""
    try:
        found = life.plan(site.path(), sandbox, destroy=destroy)
    except BfinfraError as error:
        raise Refused(str(error)) from None
    if found.problems or found.unreadable:
        raise Refused("; ".join([*map(str, found.problems), *found.unreadable.values()]))


def applied(site: Site, sandbox: Running, **how: Any) -> None:
    """An apply that ends well. Refused."""
    try:
        found = life.apply(site.path(), sandbox, **how)
    except BfinfraError as error:
        raise Refused(str(error)) from None
    if not life.made(found):
        raise Refused("; ".join(life.endings(found).values()))


def followed(site: Site, sandbox: Running) -> None:
    """A watch that sees everything as it happens. Refused."""
    try:
        with watching(site.path(), sandbox, interval=3600) as heard:
            time.sleep(BEGUN)
    except BfinfraError as error:
        raise Refused(str(error)) from None
    assert heard.last
    if heard.refused or heard.last.unreadable or heard.last.problems:
        raise Refused(
            "; ".join([*heard.refused, *heard.last.unreadable.values(), *map(str, heard.last.problems)])
        )


def needed(site: Site, sandbox: Running, use: Use) -> Rights:
    """What is printed for the site before and after its changes: who moves a server needs its old
    place, too.
    """
    first = site.rights(sandbox, use)
    changes = life_of(site.kind).changes
    if use is not Use.APPLY or not changes:
        return first
    then = site.but(*changes).rights(sandbox, use)
    entities = {
        each: tuple({*first.entities.get(each, ()), *then.entities.get(each, ())})
        for each in {**first.entities, **then.entities}
    }
    return replace(first, entities=entities, apis={**first.apis, **then.apis})


def lived(site: Site, sandbox: Running, use: Use, given: Callable[[], None], *, whole: bool = True) -> None:
    """All that a use is for; unless it is the `whole` of it, nothing is changed after it was made. `given`:
    gives the account its rights, once what others do first is done. Refused.
    """
    if "\nkubernetes_cluster:" in site.text and "\nmpi_operator:" not in site.text:
        other(sandbox).call(
            "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition("v2beta1")
        )  # a survey lists what the cluster serves
    own = life_of(site.kind)
    if own.prepare:
        own.prepare(sandbox, use)
    made = use in (Use.DESTROY, Use.WATCH)
    if made or (use is Use.PLAN and (own.reads_inside or site.kind == POC)):
        applied_by_the_administrator(site, sandbox)
        disturb(own, sandbox, use)
    given()
    if use is Use.PLAN:
        planned(site, sandbox)
    elif use is Use.WATCH:
        followed(site, sandbox)
    elif use is Use.DESTROY:
        destroyed(site, sandbox)
    else:
        applied(site, sandbox, adopt=own.adopted)
        if not whole:
            return
        changed = site.but(*own.changes)
        applied(changed, sandbox)
        for drift in own.drifts:
            drift(sandbox)
            applied(changed, sandbox)


def disturb(own: Life, sandbox: Running, use: Use) -> None:
    """What somebody does before a plan, or a destroy."""
    if use is Use.PLAN and own.before_plan:
        own.before_plan(sandbox)
    if own.hidden and use is not Use.WATCH:
        take_labels_off(sandbox, *own.hidden, records=use is Use.PLAN)


def destroyed(site: Site, sandbox: Running) -> None:
    """Destroy it; once more where its notes are the last ones. Refused."""
    elsewhere = noted_elsewhere(sandbox, "of another site") if site.kind != POC else []
    applied(site, sandbox, destroy=True)
    if elsewhere:
        noted_elsewhere(sandbox, "")
        applied_by_the_administrator(site, sandbox)
        applied(site, sandbox, destroy=True)


def applied_by_the_administrator(site: Site, sandbox: Running) -> None:
    found = life.apply(
        Site.of(site.kind, site.folder / "first")
        .by(sandbox.clients["GOVC_USERNAME"], "other.kubeconfig")
        .path(),
        sandbox,
    )
    assert life.made(found), life.endings(found)


def taken(site: Site, sandbox: Running, use: Use) -> set[str]:
    """What the steps of a life without changes take, and looking: a privilege's id, or `verb resource`."""
    destroy, found = use is Use.DESTROY, set[str]()
    if destroy:
        applied_by_the_administrator(site, sandbox)
    steps = [
        step
        for item in life.plan(
            site.by(sandbox.clients["GOVC_USERNAME"], "other.kubeconfig").path(), sandbox, destroy=destroy
        ).pending
        for step in item.steps
    ]
    sandbox.reset()
    for right in [r for step in steps if use in (Use.APPLY, Use.DESTROY) for r in step.rights] + [
        r for name in names() for r in (*kind(name).survey_privileges, *kind(name).resource_privileges)
    ]:
        found |= (
            {*right.names}
            if isinstance(right, Privileges)
            else {f"{verb} {resource}" for verb in right.verbs for resource in right.resources}
        )
    return found


def noted_elsewhere(sandbox: Running, text: str) -> list[str]:
    """Somebody uses the same custom attributes on other objects; which."""
    found = []
    with administrator(sandbox) as si:
        manager, there = si.content.customFieldsManager, paths(si).values()
        for each in [field for field in manager.field if field.name.startswith("bfinfra.")]:
            others = [
                ref
                for ref in there
                if type(ref) is each.managedObjectType
                and not any(v.key == each.key and v.value.startswith("bfinfra:") for v in ref.customValue)
            ]
            for ref in others:
                manager.SetField(ref, each.key, text)
            found += [each.name] if others else []
    return found
