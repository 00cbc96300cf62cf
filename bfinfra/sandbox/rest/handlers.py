"""The modules whose handlers register themselves."""

from __future__ import annotations

import importlib
import pkgutil

from bfinfra.sandbox import rest


def load() -> None:
    """Import every handler."""
    for each in pkgutil.iter_modules(rest.__path__, f"{rest.__name__}."):
        importlib.import_module(each.name)
