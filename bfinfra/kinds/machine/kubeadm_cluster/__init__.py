"""A Kubernetes cluster made by kubeadm on Linux machines. (RDG for PVRDMA, "Kubernetes Cluster
Deployment".)
"""
