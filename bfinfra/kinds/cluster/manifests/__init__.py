"""Kubernetes objects of any type, from files or a chart."""
