"""operator crd: print the custom resource definition of a Site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.cli import arguments, output

if TYPE_CHECKING:
    import argparse


def add(inner: arguments.Verbs) -> None:
    """Add the command."""
    arguments.verb(inner, "crd", "print the custom resource definition of a Site", run)


def run(_: argparse.Namespace) -> int:
    """Print the definition; returns 0."""
    from bfinfra.render.schedule import manifest

    output.exact(manifest([site_definition()]))
    return 0


def site_definition() -> dict[str, Any]:
    """The custom resource definition of a Site, as YAML."""
    from bfinfra.operator.crd import definition
    from bfinfra.spec.schema import schema

    return definition(schema(values=False))
