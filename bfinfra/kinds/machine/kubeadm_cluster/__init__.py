"""A Kubernetes cluster by kubeadm on Linux machines. (RDG for PVRDMA, "Kubernetes Cluster Deployment".)"""
