"""The kinds. The folders are the registry: a kind is a module, or a package with `spec` and `kind`, in its
group. The groups are named for where their objects are. `base` in a group is not a kind, but what its kinds
share.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bfinfra.model.kind import Kind
    from bfinfra.model.resource import Spec

GROUPS = ("cluster", "image", "machine", "source", "supervisor", "vcenter")


@functools.cache
def groups() -> dict[str, str]:
    """Kind → its group, in alphabetical order. Imports no kind."""
    found = {
        each.name: group
        for group in GROUPS
        for each in pkgutil.iter_modules([f"{folder}/{group}" for folder in __path__])
        if each.name != "base"
    }
    return dict(sorted(found.items()))


def names(*only: str) -> tuple[str, ...]:
    """The kinds of these groups, or all kinds, in alphabetical order."""
    return tuple(name for name, group in groups().items() if not only or group in only)


def cluster_kinds() -> tuple[str, ...]:
    """The kinds that are whole Kubernetes clusters, by their names: in these, namespaces and definitions can
    be created.
    """
    return tuple(name for name in names() if name.endswith("_cluster"))


@functools.cache
def kind(name: str) -> type[Kind[Any, Any]]:
    """The Kind subclass of that name. Imports this kind only. Raises KeyError if there is no such kind."""
    from bfinfra.model.kind import Kind

    module = _part(name, "kind")
    found = [
        c
        for c in vars(module).values()
        if inspect.isclass(c) and c.__module__ == module.__name__ and issubclass(c, Kind)
    ]
    if len(found) != 1:
        raise TypeError(
            f"{module.__name__} must define exactly one kind; it defines {[c.__name__ for c in found]}"
        )
    return found[0]


@functools.cache
def spec(name: str) -> type[Spec]:
    """The Spec of a kind, which is all that reading a site needs. Raises KeyError if there is no
    such kind.
    """
    found: type[Spec] = _part(name, "spec").Spec
    return found


def _part(name: str, part: str) -> ModuleType:
    """The named module of a kind that is a package; else the kind's only module."""
    home = importlib.import_module(f"{__name__}.{groups()[name]}.{name}")
    return importlib.import_module(f"{home.__name__}.{part}") if hasattr(home, "__path__") else home
