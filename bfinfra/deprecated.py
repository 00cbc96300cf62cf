"""Renamed names of the library: the old ones work for one more release, with a DeprecationWarning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any

ARGUMENTS = {"around": "context", "fillings": "middleware", "told": "reported"}


def renamed(old: str, new: str) -> None:
    """Warn about the old name."""
    warnings.warn(f"bfinfra: {old} is called {new} now", DeprecationWarning, stacklevel=3)


def taking_old_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which also accepts the old names of its arguments."""

    @functools.wraps(function)
    def called(*args: object, **given: object) -> Any:
        return function(*args, **_new(given))

    return called


def _new(given: Mapping[str, object]) -> dict[str, Any]:
    for old in ARGUMENTS.keys() & given:
        renamed(old, ARGUMENTS[old])
    return {ARGUMENTS.get(name, name): value for name, value in given.items()}
