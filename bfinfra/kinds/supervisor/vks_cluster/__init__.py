"""A cluster of the vSphere Kubernetes Service: a Cluster of a ClusterClass, in a supervisor namespace."""
