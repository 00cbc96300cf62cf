"""The steps of a namespace, and a check of the accounts in its access list."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from bfinfra.backends.vcenter.directory import Found
from bfinfra.backends.vcenter.namespaces import Catalog, Grant, Settings
from bfinfra.kinds.named import ambiguous
from bfinfra.kinds.supervisor.supervisor_namespace.spec import Access, Spec
from bfinfra.kinds.supervisor.supervisor_namespace.state import State, SupervisorNamespaceFacts
from bfinfra.kinds.supervisor.supervisor_namespace.steps import Create, Delete, Move, Update
from bfinfra.model import compare
from bfinfra.model.compare import Change
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.context import PlanContext
from bfinfra.model.errors import Refusal
from bfinfra.model.mark import Mark, above
from bfinfra.model.step import Step
from bfinfra.model.suggest import nearest
from bfinfra.model.units import bytes_text, megahertz_text

OWN = "vmware-system"
"""The prefixes of vSphere's own namespaces."""
MADE = ("vm_class", "content_library", "storage_policy", "supervisor")


def decide(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
    """The steps: create, change, delete; replace if the vSphere cluster changes."""
    if spec is None:
        return () if state is None or state.going else (Delete(name=name),)
    _check(name, spec, context)
    create = Create(
        name=name,
        cluster=spec.cluster,
        settings=_settings(spec, context.mark, None),
        changes=compare.differences(None, spec.applied()),
    )
    if state is None or state.going:
        return (create,)
    if spec.cluster != state.cluster:
        return Move(name=name, changes=(Change("cluster", state.cluster, spec.cluster),)), create
    settings = _settings(spec, context.mark, state)
    found = compare.changes(spec, state.mark, _drift(spec, state, settings))
    return (Update(name=name, settings=settings, changes=found),) if found else ()


def unknown(at: Spot, entry: Access, found: Found | str | None) -> Iterator[Conflict]:
    """Yield the mistakes in an account. `found`: what vCenter has of this name, None if the account has
    access already.
    """
    what, other = ("group", "user") if entry.group else ("user", "group")
    if isinstance(found, str):
        yield Conflict(
            at,
            f"vCenter doesn't say whether there is a {what} {entry.account}",
            why=found,
            next="check it in vCenter",
            stops=False,
        )
    elif found is not None and getattr(found, other) and not getattr(found, what):
        yield Conflict(
            at,
            f"{entry.account} is a {other}",
            why=f"there is no {what} of this name",
            next=f"write: {other}: {entry.account}",
        )
    elif found is not None and not getattr(found, what):
        yield Conflict(
            at,
            f"there is no {what} {entry.account}",
            why="none of vCenter's directories knows it",
            next=nearest(entry.account, found.groups if entry.group else found.users),
        )


def _settings(spec: Spec, mark: Mark, state: State | None) -> Settings:
    now, was = (state.settings.description, state.mark) if state else (None, None)
    return Settings(
        description=compare.description(spec, now, mark.committed(spec.applied()), was),
        cpu=spec.limits.cpu,
        memory=spec.limits.memory,
        total_storage=spec.limits.storage,
        storage=dict(sorted(spec.storage.items())),
        access=tuple(
            sorted(Grant(entry.account, entry.group is not None, entry.role) for entry in spec.access)
        ),
        vm_classes=tuple(sorted(spec.vm_classes)),
        libraries=tuple(sorted(spec.content_libraries)),
        zones=tuple(sorted(spec.zones)),
        reserved=dict(sorted(spec.reserved.items())),
    )


def view(settings: Settings) -> dict[str, object]:
    """The settings as a site writes them, without what isn't limited."""
    shown = _view(settings)
    limits = {what: value for what, value in shown["limits"].items() if value is not None}
    return {**shown, "limits": limits, "storage": dict(settings.storage)}


def _view(settings: Settings) -> dict[str, Any]:
    """The settings as a site writes them."""
    return {
        "description": above(settings.description),
        "limits": {
            "cpu": settings.cpu and megahertz_text(settings.cpu),
            "memory": settings.memory and bytes_text(settings.memory),
            "storage": settings.total_storage and bytes_text(settings.total_storage),
        },
        "storage": {
            name: "no limit" if limit is None else bytes_text(limit)
            for name, limit in settings.storage.items()
        },
        "access": [
            {"group" if grant.group else "user": grant.account, "role": grant.role}
            for grant in settings.access
        ],
        "vm_classes": list(settings.vm_classes),
        "content_libraries": list(settings.libraries),
        "zones": list(settings.zones),
    }


def _drift(spec: Spec, state: State, wanted: Settings) -> Sequence[Change]:
    """The differences in what the site says. vCenter may add the creator to the access list by itself, which
    is no difference, and stays.
    """
    accounts = {(grant.account, grant.group) for grant in wanted.access}
    access = tuple(
        grant
        for grant in sorted({*state.settings.access})
        if grant.account != state.creator or (grant.account, grant.group) in accounts
    )
    return compare.drift(spec, state.mark, _view(replace(state.settings, access=access)), _view(wanted))


def _check(name: str, spec: Spec, context: PlanContext) -> None:
    """Raises Refusal for what vCenter would refuse, or accept and never grant. What this site creates first
    counts as existing.
    """
    catalog: Catalog = context.facts.catalog
    made = {
        kind: {
            need.key.name
            for need in context.needs.values()
            if need.key.kind == kind and need.spec is not None
        }
        for kind in MADE
    }
    if spec.cluster not in catalog.supervisors and spec.cluster not in made["supervisor"]:
        raise ambiguous("cluster", spec.cluster, "cluster", catalog.supervisors) or Refusal(
            f"no supervisor runs on a cluster {spec.cluster}",
            field="cluster",
            why="a namespace needs a supervisor",
            next=nearest(spec.cluster, catalog.supervisors),
        )
    _known("storage policy", "storage", spec.storage, {*catalog.policies, *made["storage_policy"]})
    _known("VM class", "vm_classes", spec.vm_classes, {*catalog.vm_classes, *made["vm_class"]})
    _known(
        "content library",
        "content_libraries",
        spec.content_libraries,
        {*catalog.libraries, *made["content_library"]},
    )
    _zoned(spec, context.facts, catalog)
    if name.startswith(OWN):
        raise Refusal(f"names that begin with {OWN} are vSphere's own", next="choose another name")
    for policy, limit in spec.storage.items():
        if limit is not None and spec.limits.storage is not None and limit > spec.limits.storage:
            raise Refusal(
                (
                    f"{bytes_text(limit)} of {policy} is more than the namespace's limit of "
                    f"{bytes_text(spec.limits.storage)}"
                ),
                field=f"storage.{policy}",
                next="raise limits.storage, or lower this",
            )


def _known(what: str, where: str, names: Iterable[str], known: Collection[str]) -> None:
    for index, name in enumerate(names):
        if name not in known:
            raise Refusal(
                f"there is no {what} {name}",
                field=f"{where}.{name if where == 'storage' else index}",
                next=nearest(name, known),
            )


def _zoned(spec: Spec, facts: SupervisorNamespaceFacts, catalog: Catalog) -> None:
    """Raises Refusal for a zone that does not exist."""
    if spec.zones and not catalog.zones:
        raise Refusal(
            "this vCenter's namespaces have no zones",
            field="zones",
            why="they have them from 9.0",
            next="remove zones and reserved, or update vCenter",
        )
    known = facts.zones.get(spec.cluster, ())
    for index, zone in enumerate(spec.zones if known else ()):
        if zone not in known:
            raise Refusal(
                f"the supervisor on {spec.cluster} has no zone {zone}",
                field=f"zones.{index}",
                next=nearest(zone, known),
            )
