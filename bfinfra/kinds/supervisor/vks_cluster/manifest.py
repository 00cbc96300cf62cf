"""Converts a spec to a Cluster object, and back: cluster.x-k8s.io/v1beta2, or v1beta1 where a supervisor
serves only that. Source: Cluster API's Go types.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfinfra.kinds.capabilities import NVIDIA
from bfinfra.kinds.supervisor.base.quantities import quantity, size
from bfinfra.kinds.supervisor.base.upgrade import plus
from bfinfra.kinds.supervisor.base.variables import Schema, typed
from bfinfra.kinds.supervisor.base.words import Fields, Object, at, written
from bfinfra.kinds.supervisor.vks_cluster.spec import Nodes, Spec, Volume, Workers, selector, system

V1BETA2, V1BETA1 = "cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1"
KIND = "Cluster"
OS_IMAGE = "run.tanzu.vmware.com/resolve-os-image"
LEAST, MOST = (f"cluster.x-k8s.io/cluster-api-autoscaler-node-group-{each}-size" for each in ("min", "max"))
GPUS, GPU_TYPE = (f"capacity.cluster-autoscaler.kubernetes.io/gpu-{each}" for each in ("count", "type"))
ACCELERATOR = "cluster-api/accelerator"
"""The label by which the autoscaler knows nodes whose GPUs it has to wait for."""
Schemas = Mapping[str, Schema]
"""Schemas of a class's variables, by name."""


def manifest(name: str, spec: Spec, api: str, schemas: Schemas) -> Object:
    """The object to send. `schemas`: empty where the class's variables are unknown."""
    return {
        "apiVersion": api,
        "kind": KIND,
        "metadata": {"name": name, "namespace": spec.namespace},
        "spec": body(spec, api, schemas),
    }


def body(spec: Spec, api: str, schemas: Schemas) -> Object:
    """The object's spec; what differs between pools is an override of the class's variables."""
    network = written(
        {
            "pods": written({"cidrBlocks": list(spec.network.pods)}),
            "services": written({"cidrBlocks": list(spec.network.services)}),
            "serviceDomain": spec.network.service_domain,
        }
    )
    own: Object = {"vmClass": spec.vm_class, "storageClass": spec.storage_class}
    if spec.volumes:
        own["volumes"] = _volumes(spec.volumes, spec.storage_class)
    names = {"name": spec.cluster_class, "namespace": spec.class_namespace}
    topology: Object = {
        **(
            {"classRef": names}
            if api == V1BETA2
            else {"class": names["name"], "classNamespace": names["namespace"]}
        ),
        "version": spec.version,
        "controlPlane": {
            "replicas": spec.control_plane.count,
            **_nodes(spec, spec.control_plane, _overrides(spec, spec.control_plane), schemas),
        },
        "variables": _listed({**own, **spec.variables}, schemas),
    }
    if spec.workers:
        pools = [_pool(name, nodes, spec, api, schemas) for name, nodes in spec.workers.items()]
        topology["workers"] = {"machineDeployments": pools}
    return {**({"clusterNetwork": network} if network else {}), "topology": topology}


def view(spec: Fields, api: str) -> Object:
    """The object's spec as fields of a site."""
    topology, network = at(spec, "topology"), at(spec, "clusterNetwork")
    values = _values(topology.get("variables"))
    own = _view_own(values)
    reference = at(topology, "classRef")
    pools = [
        each for each in at(topology, "workers").get("machineDeployments") or () if isinstance(each, dict)
    ]
    control_plane = at(topology, "controlPlane")
    found = {
        "version": version(spec),
        "cluster_class": reference.get("name") or topology.get("class"),
        "class_namespace": reference.get("namespace") or topology.get("classNamespace"),
        **own,
        "variables": values,
        "network": written(
            {
                "pods": at(network, "pods").get("cidrBlocks"),
                "services": at(network, "services").get("cidrBlocks"),
                "service_domain": network.get("serviceDomain"),
            }
        ),
        "control_plane": written({"count": control_plane.get("replicas"), **_view_nodes(control_plane)}),
        "workers": {str(each.get("name")): _view_pool(each, api) for each in pools},
    }
    return written(found)


def version(spec: Fields) -> str:
    """The version that it runs or is upgraded to."""
    return plus(str(at(spec, "topology").get("version") or ""))


def _pool(name: str, nodes: Workers, spec: Spec, api: str, schemas: Schemas) -> Object:
    found: Object = {"class": nodes.worker_class, "name": name}
    scale: Object = {}
    if nodes.autoscale is not None:
        scale = {LEAST: str(nodes.autoscale.min), MOST: str(nodes.autoscale.max)}
        if nodes.autoscale.gpus:
            scale |= {GPU_TYPE: NVIDIA, GPUS: str(nodes.autoscale.gpus)}
    else:
        found["replicas"] = nodes.count
    if nodes.zone:
        found["failureDomain"] = nodes.zone
    if nodes.rollout:
        strategy = {
            "type": "RollingUpdate",
            "rollingUpdate": {
                "maxSurge": nodes.rollout.max_surge,
                "maxUnavailable": nodes.rollout.max_unavailable,
            },
        }
        found |= {"rollout": {"strategy": strategy}} if api == V1BETA2 else {"strategy": strategy}
    overrides = _overrides(spec, nodes)
    if _labels(nodes) or nodes.taints:
        overrides["node"] = _node(spec, nodes)
    return {**found, **_nodes(spec, nodes, overrides, schemas, scale)}


def _nodes(
    spec: Spec, nodes: Nodes, overrides: Object, schemas: Schemas, annotations: Fields | None = None
) -> Object:
    os = nodes.os or spec.os
    notes = {**(annotations or {}), **({OS_IMAGE: selector(os)} if os else {})}
    return written(
        {
            "metadata": written({"annotations": notes}),
            "variables": written({"overrides": _listed(overrides, schemas)}),
        }
    )


def _overrides(spec: Spec, nodes: Nodes) -> Object:
    volumes = nodes.volumes
    if volumes is None and spec.volumes and nodes.storage_class:
        volumes = spec.volumes  # on the storage of these nodes
    return {
        **({"vmClass": nodes.vm_class} if nodes.vm_class else {}),
        **({"storageClass": nodes.storage_class} if nodes.storage_class else {}),
        **(
            {"volumes": _volumes(volumes, nodes.storage_class or spec.storage_class)}
            if volumes is not None
            else {}
        ),
        **nodes.variables,
    }


def _node(spec: Spec, nodes: Workers) -> Object:
    """The variable `node` of a pool. An override replaces the cluster's own value, so it includes that."""
    base = nodes.variables.get("node", spec.variables.get("node"))
    known: Fields = base if isinstance(base, Mapping) else {}
    taints = [_taint(each) for each in nodes.taints]
    return written(
        {
            **known,
            "labels": {**at(known, "labels"), **_labels(nodes)},
            "taints": [*(known.get("taints") or ()), *taints],
        }
    )


def _labels(nodes: Workers) -> dict[str, str]:
    awaited = nodes.autoscale is not None and nodes.autoscale.gpus
    return {**({ACCELERATOR: ""} if awaited else {}), **nodes.labels}


def _taint(text: str) -> Object:
    name, _, effect = text.rpartition(":")
    key, equals, value = name.partition("=")
    return {"key": key, **({"value": value} if equals else {}), "effect": effect}


def _view_pool(pool: Fields, api: str) -> Object:
    notes = at(pool, "metadata", "annotations")
    strategy = at(pool, "rollout", "strategy") if api == V1BETA2 else at(pool, "strategy")
    rolling = at(strategy, "rollingUpdate")
    scale = (
        written(
            {
                "min": _number(notes.get(LEAST)),
                "max": _number(notes.get(MOST)),
                "gpus": _number(notes[GPUS]) if GPUS in notes else None,
            }
        )
        if LEAST in notes or MOST in notes
        else None
    )
    found = _view_nodes(pool)
    variables = dict(found.pop("variables", {}))
    node = variables.pop("node", {})
    node = node if isinstance(node, Mapping) else {}
    if rest := {name: value for name, value in node.items() if name not in ("labels", "taints")}:
        variables["node"] = rest
    return written(
        {
            "count": None if scale else pool.get("replicas"),
            "autoscale": scale,
            "worker_class": pool.get("class"),
            **found,
            "variables": variables,
            "labels": at(node, "labels"),
            "taints": [_view_taint(each) for each in node.get("taints") or () if isinstance(each, dict)],
            "zone": pool.get("failureDomain"),
            "rollout": written(
                {"max_surge": rolling.get("maxSurge"), "max_unavailable": rolling.get("maxUnavailable")}
            ),
        }
    )


def _view_nodes(nodes: Fields) -> Object:
    values = _values(at(nodes, "variables").get("overrides"))
    os = at(nodes, "metadata", "annotations").get(OS_IMAGE)
    return {**_view_own(values), "os": system(str(os)) if os else None, "variables": values}


def _view_own(values: Object) -> Object:
    """The variables that are fields of a site; removes them from `values`."""
    found = {"vm_class": values.pop("vmClass", None), "storage_class": values.pop("storageClass", None)}
    disks = values.pop("volumes", None)
    if disks is None:
        return found
    return found | {
        "volumes": {
            str(each.get("name")): {
                "mount_path": each.get("mountPath"),
                "capacity": size(each.get("capacity")),
                "storage_class": each.get("storageClass"),
            }
            for each in disks
            if isinstance(each, dict)
        }
    }


def _view_taint(taint: Fields) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key')}{value}:{taint.get('effect')}"


def _volumes(volumes: Mapping[str, Volume], storage_class: str) -> list[Object]:
    return [
        {
            "name": name,
            "mountPath": volume.mount_path,
            "capacity": quantity(volume.capacity),
            "storageClass": storage_class,
        }
        for name, volume in volumes.items()
    ]


def _listed(values: Fields, schemas: Schemas) -> list[Object]:
    return [{"name": name, "value": typed(value, schemas.get(name))} for name, value in values.items()]


def _values(listed: Any) -> Object:
    return {str(each.get("name")): each.get("value") for each in listed or () if isinstance(each, dict)}


def _number(text: Any) -> Any:
    return int(text) if str(text).isdigit() else text


ROLES = {
    "count": ("replicas",),
    "os": ("metadata", "annotations", OS_IMAGE),
    "autoscale": ("metadata", "annotations"),
    "zone": ("failureDomain",),
    "vm_class": ("variables", "overrides", 'k:{"name":"vmClass"}'),
    "storage_class": ("variables", "overrides", 'k:{"name":"storageClass"}'),
    "volumes": ("variables", "overrides", 'k:{"name":"volumes"}'),
    "labels": ("variables", "overrides", 'k:{"name":"node"}'),
    "taints": ("variables", "overrides", 'k:{"name":"node"}'),
    "variables": ("variables", "overrides"),
}
"""Field of a role of nodes → its path in the object."""


def path_of(field: str, api: str) -> tuple[str, ...]:
    """The path of a site's field in the object, as managedFields writes it."""
    first, *rest = field.split(".")
    topology = ("spec", "topology")
    if first == "control_plane":
        return (*topology, "controlPlane", *_role(rest, api))
    if first == "workers":
        pools = (*topology, "workers", "machineDeployments")
        return (*pools, f'k:{{"name":"{rest[0]}"}}', *_role(rest[1:], api)) if rest else pools
    if first in ("cluster_class", "class_namespace"):
        newer = ("classRef", "name" if first == "cluster_class" else "namespace")
        return (*topology, *(newer if api == V1BETA2 else ("class",)))
    if first == "network":
        return ("spec", "clusterNetwork")
    if first == "variables":
        return (*topology, "variables", *([f'k:{{"name":"{rest[0]}"}}'] if rest else ()))
    names = {"vm_class": "vmClass", "storage_class": "storageClass", "volumes": "volumes"}
    return (
        (*topology, "variables", f'k:{{"name":"{names[first]}"}}') if first in names else (*topology, first)
    )


def _role(rest: list[str], api: str) -> tuple[str, ...]:
    if rest[:1] == ["rollout"]:
        return ("rollout",) if api == V1BETA2 else ("strategy",)
    if rest[:1] == ["autoscale"] and len(rest) > 1:
        return ("metadata", "annotations", {"min": LEAST, "max": MOST}.get(rest[1], GPUS))
    if rest[:1] == ["variables"] and len(rest) > 1:
        return (*ROLES["variables"], f'k:{{"name":"{rest[1]}"}}')
    return ROLES.get(rest[0], ()) if rest else ()
