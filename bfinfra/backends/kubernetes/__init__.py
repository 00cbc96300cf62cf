"""Kubernetes APIs: supervisors, guest clusters, any cluster by kubeconfig. Manifests are plain
dictionaries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes.cluster import ClusterClient
    from bfinfra.backends.kubernetes.clusters import Clusters

__all__ = ["ClusterClient", "Clusters"]


def __getattr__(name: str) -> Any:
    """Imports the client library when a connection is needed, not when a site is read."""
    if name == "ClusterClient":
        from bfinfra.backends.kubernetes.cluster import ClusterClient

        return ClusterClient
    if name == "Clusters":
        from bfinfra.backends.kubernetes.clusters import Clusters

        return Clusters
    raise AttributeError(name)
