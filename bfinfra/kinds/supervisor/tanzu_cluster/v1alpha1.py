"""TanzuKubernetesCluster v1alpha1. Source: vmware-tanzu/tanzu-framework v1.4.0-pre-alpha-2,
apis/run/v1alpha1.
"""

from __future__ import annotations

from collections.abc import Mapping

from bfinfra.kinds.supervisor.tanzu_cluster import manifest as form
from bfinfra.kinds.supervisor.tanzu_cluster.manifest import Fields, Object
from bfinfra.kinds.supervisor.tanzu_cluster.spec import ControlPlane, Spec, Workers


def body(spec: Spec, version: str, authorities: Mapping[str, str]) -> Object:
    """The object's spec."""
    (workers,) = spec.workers.values()
    topology = {"controlPlane": _nodes(spec.control_plane), "workers": _nodes(workers)}
    return {"distribution": {"version": version}, "topology": topology, **form.settings(spec, authorities)}


def view(body: Fields, pool: str) -> Object:
    """Its fields as a site writes them."""
    found: Object = form.without_empty(
        {
            "version": version(body),
            "control_plane": _view(form.at(body, "topology", "controlPlane")),
            "workers": {pool: _view(form.at(body, "topology", "workers"))},
            **form.view_settings(body),
        }
    )
    return found


def version(body: Fields) -> str:
    """The version that it runs or is changing to."""
    distribution = form.at(body, "distribution")
    return str(distribution.get("fullVersion") or distribution.get("version") or "")


def phase(obj: Fields) -> str:
    """`creating`, `running`, `updating`, `failed`, …"""
    return str(form.at(obj, "status").get("phase") or "")


def address(obj: Fields) -> Fields:
    """`host` and `port` of the cluster's own API."""
    listed = form.at(obj, "status", "clusterApiStatus").get("apiEndpoints") or ()
    return next((each for each in listed if isinstance(each, dict)), {})


def _nodes(nodes: ControlPlane | Workers) -> Object:
    disks = form.volumes(nodes)
    return {"count": nodes.count, "class": nodes.vm_class, "storageClass": nodes.storage_class} | (
        {"volumes": disks} if disks else {}
    )


def _view(nodes: Fields) -> Object:
    return form.view_nodes(
        nodes.get("count"), nodes.get("class"), nodes.get("storageClass"), nodes.get("volumes")
    )
