"""A Tanzu Kubernetes cluster in a supervisor namespace. (Kubernetes setup, figures 7 to 11.)"""

from bfinfra.kinds.tanzu_cluster.kind import TanzuCluster

__all__ = ["TanzuCluster"]
