"""TanzuKubernetesCluster v1alpha2 and v1alpha3. Source: vmware-tanzu/tanzu-framework v0.9.0,
apis/run/v1alpha2; v1alpha3 has the same fields here.
"""

from __future__ import annotations

from collections.abc import Mapping

from bfinfra.kinds.supervisor.tanzu_cluster import manifest as form
from bfinfra.kinds.supervisor.tanzu_cluster.manifest import Fields, Object
from bfinfra.kinds.supervisor.tanzu_cluster.spec import ControlPlane, Spec, Workers


def body(spec: Spec, version: str, authorities: Mapping[str, str]) -> Object:
    """The object's spec. Every pool is of the same release, with its full version."""
    release = {"tkr": {"reference": {"name": version.replace("+", "---")}}}
    pools = [{"name": name, **_nodes(nodes), **release} for name, nodes in spec.workers.items()]
    return {
        "topology": {"controlPlane": {**_nodes(spec.control_plane), **release}, "nodePools": pools},
        **form.settings(spec, authorities),
    }


def view(body: Fields, _: str) -> Object:
    """Its fields as a site writes them."""
    topology = form.at(body, "topology")
    pools = [each for each in topology.get("nodePools") or () if isinstance(each, dict)]
    found: Object = form.without_empty(
        {
            "version": version(body),
            "control_plane": _view(form.at(topology, "controlPlane")),
            "workers": {str(each.get("name")): _view(each) for each in pools},
            **form.view_settings(body),
        }
    )
    return found


def version(body: Fields) -> str:
    """The version that it runs or is changing to: the control plane's."""
    return str(form.at(body, "topology", "controlPlane", "tkr", "reference").get("name") or "").replace(
        "---", "+"
    )


def address(obj: Fields) -> Fields:
    """`host` and `port` of the cluster's own API."""
    return next(
        (each for each in form.at(obj, "status").get("apiEndpoints") or () if isinstance(each, dict)), {}
    )


def _nodes(nodes: ControlPlane | Workers) -> Object:
    disks = form.volumes(nodes)
    return {"replicas": nodes.count, "vmClass": nodes.vm_class, "storageClass": nodes.storage_class} | (
        {"volumes": disks} if disks else {}
    )


def _view(nodes: Fields) -> Object:
    return form.view_nodes(
        nodes.get("replicas"), nodes.get("vmClass"), nodes.get("storageClass"), nodes.get("volumes")
    )
