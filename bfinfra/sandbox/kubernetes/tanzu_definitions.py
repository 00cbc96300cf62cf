"""The resource definitions of a supervisor: clusters, releases, machine classes and their bindings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfinfra.sandbox.kubernetes.objects import Object

RUN, MACHINES, CLUSTERS = "run.tanzu.vmware.com", "vmoperator.vmware.com", "cluster.x-k8s.io"
TEXT: Mapping[str, Any] = {"type": "string"}
NUMBER: Mapping[str, Any] = {"type": "integer"}
FREE: Mapping[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definitions(*, namespaced_classes: bool, first: bool = False, v1beta2: bool = False) -> list[Object]:
    """All of them. `namespaced_classes`: machine classes are objects of each namespace that offers them.

    `first`: clusters have v1alpha1 alone, which has neither volumes nor authorities; `v1beta2`: the Cluster
    API serves it.
    """
    later = {} if first else {name: (_later_cluster(), LATER_COLUMNS) for name in ("v1alpha2", "v1alpha3")}
    return [
        define(
            RUN,
            "TanzuKubernetesCluster",
            "tanzukubernetesclusters",
            _cluster(first=first),
            short="tkc",
            status=True,
            columns=CLUSTER_COLUMNS,
            later=later,
        ),
        define(
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
            later={"v1beta2": (_cluster_of_class(later=True), LATER_CLASS_COLUMNS)} if v1beta2 else None,
        ),
        define(
            RUN,
            "TanzuKubernetesRelease",
            "tanzukubernetesreleases",
            fields(spec=FREE, status=FREE),
            short="tkr",
            namespaced=False,
            status=True,
            columns=[
                _column("Version", ".spec.version"),
                _column("Ready", '.status.conditions[?(@.type=="Ready")].status'),
            ],
        ),
        define(
            MACHINES,
            "VirtualMachineClass",
            "virtualmachineclasses",
            fields(spec=FREE),
            short="vmclass",
            namespaced=namespaced_classes,
        ),
        define(MACHINES, "VirtualMachineClassBinding", "virtualmachineclassbindings", fields(classRef=FREE)),
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


LATER_CLASS_COLUMNS = [
    _column("ClusterClass", ".spec.topology.classRef.name"),
    _column("Available", '.status.conditions[?(@.type=="Available")].status'),
    _column("Phase", ".status.phase"),
    _column("Version", ".spec.topology.version"),
]


def fields(*required: str, **properties: Mapping[str, object]) -> Object:
    """The schema of an object with these fields."""
    return {
        "type": "object",
        "properties": dict(properties),
        **({"required": list(required)} if required else {}),
    }


def _list(item: Mapping[str, object], *keys: str) -> Object:
    merged = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)} if keys else {}
    return {"type": "array", "items": dict(item), **merged}


SCALE = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}


def define(  # noqa: PLR0913 - one decision's whole input
    group: str,
    kind: str,
    plural: str,
    schema: Object,
    *,
    short: str = "",
    namespaced: bool = True,
    status: bool = False,
    scale: bool = False,
    columns: list[Object] | None = None,
    version: str = "v1alpha1",
    later: Mapping[str, tuple[Object, list[Object]]] | None = None,
) -> Object:
    """A definition. `later`: versions that are served besides, with their schemas and columns."""
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
            **({"subresources": {"status": {}, **({"scale": SCALE} if scale else {})}} if status else {}),
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
    return fields(
        "count", "class", "storageClass", count=count, **{"class": TEXT}, storageClass=TEXT, **volumes
    )


QUANTITIES: Mapping[str, Any] = {
    "type": "object",
    "additionalProperties": {"x-kubernetes-int-or-string": True},
}


def _volumes() -> Object:
    return _list(
        fields(
            "name", "mountPath", "capacity", name=TEXT, mountPath=TEXT, capacity=QUANTITIES, storageClass=TEXT
        ),
        "name",
    )


def _settings(*, first: bool = False) -> Object:
    cidrs = fields(cidrBlocks=_list(TEXT))
    if first:
        network = fields(cni=fields("name", name=TEXT), services=cidrs, pods=cidrs, serviceDomain=TEXT)
        return fields(network=network, storage=fields(classes=_list(TEXT), defaultClass=TEXT))
    trust = fields(additionalTrustedCAs=_list(fields("name", "data", name=TEXT, data=TEXT), "name"))
    network = fields(
        cni=fields(name={"type": "string", "enum": ["calico", "antrea", "antrea-nsx-routed"]}),
        services=cidrs,
        pods=cidrs,
        serviceDomain=TEXT,
        proxy=fields(httpProxy=TEXT, httpsProxy=TEXT, noProxy=_list(TEXT)),
        trust=trust,
    )
    return fields(network=network, storage=fields(classes=_list(TEXT), defaultClass=TEXT))


def _cluster(*, first: bool) -> Object:
    """TanzuKubernetesCluster v1alpha1, as its Go types declare it; `first`: as the definition of 2021
    does.
    """
    spec = fields(
        "distribution",
        "topology",
        distribution=fields(version=TEXT, fullVersion=TEXT),
        topology=fields(
            "controlPlane", "workers", controlPlane=_nodes(first=first), workers=_nodes(first=first)
        ),
        settings=_settings(first=first),
    )
    return fields(spec=spec, status=FREE)


def _later_cluster() -> Object:
    """TanzuKubernetesCluster v1alpha2, as its Go types declare it; v1alpha3 is the same here."""
    nodes = {
        "replicas": {"type": "integer", "minimum": 0},
        "vmClass": TEXT,
        "storageClass": TEXT,
        "volumes": _volumes(),
        "nodeDrainTimeout": TEXT,
        "tkr": fields(reference=fields(name=TEXT)),
    }
    pool = fields("name", "vmClass", "storageClass", name=TEXT, labels=FREE, taints=_list(FREE), **nodes)
    topology = fields(
        "controlPlane",
        "nodePools",
        controlPlane=fields("vmClass", "storageClass", **nodes),
        nodePools=_list(pool, "name"),
    )
    return fields(spec=fields("topology", topology=topology, settings=_settings()), status=FREE)


def _cluster_of_class(*, later: bool = False) -> Object:
    """Cluster v1beta1, as far as an instance of a ClusterClass uses it; `later`: v1beta2."""
    value: Object = {"x-kubernetes-preserve-unknown-fields": True}
    variables = _list(fields("name", "value", name=TEXT, value=value), "name")
    either: Object = {"x-kubernetes-int-or-string": True}
    strategy = fields(type=TEXT, rollingUpdate=fields(maxSurge=either, maxUnavailable=either))
    rollout = {"rollout": fields(strategy=strategy)} if later else {"strategy": strategy}
    names = (
        {"classRef": fields("name", name=TEXT, namespace=TEXT)}
        if later
        else {"class": TEXT, "classNamespace": TEXT}
    )
    first = "classRef" if later else "class"
    cidrs = fields("cidrBlocks", cidrBlocks=_list(TEXT))
    metadata = fields(labels=FREE, annotations=FREE)
    deployment = fields(
        "class",
        "name",
        name=TEXT,
        replicas=NUMBER,
        failureDomain=TEXT,
        metadata=metadata,
        variables=fields(overrides=variables),
        **{"class": TEXT},
        **rollout,
    )
    topology = fields(
        first,
        "version",
        version=TEXT,
        controlPlane=fields(replicas=NUMBER, metadata=metadata, variables=fields(overrides=variables)),
        workers=fields(machineDeployments=_list(deployment, "name")),
        variables=variables,
        **names,
    )
    spec = fields(
        clusterNetwork=fields(services=cidrs, pods=cidrs, serviceDomain=TEXT, apiServerPort=NUMBER),
        paused={"type": "boolean"},
        topology=topology,
        controlPlaneEndpoint=fields("host", "port", host=TEXT, port=NUMBER),
    )
    return fields(spec=spec, status=FREE)
