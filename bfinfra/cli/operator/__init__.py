"""operator: Sites in a Kubernetes cluster, kept as they are described."""

from __future__ import annotations

from bfinfra.cli import arguments
from bfinfra.cli.operator import crd, job, run, site


def add(verbs: arguments.Verbs, about: str) -> None:
    """The verb, and those that follow it."""
    inner = arguments.inner(arguments.verb(verbs, "operator", about), "run|crd|site|job")
    for each in (run, site, job, crd):
        each.add(inner)
