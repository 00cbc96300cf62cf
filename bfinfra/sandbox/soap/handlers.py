"""Importing the modules whose functions register themselves as handlers."""

from __future__ import annotations

import importlib
import pkgutil

from bfinfra.sandbox import soap


def load() -> None:
    """Every handler is registered after this."""
    for each in pkgutil.iter_modules(soap.__path__, f"{soap.__name__}."):
        importlib.import_module(each.name)
