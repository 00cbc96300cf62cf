"""Deletes objects: preconditions, finalizers, propagation; what is deleted at once and what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.kubernetes.errors import conflict, forbidden
from bfinfra.sandbox.kubernetes.objects import Object, copied, dig, name_of, namespace_of, stamp, uid_of
from bfinfra.sandbox.kubernetes.registry import Resource
from bfinfra.sandbox.kubernetes.target import Options, Target
from bfinfra.sandbox.kubernetes.writes import Writer

if TYPE_CHECKING:
    from bfinfra.sandbox.kubernetes.admission import AdmittingCluster

RETURNED = {
    "pods",
    "services",
    "persistentvolumeclaims",
    "persistentvolumes",
    "namespaces",
    "serviceaccounts",
    "resourcequotas",
}
"""Resources whose delete answers the object instead of a Status."""
KEPT_NAMESPACES = ("default", "kube-system", "kube-public")
PROPAGATION = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


def delete(cluster: AdmittingCluster, target: Target, wanted: Any, options: Options) -> Object:
    """Delete one object; what the server answers. `wanted` are the DeleteOptions."""
    resource, wanted = target.resource, wanted or {}
    with cluster.store.lock:
        stored = Writer(cluster).found(target)
        _preconditions(resource, stored, wanted.get("preconditions") or {})
        if resource.key == ("", "namespaces") and target.name in KEPT_NAMESPACES:
            raise forbidden("namespaces", "", target.name, "this namespace may not be deleted")
        cluster.admit_delete(target, stored, options)
        marked = _marked(cluster, resource, stored, wanted)
        left = (
            marked["metadata"].get("finalizers")
            or dig(marked, "spec", "finalizers")
            or cluster.lingers(resource, marked)
        )
        if options.dry_run:
            return _answer(resource, marked if left else stored, gone=not left)
        if not left:
            return _answer(
                resource, cluster.store.remove(resource.key, namespace_of(stored), name_of(stored)), gone=True
            )
        if stored["metadata"].get("deletionTimestamp"):
            return resource.read(stored)
        return resource.read(cluster.store.put(resource.key, marked))


def _preconditions(resource: Resource, stored: Object, wanted: Object) -> None:
    uid, version = wanted.get("uid"), wanted.get("resourceVersion")
    if uid and uid != uid_of(stored):
        why = (
            f"the UID in the precondition ({uid}) does not match the UID in record ({uid_of(stored)}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(resource.kind, resource.group, name_of(stored), why)
    if version and version != stored["metadata"]["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in "
            "record "
            f"({stored['metadata']['resourceVersion']}). The object might have been modified"
        )
        raise conflict(resource.kind, resource.group, name_of(stored), why)


def _marked(cluster: AdmittingCluster, resource: Resource, stored: Object, wanted: Object) -> Object:
    marked: Object = copied(stored)
    metadata = marked["metadata"]
    finalizer = PROPAGATION.get(wanted.get("propagationPolicy") or "")
    if finalizer and finalizer not in metadata.setdefault("finalizers", []):
        metadata["finalizers"].append(finalizer)
    if "deletionTimestamp" not in metadata:
        grace = wanted.get("gracePeriodSeconds")
        if resource.kind == "Pod":
            grace = (
                dig(stored, "spec", "terminationGracePeriodSeconds", default=30) if grace is None else grace
            )
        metadata["deletionTimestamp"] = stamp(cluster.clock.now() + (grace or 0))
        if resource.key != ("", "namespaces"):
            metadata["deletionGracePeriodSeconds"] = grace or 0
        if "generation" in metadata:
            metadata["generation"] += 1
    elif (shorter := wanted.get("gracePeriodSeconds")) is not None and shorter < metadata.get(
        "deletionGracePeriodSeconds", 0
    ):
        metadata |= {
            "deletionGracePeriodSeconds": shorter,
            "deletionTimestamp": stamp(cluster.clock.now() + shorter),
        }
    if resource.key == ("", "namespaces"):
        marked["status"] = {**marked.get("status", {}), "phase": "Terminating"}
    return marked


def _answer(resource: Resource, thing: Object, *, gone: bool) -> Object:
    if not gone or (resource.plural in RETURNED and not resource.custom):
        return resource.read(thing)
    details = {"name": name_of(thing), "group": resource.group, "kind": resource.plural, "uid": uid_of(thing)}
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {key: value for key, value in details.items() if value},
    }
