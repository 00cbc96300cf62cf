"""Reads a workload cluster's nodes and contents, and runs the calls that create, change and
delete a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bfinfra.backends.words import safe
from bfinfra.kinds.supervisor.base.cluster_steps import Create, Delete, Update, Wait
from bfinfra.kinds.supervisor.base.upgrade import numbers
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.errors import RemoteError
from bfinfra.model.mark import Mark
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Clusters

READY = "ready"
Fields = Mapping[str, Any]


def nodes(clusters: Clusters, endpoint: Endpoint, version: str) -> dict[str, str]:
    """Node → `ready`, or what it lacks, as the cluster itself reports it; "" → why it can't be read."""
    try:
        return nodes_of(clusters.at(endpoint).list("v1", "Node"), version)
    except RemoteError as error:
        return {"": f"its nodes can't be read: {error.problems[0].what}"}


def contents(clusters: Clusters, endpoint: Endpoint, mark: Mark | None) -> tuple[str, ...]:
    """Other people's objects in a cluster that would be deleted."""
    try:
        return clusters.at(endpoint).unmanaged(mark.site if mark else "")
    except RemoteError as error:
        why = "; ".join(filter(None, (error.problems[0].what, error.problems[0].why)))
        return (f"its contents, which can't be read ({why})",)


def run(clusters: Clusters, step: Step, kind: Callable[[str], str]) -> None:
    """Runs one step, in at most one call. `kind`: of the object that is a cluster in an API."""
    match step:
        case Create(home=Endpoint() as home, manifest=Mapping() as manifest):
            clusters.at(home).create(manifest)
        case Update(home=home, manifest=Mapping() as manifest):
            # The plan showed each field that another writer changed, and applying the plan confirms the
            # change.
            clusters.at(home).apply(manifest, force=True)
        case Delete(home=home, name=name, namespace=namespace, api=api):
            clusters.at(home).delete(api, kind(api), name, home.namespace or namespace)
        case Wait():
            pass  # the engine waits until it is ready
        case _:
            raise AssertionError(step)


def nodes_of(objects: list[dict[str, Any]], version: str) -> dict[str, str]:
    """Node → `ready`, or what it lacks. A node of another version is not ready."""
    return {obj["metadata"]["name"]: _node(obj, numbers(version)) for obj in objects}


def _node(obj: Fields, wanted: tuple[int, ...]) -> str:
    status = obj.get("status") or {}
    runs = str((status.get("nodeInfo") or {}).get("kubeletVersion") or "")
    if numbers(runs)[: len(wanted)] != wanted:
        return f"a node runs {safe(runs, 40)}"
    up = any(
        c.get("type") == "Ready" and c.get("status") == "True"
        for c in status.get("conditions") or ()
        if isinstance(c, dict)
    )
    return READY if up else "a node is not ready"
