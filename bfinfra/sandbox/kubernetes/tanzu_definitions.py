"""The resource definitions of a supervisor: clusters, releases, machine classes and their bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfinfra.sandbox.kubernetes.objects import Object

RUN, MACHINES, CLUSTERS = "run.tanzu.vmware.com", "vmoperator.vmware.com", "cluster.x-k8s.io"
TEXT: Mapping[str, Any] = {"type": "string"}
NUMBER: Mapping[str, Any] = {"type": "integer"}
FREE: Mapping[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definitions(*, namespaced_classes: bool, first: bool = False) -> list[Object]:
    """All of them. `namespaced_classes`: machine classes are objects of each namespace that offers them.

    `first`: clusters have v1alpha1 alone, which knows neither volumes nor authorities.
    """
    later = {} if first else {name: (_later_cluster(), LATER_COLUMNS) for name in ("v1alpha2", "v1alpha3")}
    return [
        _definition(
            RUN,
            "TanzuKubernetesCluster",
            "tanzukubernetesclusters",
            _cluster(first=first),
            short="tkc",
            status=True,
            columns=CLUSTER_COLUMNS,
            later=later,
        ),
        _definition(
            CLUSTERS,
            "Cluster",
            "clusters",
            _cluster_of_class(),
            short="cl",
            status=True,
            version="v1beta1",
            columns=[
                _column("ClusterClass", ".spec.topology.class"),
                _column("Phase", ".status.phase"),
                _column("Version", ".spec.topology.version"),
            ],
        ),
        _definition(
            RUN,
            "TanzuKubernetesRelease",
            "tanzukubernetesreleases",
            _object(spec=FREE, status=FREE),
            short="tkr",
            namespaced=False,
            status=True,
            columns=[
                _column("Version", ".spec.version"),
                _column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
            ],
        ),
        _definition(
            MACHINES,
            "VirtualMachineClass",
            "virtualmachineclasses",
            _object(spec=FREE),
            short="vmclass",
            namespaced=namespaced_classes,
        ),
        _definition(
            MACHINES, "VirtualMachineClassBinding", "virtualmachineclassbindings", _object(classRef=FREE)
        ),
    ]


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


LATER_COLUMNS = [
    _column("Control Plane", ".spec.topology.controlPlane.replicas"),
    _column("Worker", ".status.totalWorkerReplicas"),
    _column("TKR Name", ".spec.topology.controlPlane.tkr.reference.name"),
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    _column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
]


def _object(*required: str, **fields: Mapping[str, Any]) -> Object:
    return {
        "type": "object",
        "properties": dict(fields),
        **({"required": list(required)} if required else {}),
    }


def _list(item: Mapping[str, Any], *keys: str) -> Object:
    merged = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)} if keys else {}
    return {"type": "array", "items": dict(item), **merged}


def _definition(  # noqa: PLR0913 - one decision's whole input
    group: str,
    kind: str,
    plural: str,
    schema: Object,
    *,
    short: str = "",
    namespaced: bool = True,
    status: bool = False,
    columns: list[Object] | None = None,
    version: str = "v1alpha1",
    later: Mapping[str, tuple[Object, list[Object]]] | None = None,
) -> Object:
    """`later`: versions that are served besides, with their schemas and columns."""
    names = {
        "kind": kind,
        "listKind": f"{kind}List",
        "plural": plural,
        "singular": kind.lower(),
        **({"shortNames": [short]} if short else {}),
    }
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == version,
            "schema": {"openAPIV3Schema": each},
            **({"subresources": {"status": {}}} if status else {}),
            **({"additionalPrinterColumns": shown} if shown else {}),
        }
        for name, (each, shown) in {version: (schema, columns), **(later or {})}.items()
    ]
    spec = {
        "group": group,
        "names": names,
        "scope": "Namespaced" if namespaced else "Cluster",
        "versions": versions,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": spec,
    }


def _nodes(*, first: bool) -> Object:
    count = {"type": "integer", "minimum": 0}
    volumes = {} if first else {"volumes": _volumes()}
    return _object(
        "count", "class", "storageClass", count=count, **{"class": TEXT}, storageClass=TEXT, **volumes
    )


QUANTITIES: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": {"x-kubernetes-int-or-string": True},
}


def _volumes() -> Object:
    return _list(
        _object(
            "name", "mountPath", "capacity", name=TEXT, mountPath=TEXT, capacity=QUANTITIES, storageClass=TEXT
        ),
        "name",
    )


def _settings(*, first: bool = False) -> Object:
    cidrs = _object(cidrBlocks=_list(TEXT))
    if first:
        network = _object(cni=_object("name", name=TEXT), services=cidrs, pods=cidrs, serviceDomain=TEXT)
        return _object(network=network, storage=_object(classes=_list(TEXT), defaultClass=TEXT))
    trust = _object(additionalTrustedCAs=_list(_object("name", "data", name=TEXT, data=TEXT), "name"))
    network = _object(
        cni=_object(name={"type": "string", "enum": ["calico", "antrea", "antrea-nsx-routed"]}),
        services=cidrs,
        pods=cidrs,
        serviceDomain=TEXT,
        proxy=_object(httpProxy=TEXT, httpsProxy=TEXT, noProxy=_list(TEXT)),
        trust=trust,
    )
    return _object(network=network, storage=_object(classes=_list(TEXT), defaultClass=TEXT))


def _cluster(*, first: bool) -> Object:
    """TanzuKubernetesCluster v1alpha1, as its Go types declare it; `first`: as the definition of 2021
    does.
    """
    spec = _object(
        "distribution",
        "topology",
        distribution=_object(version=TEXT, fullVersion=TEXT),
        topology=_object(
            "controlPlane", "workers", controlPlane=_nodes(first=first), workers=_nodes(first=first)
        ),
        settings=_settings(first=first),
    )
    return _object(spec=spec, status=FREE)


def _later_cluster() -> Object:
    """TanzuKubernetesCluster v1alpha2, as its Go types declare it; v1alpha3 is the same here."""
    fields = {
        "replicas": {"type": "integer", "minimum": 0},
        "vmClass": TEXT,
        "storageClass": TEXT,
        "volumes": _volumes(),
        "nodeDrainTimeout": TEXT,
        "tkr": _object(reference=_object(name=TEXT)),
    }
    pool = _object("name", "vmClass", "storageClass", name=TEXT, labels=FREE, taints=_list(FREE), **fields)
    topology = _object(
        "controlPlane",
        "nodePools",
        controlPlane=_object("vmClass", "storageClass", **fields),
        nodePools=_list(pool, "name"),
    )
    return _object(spec=_object("topology", topology=topology, settings=_settings()), status=FREE)


def _cluster_of_class() -> Object:
    """Cluster v1beta1, as far as an instance of a ClusterClass uses it."""
    value: Object = {"x-kubernetes-preserve-unknown-fields": True}
    variables = _list(_object("name", "value", name=TEXT, value=value))
    cidrs = _object("cidrBlocks", cidrBlocks=_list(TEXT))
    metadata = _object(labels=FREE, annotations=FREE)
    deployment = _object(
        "class",
        "name",
        name=TEXT,
        replicas=NUMBER,
        failureDomain=TEXT,
        metadata=metadata,
        variables=_object(overrides=variables),
        **{"class": TEXT},
    )
    topology = _object(
        "class",
        "version",
        version=TEXT,
        controlPlane=_object(replicas=NUMBER, metadata=metadata),
        workers=_object(machineDeployments=_list(deployment)),
        variables=variables,
        **{"class": TEXT},
    )
    spec = _object(
        clusterNetwork=_object(services=cidrs, pods=cidrs, serviceDomain=TEXT, apiServerPort=NUMBER),
        paused={"type": "boolean"},
        topology=topology,
        controlPlaneEndpoint=_object("host", "port", host=TEXT, port=NUMBER),
    )
    return _object(spec=spec, status=FREE)
