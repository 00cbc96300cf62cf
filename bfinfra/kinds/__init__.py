"""The folder is the registry: a kind is a module, or a package with `spec` and `kind`; a leading underscore
means something else.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

from bfinfra.model.kind import Kind, Spec

INSIDE = frozenset(
    {
        "bitfusion_device_plugin",
        "mpi_job",
        "mpi_operator",
        "namespace",
        "network_path",
        "nvidia_device_plugin",
        "registry_credential",
        "tanzu_cluster",
        "token_secret",
        "workload",
    }
)
"""Kinds whose objects are in clusters and nowhere else: where no cluster stands there is none of them."""
SOURCES = frozenset({"bitfusion_token", "kubernetes_cluster", "linux_host"})
"""Kinds that are only read: there is nothing of them but what a file says."""
ON_MACHINES = frozenset(
    {
        "bitfusion_client",
        "flexdirect_host",
        "flexdirect_pool",
        "kubeadm_cluster",
        "loaded_image",
        "nvidia_container_toolkit",
        "vgpu_license",
    }
)
"""Kinds whose objects are on Linux machines and nowhere else: where a file names none there is none of
them.
"""


@functools.cache
def names() -> tuple[str, ...]:
    """Every kind's name, in alphabetical order; imports none of them."""
    return tuple(
        sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_"))
    )


@functools.cache
def kind(name: str) -> type[Kind[Any, Any]]:
    """The Kind subclass of that name. Imports this kind only; KeyError where there is no such kind."""
    module = _part(name, "kind")
    found = [
        c
        for c in vars(module).values()
        if inspect.isclass(c) and issubclass(c, Kind) and c.__module__ == module.__name__
    ]
    if len(found) != 1:
        raise TypeError(
            f"{module.__name__} must define exactly one kind; it defines {[c.__name__ for c in found]}"
        )
    return found[0]


@functools.cache
def spec(name: str) -> type[Spec]:
    """The Spec of a kind: all that it takes to read a site. KeyError where there is no such kind."""
    found: type[Spec] = _part(name, "spec").Spec
    return found


def _part(name: str, part: str) -> ModuleType:
    """That module of a kind that is a package; else the one that it is."""
    if name not in names():
        raise KeyError(name)
    home = importlib.import_module(f"{__name__}.{name}")
    return importlib.import_module(f"{home.__name__}.{part}") if hasattr(home, "__path__") else home
