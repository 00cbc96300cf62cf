"""A cluster of the vSphere Kubernetes Service: a Cluster of a class, in a supervisor namespace."""
