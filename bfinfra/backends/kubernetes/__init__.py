"""Kubernetes APIs: supervisors, guest clusters, any cluster by kubeconfig; plain manifests in, plain
manifests out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes.cluster import Cluster
    from bfinfra.backends.kubernetes.clusters import Clusters

__all__ = ["Cluster", "Clusters"]


def __getattr__(name: str) -> Any:
    """The client library is imported when a connection is wanted, not when a site is read."""
    if name == "Cluster":
        from bfinfra.backends.kubernetes.cluster import Cluster  # noqa: PLC0415 - that is the point

        return Cluster
    if name == "Clusters":
        from bfinfra.backends.kubernetes.clusters import Clusters  # noqa: PLC0415 - that is the point

        return Clusters
    raise AttributeError(name)
