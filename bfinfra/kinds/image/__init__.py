"""Kinds of container images that are built on the machine where bfinfra runs."""
