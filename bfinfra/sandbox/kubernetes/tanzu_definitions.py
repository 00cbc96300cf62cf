"""The resource definitions of a supervisor: clusters, releases, machine classes and their bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfinfra.sandbox.kubernetes.objects import Object

RUN, MACHINES = "run.tanzu.vmware.com", "vmoperator.vmware.com"
TEXT: Mapping[str, Any] = {"type": "string"}
NUMBER: Mapping[str, Any] = {"type": "integer"}
FREE: Mapping[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definitions() -> list[Object]:
    """All of them."""
    return [
        _definition(RUN, "TanzuKubernetesCluster", "tanzukubernetesclusters", _cluster(), short="tkc", status=True, columns=CLUSTER_COLUMNS),
        _definition(RUN, "TanzuKubernetesRelease", "tanzukubernetesreleases", _object(spec=FREE, status=FREE), short="tkr", namespaced=False, status=True,
                    columns=[_column("Version", ".spec.version"), _column("Ready", '.status.conditions[?(@.type=="Ready")].status')]),
        _definition(MACHINES, "VirtualMachineClass", "virtualmachineclasses", _object(spec=FREE), short="vmclass", namespaced=False),
        _definition(MACHINES, "VirtualMachineClassBinding", "virtualmachineclassbindings", _object(classRef=FREE)),
    ]  # fmt: skip


def _column(name: str, path: str) -> Object:
    return {"name": name, "type": "string", "jsonPath": path}


CLUSTER_COLUMNS = [
    _column("Control Plane", ".spec.topology.controlPlane.count"),
    _column("Worker", ".spec.topology.workers.count"),
    _column("Distribution", ".spec.distribution.fullVersion"),
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    _column("Phase", ".status.phase"),
    _column("TKR Compatible", '.status.conditions[?(@.type=="TanzuKubernetesReleaseCompatible")].status'),
    _column("Updates Available", '.status.conditions[?(@.type=="UpdatesAvailable")].message'),
]


def _object(*required: str, **fields: Mapping[str, Any]) -> Object:
    return {"type": "object", "properties": dict(fields), **({"required": list(required)} if required else {})}


def _list(item: Mapping[str, Any], *keys: str) -> Object:
    merged = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)} if keys else {}
    return {"type": "array", "items": dict(item), **merged}


def _definition(group: str, kind: str, plural: str, schema: Object, *, short: str = "", namespaced: bool = True, status: bool = False,  # noqa: PLR0913 - one decision's whole input
                columns: list[Object] | None = None) -> Object:  # fmt: skip
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower(), **({"shortNames": [short]} if short else {})}
    version = {
        "name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema},
        **({"subresources": {"status": {}}} if status else {}), **({"additionalPrinterColumns": columns} if columns else {}),
    }  # fmt: skip
    spec = {"group": group, "names": names, "scope": "Namespaced" if namespaced else "Cluster", "versions": [version]}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.{group}"}, "spec": spec}


def _nodes(volumes: Mapping[str, Any]) -> Object:
    count = {"type": "integer", "minimum": 0}
    return _object("count", "class", "storageClass", count=count, **{"class": TEXT}, storageClass=TEXT, volumes=volumes)


def _cluster() -> Object:
    """TanzuKubernetesCluster v1alpha1, as its Go types declare it."""
    quantity = {"x-kubernetes-int-or-string": True}
    capacity = {"type": "object", "additionalProperties": quantity}
    volumes = _list(_object("name", "mountPath", "capacity", name=TEXT, mountPath=TEXT, capacity=capacity, storageClass=TEXT), "name")
    cidrs = _object(cidrBlocks=_list(TEXT))
    trust = _object(additionalTrustedCAs=_list(_object("name", "data", name=TEXT, data=TEXT), "name"))
    network = _object(
        cni=_object(name={"type": "string", "enum": ["calico", "antrea", "antrea-nsx-routed"]}), services=cidrs, pods=cidrs,
        serviceDomain=TEXT, proxy=_object(httpProxy=TEXT, httpsProxy=TEXT, noProxy=_list(TEXT)), trust=trust,
    )  # fmt: skip
    spec = _object(
        "distribution", "topology",
        distribution=_object(version=TEXT, fullVersion=TEXT),
        topology=_object("controlPlane", "workers", controlPlane=_nodes(volumes), workers=_nodes(volumes)),
        settings=_object(network=network, storage=_object(classes=_list(TEXT), defaultClass=TEXT)),
    )  # fmt: skip
    return _object(spec=spec, status=FREE)
