"""Finds the fields of a TanzuKubernetesCluster that its supervisor doesn't support: an older one drops
volumes and authorities without an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bfinfra.kinds.supervisor.tanzu_cluster.forms import FORMS, TANZU
from bfinfra.kinds.supervisor.tanzu_cluster.manifest import Fields, at
from bfinfra.kinds.supervisor.tanzu_cluster.spec import Spec
from bfinfra.kinds.supervisor.tanzu_cluster.state import State
from bfinfra.model.conflict import Conflict, Spot
from bfinfra.model.errors import Forbidden, Missing, Refusal
from bfinfra.model.refs import Key

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

DEFINITION = (
    "apiextensions.k8s.io/v1",
    "CustomResourceDefinition",
    "tanzukubernetesclusters.run.tanzu.vmware.com",
)
RESOURCE = "customresourcedefinitions.apiextensions.k8s.io"
PLACES = {
    "control_plane.volumes": ("topology", "controlPlane", "volumes"),
    "trust": ("settings", "network", "trust"),
}
"""Field of a site → its path in the spec."""
POOLS = {"workers": ("topology", "workers", "volumes"), "nodePools": ("topology", "nodePools", "volumes")}
OPEN = "x-kubernetes-preserve-unknown-fields"


def unproved(spec: Spec, state: State | None) -> tuple[str, ...]:
    """The fields that the spec uses, that some supervisors don't know, and that the live cluster doesn't
    have.
    """
    if FORMS[spec.api].kind != TANZU:
        return ()
    now = state.view(spec) if state is not None else {}
    return tuple(field for field in _used(spec) if not _within(now, field))


def undeclared(supervisor: ClusterClient, api: str, fields: tuple[str, ...]) -> frozenset[str] | None:
    """Those of the fields that the definition lacks. One read; None if the supervisor has no such definition
    or doesn't let us read it.
    """
    try:
        found = supervisor.get(*DEFINITION)
    except (Missing, Forbidden):
        return None
    versions = at(found or {}, "spec").get("versions") or ()
    version: Fields = next((each for each in versions if each.get("name") == api.rpartition("/")[2]), {})
    schema = at(at(version, "schema", "openAPIV3Schema"), "properties", "spec")
    if not schema.get("properties"):
        return None
    return frozenset(field for field in fields if not _knows(schema, _place(field, schema)))


def check(spec: Spec, unknown: frozenset[str] | None) -> None:
    """Raises Refusal for fields that the supervisor would drop."""
    for field in _used(spec) if unknown else ():
        if field in (unknown or ()):
            raise Refusal(
                f"the supervisor's {spec.api} doesn't know {field.rpartition('.')[2]} of a {TANZU}",
                field=field,
                why="it would drop the field without an error, and each later apply would write it again",
                next=(
                    "remove the field, write a later api that this supervisor serves, or update the "
                    "supervisor"
                ),
            )


def unchecked(key: Key, spec: Spec) -> Conflict:
    """The warning for a field if the supervisor's definition can't be read."""
    field = next(_used(spec))
    return Conflict(
        Spot(key, field),
        f"it can't be checked whether the supervisor knows {field.rpartition('.')[2]} of a {TANZU}",
        why="a supervisor of 2021 drops it without an error",
        next=f"ask whoever runs it for kubectl get crd {DEFINITION[2]} -o yaml, or allow get {RESOURCE}",
        stops=False,
    )


def _used(spec: Spec) -> Iterator[str]:
    if spec.control_plane.volumes:
        yield "control_plane.volumes"
    for name, pool in spec.workers.items():
        if pool.volumes:
            yield f"workers.{name}.volumes"
    if spec.trust:
        yield "trust"


def _place(field: str, schema: Fields) -> tuple[str, ...]:
    if field in PLACES:
        return PLACES[field]
    pools = at(schema, "properties", "topology", "properties")
    return POOLS["nodePools" if "nodePools" in pools else "workers"]


def _knows(schema: Fields, path: tuple[str, ...]) -> bool:
    for name in path:
        inner = schema.get("items") if isinstance(schema.get("items"), Mapping) else schema
        if inner is None or inner.get(OPEN):
            return True
        below = (inner.get("properties") or {}).get(name)
        if below is None:
            return False
        schema = below
    return True


def _within(now: object, field: str) -> bool:
    for name in field.split("."):
        now = now.get(name) if isinstance(now, Mapping) else None
    return bool(now)
