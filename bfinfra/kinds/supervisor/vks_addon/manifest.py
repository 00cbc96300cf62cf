"""The objects of an add-on, and the way back to the words of a site."""

from __future__ import annotations

from bfinfra.kinds.supervisor.base.variables import text, typed
from bfinfra.kinds.supervisor.base.words import Fields, Object, at, written
from bfinfra.kinds.supervisor.vks_addon.spec import Spec

ADDONS = "addons.kubernetes.vmware.com"
API = f"{ADDONS}/v1alpha1"
INSTALL, CONFIG, STANDING = "AddonInstall", "AddonConfig", "ClusterAddon"
PUBLIC = "vmware-system-vks-public"
OF_CLUSTER = "cluster.x-k8s.io/cluster-name"
GOES_ALONG = f"clusteraddon.{ADDONS}/owned-for-deletion"


def install(name: str, namespace: str, spec: Spec) -> Object:
    """The add-on's object."""
    pinned = {"ref": {"name": spec.release, "namespace": PUBLIC}} if spec.release else {}
    body = {
        "addonRef": {"name": spec.addon},
        "clusters": [{"selector": {"matchLabels": {OF_CLUSTER: spec.cluster}}}],
        "releaseFilter": pinned,
        "stopMatchingBehavior": "Retain" if spec.keep else "Delete",
    }
    return {
        "apiVersion": API,
        "kind": INSTALL,
        "metadata": {"name": name, "namespace": namespace},
        "spec": written(body),
    }


def config(namespace: str, spec: Spec) -> Object:
    """The settings' object. Its name links it to the add-on; the supervisor fills in cluster and
    definition.
    """
    return {
        "apiVersion": API,
        "kind": CONFIG,
        "metadata": {
            "name": f"{spec.cluster}-{spec.addon}",
            "namespace": namespace,
            "annotations": {GOES_ALONG: "true"},
        },
        "spec": {"values": typed(spec.values, None)},
    }


def view(install: Fields, values: object) -> Object:
    """An add-on's fields, from the specs of its objects."""
    labels = next((at(each, "selector", "matchLabels") for each in selected({"spec": install})), {})
    return written(
        {
            "addon": at(install, "addonRef").get("name"),
            "cluster": labels.get(OF_CLUSTER),
            "release": at(install, "releaseFilter", "ref").get("name"),
            "keep": install.get("stopMatchingBehavior") == "Retain",
            "values": text(values or {}),
        }
    )


def selected(install: Fields) -> list[Object]:
    """The clusters that an add-on selects."""
    return [each for each in at(install, "spec").get("clusters") or () if isinstance(each, dict)]
