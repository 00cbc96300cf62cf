"""Cluster of cluster.x-k8s.io/v1beta1, an instance of a ClusterClass. Source: cluster-api's Go types;
variables of `tanzukubernetescluster`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfinfra.kinds.supervisor.tanzu_cluster import manifest as form
from bfinfra.kinds.supervisor.tanzu_cluster.manifest import Fields, Object
from bfinfra.kinds.supervisor.tanzu_cluster.spec import Nodes, Spec, Workers

WORKER_CLASS = "node-pool"
PHASES = {
    "Pending": "creating",
    "Provisioning": "creating",
    "Provisioned": "running",
    "Deleting": "deleting",
    "Failed": "failed",
}


def body(spec: Spec, version: str, _: Mapping[str, str]) -> Object:
    """The object's spec. Differences between pools are overrides of the class's variables."""
    network = form.without_empty(
        {
            "pods": {"cidrBlocks": list(spec.network.pods)},
            "services": {"cidrBlocks": list(spec.network.services)},
            "serviceDomain": spec.network.service_domain,
        }
    )
    pools = [
        {
            "class": WORKER_CLASS,
            "name": name,
            "replicas": nodes.count,
            "variables": {"overrides": _overrides(nodes)},
        }
        for name, nodes in spec.workers.items()
    ]
    values = {
        **_nodes(spec.control_plane),
        "controlPlaneVolumes": form.volumes(spec.control_plane, classed=True),
        "storageClasses": list(spec.storage_classes),
        "defaultStorageClass": spec.default_storage_class,
    }
    topology = {
        "class": spec.cluster_class,
        "version": version.replace("+", "---"),
        "controlPlane": {"replicas": spec.control_plane.count},
        "workers": {"machineDeployments": pools},
        "variables": _variables(values),
    }
    return {**({"clusterNetwork": network} if network else {}), "topology": topology}


def view(body: Fields, _: str) -> Object:
    """Its fields as a site writes them."""
    topology, network = form.at(body, "topology"), form.at(body, "clusterNetwork")
    values = _values(topology.get("variables"))
    pools = [
        each
        for each in form.at(topology, "workers").get("machineDeployments") or ()
        if isinstance(each, dict)
    ]
    found: Object = form.without_empty(
        {
            "version": version(body),
            "cluster_class": topology.get("class"),
            "control_plane": _view(
                form.at(topology, "controlPlane").get("replicas"), values, "controlPlaneVolumes"
            ),
            "workers": {
                str(each.get("name")): _view(
                    each.get("replicas"),
                    values | _values(form.at(each, "variables").get("overrides")),
                    "nodePoolVolumes",
                )
                for each in pools
            },
            "network": {
                "pods": form.at(network, "pods").get("cidrBlocks"),
                "services": form.at(network, "services").get("cidrBlocks"),
                "service_domain": network.get("serviceDomain"),
            },
            "storage_classes": values.get("storageClasses"),
            "default_storage_class": values.get("defaultStorageClass"),
        }
    )
    return found


def version(body: Fields) -> str:
    """The version that it runs or is changing to."""
    return str(form.at(body, "topology").get("version") or "").replace("---", "+")


def phase(obj: Fields) -> str:
    """In the words of the other APIs: `creating`, `running`, `deleting`, `failed`; "" while the controller
    has not reported about the last change.
    """
    status = form.at(obj, "status")
    observed, generation = status.get("observedGeneration"), form.at(obj, "metadata").get("generation")
    if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
        return "updating" if status.get("phase") == "Provisioned" else "creating"
    value = str(status.get("phase") or "")
    return PHASES.get(value, value.lower())


def address(obj: Fields) -> Fields:
    """`host` and `port` of the cluster's own API."""
    found = form.at(obj, "spec", "controlPlaneEndpoint")
    return found if found.get("host") else {}


def _nodes(nodes: Nodes) -> Object:
    return {"vmClass": nodes.vm_class, "storageClass": nodes.storage_class}


def _overrides(nodes: Workers) -> list[Object]:
    return _variables({**_nodes(nodes), "nodePoolVolumes": form.volumes(nodes, classed=True)})


def _variables(values: Fields) -> list[Object]:
    return [{"name": name, "value": value} for name, value in values.items() if value not in (None, [], ())]


def _values(listed: Any) -> Object:
    return {str(each.get("name")): each.get("value") for each in listed or () if isinstance(each, dict)}


def _view(count: object, values: Fields, disks: str) -> Object:
    return form.view_nodes(count, values.get("vmClass"), values.get("storageClass"), values.get(disks))
