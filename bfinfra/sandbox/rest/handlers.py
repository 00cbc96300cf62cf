"""The modules whose handlers register themselves."""

from __future__ import annotations

from importlib import import_module

MODULES = (
    "lookups",
    "storage",
    "items",
    "ovf",
    "vm_templates",
    "content",
    "vm_classes",
    "supervisors",
    "enabling",
    "registries",
    "access",
    "namespaces",
    "tagging",
)


def load() -> None:
    """Import every handler."""
    for name in MODULES:
        import_module(f"bfinfra.sandbox.rest.{name}")
