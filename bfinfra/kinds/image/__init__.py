"""Kinds of container images that are built where bfinfra runs."""
