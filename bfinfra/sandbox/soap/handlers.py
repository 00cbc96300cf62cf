"""Importing the modules whose functions register themselves as handlers."""

from __future__ import annotations

import importlib

MODULES = (
    "service",
    "session_manager",
    "collector",
    "updates",
    "views",
    "search",
    "tasks",
    "folders",
    "switches",
    "pools",
    "hosts",
    "host_network",
    "graphics",
    "images",
    "passthrough",
    "environment",
    "vm_create",
    "vm_reconfigure",
    "vm_power",
    "vm_life",
    "ovf_manager",
    "lease",
    "custom_fields",
    "authorization",
    "user_directory",
    "events",
    "options",
    "files",
)


def load() -> None:
    """Every handler is registered after this."""
    for name in MODULES:
        importlib.import_module(f"bfinfra.sandbox.soap.{name}")
