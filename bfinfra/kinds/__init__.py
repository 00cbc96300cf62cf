"""The folder is the registry: one module or package a kind; a leading underscore means something else."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from typing import Any

from bfinfra.model.kind import Kind


@functools.cache
def names() -> tuple[str, ...]:
    """Every kind's name, in alphabetical order; imports none of them."""
    return tuple(sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_")))


@functools.cache
def kind(name: str) -> type[Kind[Any, Any]]:
    """The Kind subclass that a module defines. Imports that module only; KeyError where there is no such kind."""
    if name not in names():
        raise KeyError(name)
    module = importlib.import_module(f"{__name__}.{name}")
    inside = [c for c in vars(module).values() if inspect.isclass(c) and issubclass(c, Kind) and _home(c, module.__name__)]
    found: tuple[type[Kind[Any, Any]], ...] = tuple(dict.fromkeys(inside))
    if len(found) != 1:
        raise TypeError(f"{module.__name__} must define exactly one kind; it defines {[c.__name__ for c in found]}")
    return found[0]


def _home(cls: type, module: str) -> bool:
    return f"{cls.__module__}.".startswith(f"{module}.")
