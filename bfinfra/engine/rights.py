"""The rights that a site needs: the kinds' declarations, merged by object and by API. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bfinfra.engine.graph import resolve
from bfinfra.model.context import ResolvedRef
from bfinfra.model.kind import Kind
from bfinfra.model.refs import Key, kinds_named
from bfinfra.model.rights import (
    API,
    CLUSTERS,
    DATACENTER_FOLDERS,
    READ,
    ROOT,
    VCENTER,
    Api,
    Entity,
    Place,
    PrivilegePlaces,
    Privileges,
    Right,
    Rights,
    Rule,
    Use,
    Verb,
)
from bfinfra.model.site import Site

Kinds = Mapping[str, type[Kind[Any, Any]]]
Granted = tuple[Right, Place]


def needed(site: Site, kinds: Kinds, uses: Iterable[Use]) -> Rights:
    """All rights for these uses. Every use reads, so reading is always included."""
    wanted = tuple(dict.fromkeys(uses))
    follows = Use.WATCH in wanted
    entities: dict[Entity, set[str]] = {ROOT: set(READ)} if site.vcenter else {}
    apis: dict[Api, dict[Verb, None]] = {}
    for right, place in _granted(site, kinds, wanted):
        if isinstance(right, Privileges) and isinstance(place, Entity):
            entities.setdefault(_settable(place, _datacenter(site)), set()).update(right.names)
        elif isinstance(place, Api) and not isinstance(right, Privileges):
            apis.setdefault(place, {}).update(
                dict.fromkeys(
                    Verb(r, verb, right.optional) for r in right.resources for verb in _verbs(right, follows)
                )
            )
    found = _without_covered({api: tuple(verbs) for api, verbs in apis.items()})
    return Rights(
        site.name,
        wanted,
        {e: tuple(sorted(entities[e])) for e in sorted(_merged(entities))},
        {a: tuple(sorted(found[a])) for a in sorted(found, key=str)},
    )


def _verbs(right: Rule, follows: bool) -> tuple[str, ...]:
    """Return the verbs of a rule. What is listed can be watched: the server shows nothing more by it."""
    return (*right.verbs, "watch") if follows and "list" in right.verbs else right.verbs


def places(site: Site, kinds: Kinds) -> dict[Key, PrivilegePlaces]:
    """For each resource, the places that the words in its kind's rights stand for."""
    datacenter = _datacenter(site)
    found = {}
    for key, spec in site.resources.items():
        needs = {
            at: ResolvedRef(other, site.resources.get(other), None)
            for at, other in resolve(spec, site.resources).items()
        }
        found[key] = kinds[key.kind].places(key.name, spec, needs, datacenter)
    return found


def _datacenter(site: Site) -> str:
    return ((site.vcenter and site.vcenter.datacenter) or "*").strip("/")


def _granted(site: Site, kinds: Kinds, uses: tuple[Use, ...]) -> Iterator[Granted]:
    where = places(site, kinds)
    for kind in kinds.values():
        clusters: list[Place] = [
            place
            for key, words in where.items()
            if key.kind in kinds_named(kind.Spec)
            for place in words.get(API, ())
        ]
        everywhere: dict[str, list[Place]] = {VCENTER: [ROOT] if site.vcenter else [], CLUSTERS: clusters}
        for right in kind.survey_privileges:
            yield from ((right, place) for place in everywhere[right.on])
    for key, words in where.items():
        kind = kinds[key.kind]
        own = (
            right for use, right in kind.own_rights(key.name, site.resources[key]) if use in _with_plan(uses)
        )
        for right in (*_rights_of(kind, uses), *own):
            yield from ((right, place) for place in words.get(right.on, ()))


def _rights_of(kind: type[Kind[Any, Any]], uses: tuple[Use, ...]) -> Iterator[Right]:
    """The rights that one resource of this kind needs."""
    if set(uses) & {Use.PLAN, Use.WATCH, Use.APPLY}:
        yield from kind.resource_privileges
    for step in kind.step_types:
        if set(uses) & set(step.uses):
            yield from step.rights


def _with_plan(uses: tuple[Use, ...]) -> tuple[Use, ...]:
    """The uses; with a watch also that of a plan, as both read the same."""
    return (*uses, Use.PLAN) if Use.WATCH in uses else uses


def _settable(entity: Entity, datacenter: str) -> Entity:
    """Return where a permission for it is set: a datacenter's own folders and a cluster's root pool have
    those of their parent, and vCenter takes none for them (vSphere API, AuthorizationManager).
    """
    parent, _, name = entity.path.rpartition("/")
    if entity.type == "Folder" and parent == f"/{datacenter}" and name in DATACENTER_FOLDERS:
        return Entity(parent, "Datacenter", entity.propagate)
    if entity.type == "ResourcePool" and name == "Resources" and not parent.endswith("/Resources"):
        return Entity(parent, "ClusterComputeResource", entity.propagate)
    return entity


def _merged(entities: dict[Entity, set[str]]) -> dict[Entity, set[str]]:
    """The privileges of each object, with and without propagation merged: an account has one permission on
    an object.
    """
    for entity in [each for each in entities if not each.propagate]:
        wide = Entity(entity.path, entity.type, propagate=True)
        if wide in entities:
            entities[wide] |= entities.pop(entity)
    return entities


def _without_covered(apis: Mapping[Api, tuple[Verb, ...]]) -> dict[Api, tuple[Verb, ...]]:
    """The verbs of each API, without those that a wider place grants as well."""
    wider = {
        api: {
            verb
            for other, verbs in apis.items()
            if _within(api, other)
            for verb in verbs
            if not verb.optional
        }
        for api in apis
    }
    found = {api: tuple(verb for verb in verbs if verb not in wider[api]) for api, verbs in apis.items()}
    return {api: verbs for api, verbs in found.items() if verbs}


def _within(api: Api, other: Api) -> bool:
    """Return whether `other` is wider than `api`: all namespaces, all names, or more names."""
    names, others = {*api.names}, {*other.names}
    fits = other.namespace in ("", api.namespace) and (not others or (bool(names) and names <= others))
    same = api.namespace == other.namespace and names == others  # whatever their order
    return api.cluster == other.cluster and fits and not same
