"""The resource definitions that come with the service."""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.kubernetes.objects import Object
from bfinfra.sandbox.kubernetes.tanzu_definitions import CLUSTERS, FREE, RUN, TEXT, define, fields
from bfinfra.sandbox.kubernetes.vks.offered import ADDONS


def definitions(*, v1beta2: bool) -> list[Object]:
    """Classes, what a pool of a cluster becomes, releases, images and add-ons."""
    free: Any = fields(spec=FREE, status=FREE)
    later: Any = {"v1beta2": (free, [])} if v1beta2 else None
    return [
        define(CLUSTERS, "ClusterClass", "clusterclasses", free, short="cc", version="v1beta1", later=later),
        define(
            CLUSTERS,
            "MachineDeployment",
            "machinedeployments",
            free,
            short="md",
            status=True,
            scale=True,
            version="v1beta1",
            later=later,
        ),
        define(
            "kubernetes.vmware.com",
            "KubernetesRelease",
            "kubernetesreleases",
            free,
            short="kr",
            namespaced=False,
        ),
        *(define(ADDONS, kind, f"{kind.lower()}s", schema) for kind, schema in _addons().items()),
        define(RUN, "OSImage", "osimages", free, short="osimg", namespaced=False, version="v1alpha3"),
    ]


def _addons() -> dict[str, Any]:
    """The kinds of add-ons, as far as their users show them."""
    names = fields("name", name=TEXT, namespace=TEXT)
    selected = {"type": "array", "items": fields(selector=FREE)}
    install = fields(
        "addonRef",
        addonRef=names,
        clusters=selected,
        releaseFilter=fields(ref=names),
        stopMatchingBehavior={"type": "string", "enum": ["Delete", "Retain"]},
    )
    config = fields(clusterName=TEXT, addonConfigDefinitionRef=names, values=FREE)
    return {
        "Addon": fields(spec=FREE, status=FREE),
        "AddonInstall": fields(spec=install, status=FREE),
        "AddonConfig": fields(spec=config, status=FREE),
        "ClusterAddon": fields(spec=FREE, status=FREE),
    }
