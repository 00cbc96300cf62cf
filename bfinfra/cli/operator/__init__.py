"""operator: apply the Site objects of a Kubernetes cluster."""

from __future__ import annotations

from bfinfra.cli import arguments
from bfinfra.cli.operator import crd, job, run, site, watcher


def add(verbs: arguments.Verbs, about: str) -> None:
    """Add the command and its subcommands."""
    inner = arguments.inner(arguments.verb(verbs, "operator", about), "run|watcher|crd|site|job")
    for each in (run, watcher, site, job, crd):
        each.add(inner)
