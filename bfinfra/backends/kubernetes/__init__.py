"""Kubernetes APIs: supervisors, guest clusters, any cluster by kubeconfig; plain manifests in, plain
manifests out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes.cluster import ClusterClient
    from bfinfra.backends.kubernetes.clusters import Clusters

__all__ = ["ClusterClient", "Clusters"]


def __getattr__(name: str) -> Any:
    """The client library is imported when a connection is wanted, not when a site is read."""
    if name == "ClusterClient":
        from bfinfra.backends.kubernetes.cluster import ClusterClient  # noqa: PLC0415 - that is the point

        return ClusterClient
    if name == "Clusters":
        from bfinfra.backends.kubernetes.clusters import Clusters  # noqa: PLC0415 - that is the point

        return Clusters
    raise AttributeError(name)
