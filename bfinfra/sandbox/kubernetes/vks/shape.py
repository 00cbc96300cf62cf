"""Reads a stored cluster of a class: its pools, each with the nodes that it will have."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from bfinfra.sandbox.kubernetes.objects import Object, dig
from bfinfra.sandbox.kubernetes.tanzu_shapes import (
    CLUSTER,
    CLUSTER_API,
    CONTROL_PLANE,
    Pool,
    Shape,
    legacy,
    variables,
)

OS_IMAGE = "run.tanzu.vmware.com/resolve-os-image"
LEAST, MOST = (f"cluster.x-k8s.io/cluster-api-autoscaler-node-group-{each}-size" for each in ("min", "max"))
OWN = ("vmClass", "storageClass", "volumes")


def bounds(pool: Object) -> tuple[int, int] | None:
    """Between how many nodes an autoscaler chooses; None where it doesn't."""
    notes = dig(pool, "metadata", "annotations", default={})
    return (int(notes[LEAST]), int(notes[MOST])) if LEAST in notes and MOST in notes else None


def _pools(thing: Object) -> Iterator[Pool]:
    topology = thing["spec"]["topology"]
    values = variables(topology.get("variables"))
    control_plane = topology.get("controlPlane") or {}
    yield _pool(CONTROL_PLANE, control_plane, values, topology)
    for each in dig(topology, "workers", "machineDeployments", default=[]):
        yield _pool(each["name"], each, values, topology)


def _pool(name: str, nodes: Object, values: Mapping[str, object], topology: Object) -> Pool:
    own = {**values, **variables(dig(nodes, "variables", "overrides"))}
    limits = bounds(nodes)
    rest = {key: value for key, value in own.items() if key not in OWN}
    os = dig(nodes, "metadata", "annotations", OS_IMAGE)
    rolling = dig(nodes, "strategy", "rollingUpdate", default={})
    node = own.get("node") or {}
    return Pool(
        name,
        nodes.get("replicas", limits[0] if limits else 0),
        own.get("vmClass", ""),
        own.get("storageClass", ""),
        own.get("volumes"),
        rest=json.dumps([topology.get("class"), os, rest, nodes.get("failureDomain")], sort_keys=True),
        surge=rolling.get("maxSurge", 1) not in (0, "0%"),
        labels=tuple(sorted((node.get("labels") or {}).items())),
        taints=tuple(json.dumps(each) for each in node.get("taints") or []),
    )


VKS = Shape(
    CLUSTER_API,
    CLUSTER.finalizer,
    _pools,
    lambda thing: str(dig(thing, "spec", "topology", "version", default="")).replace("---", "+"),
    CLUSTER.status,
    lambda thing: str(dig(thing, "status", "phase", default="")),
    holds=lambda thing: not legacy(thing),
)
