"""Reads what a rendering needs to know of a cluster, and the objects of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from bfinfra.backends.helm import Capabilities
from bfinfra.backends.kubernetes.errors import NotServed
from bfinfra.backends.kubernetes.marks import ours
from bfinfra.kinds.cluster.base.objects import Object, Place, place_of
from bfinfra.kinds.cluster.base.rendered.objects import DEFINITION, EXTENSIONS, Id, group_of
from bfinfra.kinds.cluster.base.rendered.rendering import Namespaced, Rendering
from bfinfra.model.errors import Missing

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

DEFINING = f"{EXTENSIONS}/v1"
Types = dict[tuple[str, str], str]
"""Group and kind → apiVersion."""


def capabilities(client: ClusterClient, asked: Sequence[str]) -> Capabilities:
    """The cluster's version, and those of the APIs asked for that it serves."""
    return Capabilities(client.version(), tuple(each for each in asked if _has(client, each)))


def _has(client: ClusterClient, api: str) -> bool:
    """Return whether it serves `v1`, `apps/v1`, `v1/Pod` or `apps/v1/Deployment`, as Helm writes APIs."""
    group, _, rest = api.partition("/")
    version, _, kind = rest.partition("/")
    if not rest:
        return api == "v1"
    if not kind and group != "v1":
        return version in client.versions(group)
    return client.serves("v1", version) if group == "v1" else client.serves(f"{group}/{version}", kind)


def scopes(client: ClusterClient | None) -> Namespaced:
    """Return whether objects of a defined type have namespaces. A cluster that isn't there may define
    everything.
    """
    known: dict[tuple[str, str], bool] = {}

    def scope(api_version: str, kind: str) -> bool | None:
        if client is None:
            return True
        if not known:
            known["", ""] = True
            for each in client.list(DEFINING, DEFINITION[1]):
                spec = each["spec"]
                known[spec["group"], spec["names"]["kind"]] = spec["scope"] != "Cluster"
        return known.get((group_of(api_version), kind))

    return scope


def types(noted: Sequence[str], rendering: Rendering | None) -> Types:
    """The types to list: those of the record, and of the rendering in its own versions."""
    found: Types = {}
    for each in noted:
        api, _, kind = each.partition(" ")
        found[group_of(api), kind] = api
    return found | (rendering.apis if rendering else {})


def places(rendering: Rendering | None, noted: Iterable[Id], of: tuple[str, str]) -> list[Place]:
    """The places that the rendering wants objects of a type in, and those that the record notes."""
    known = {*(rendering.objects if rendering else ()), *noted}
    return [(each.namespace, each.name) for each in sorted(known) if each.type == of]


def in_a_served_version(
    client: ClusterClient, api: str, read: Callable[[str], list[Object]]
) -> tuple[str, list[Object]]:
    """The version in which the cluster still has a type, and what `read` returns for it; () if it is gone."""
    try:
        return api, read(api)
    except NotServed:
        group = group_of(api)
    for version in client.versions(group) if group else ():
        try:
            return f"{group}/{version}", read(f"{group}/{version}")
        except NotServed:
            continue
    return api, []


def inside(client: ClusterClient, objects: Sequence[Object], site: str) -> Iterator[str]:
    """Objects that the site did not make, and that go with its definitions and namespaces."""
    for each in objects:
        if each["kind"] == "Namespace":
            yield from client.unmanaged(site, each["metadata"]["name"])
        elif each["kind"] == DEFINITION[1]:
            yield from _instances(client, each, site)


def _instances(client: ClusterClient, definition: Object, site: str) -> Iterator[str]:
    spec = definition["spec"]
    served = next((each["name"] for each in spec["versions"] if each.get("served")), "")
    try:
        found = client.list(f"{spec['group']}/{served}", spec["names"]["kind"]) if served else []
    except Missing:  # it is not served yet, or was just deleted
        return
    for obj in found:
        if not ours(obj, site) and not obj["metadata"].get("ownerReferences"):
            yield f"{spec['names']['kind']} {'/'.join(part for part in place_of(obj) if part)}"
