"""Kinds whose objects are in Kubernetes clusters and nowhere else."""
