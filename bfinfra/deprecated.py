"""Renamed names of the library: the old ones work for one more release, with a DeprecationWarning."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

ARGUMENTS = {"around": "context", "fillings": "middleware", "patience": "retry", "told": "reported"}
T = TypeVar("T")


def renamed(old: str, new: str) -> None:
    """Warn about the old name."""
    warnings.warn(f"bfinfra: {old} is called {new} now", DeprecationWarning, stacklevel=3)


def taking_old_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which also accepts the old names of its arguments."""

    @functools.wraps(function)
    def called(*args: object, **given: object) -> Any:
        return function(*args, **_new(given))

    return called


def with_old_field(old: str) -> Callable[[type[T]], type[T]]:
    """A decorator for a dataclass with a renamed field: it can be given and read by its old name, too."""

    def read(record: object) -> object:
        renamed(old, ARGUMENTS[old])
        return getattr(record, ARGUMENTS[old])

    def decorated(cls: type[T]) -> type[T]:
        found = {
            "__init__": taking_old_arguments(vars(cls)["__init__"]),
            old: property(read, doc=f"The old name of `{ARGUMENTS[old]}`."),
        }
        for name, method in found.items():
            setattr(cls, name, method)
        return cls

    return decorated


def _new(given: Mapping[str, object]) -> dict[str, object]:
    """The arguments by their new names. `dataclasses.replace` gives both names: then the old one counts."""
    old = ARGUMENTS.keys() & given
    for name in old:
        renamed(name, ARGUMENTS[name])
    return {name: value for name, value in given.items() if name not in old} | {
        ARGUMENTS[name]: given[name] for name in old
    }
