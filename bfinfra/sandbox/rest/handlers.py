"""The modules whose handlers register themselves."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

PACKAGE = __name__.rpartition(".")[0]


def load() -> None:
    """Import every handler."""
    for each in pkgutil.iter_modules([str(Path(__file__).parent)], f"{PACKAGE}."):
        importlib.import_module(each.name)
