"""The resource definitions that come with the service."""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.kubernetes.objects import Object
from bfinfra.sandbox.kubernetes.tanzu_definitions import CLUSTERS, FREE, RUN, define, fields


def definitions(*, v1beta2: bool) -> list[Object]:
    """Classes, what a pool of a cluster becomes, releases and images."""
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
        define(RUN, "OSImage", "osimages", free, short="osimg", namespaced=False, version="v1alpha3"),
    ]
