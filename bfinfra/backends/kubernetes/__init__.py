"""Kubernetes APIs: supervisors, guest clusters, any cluster by kubeconfig; plain manifests in, plain manifests out."""

from bfinfra.backends.kubernetes.cluster import Cluster
from bfinfra.backends.kubernetes.clusters import Clusters

__all__ = ["Cluster", "Clusters"]
