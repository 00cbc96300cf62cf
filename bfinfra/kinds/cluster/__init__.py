"""Kinds whose objects are in Kubernetes clusters only."""
