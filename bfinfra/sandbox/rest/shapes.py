"""Request bodies checked field by field: vAPI refuses unknown fields, missing ones and wrong types."""

from __future__ import annotations

from typing import Any

from bfinfra.sandbox.rest.errors import Refused

Shape = Any  # a type, [shape], {"field": shape, "optional?": shape}, or a tuple of allowed words


def check(value: object, shape: Shape, at: str = "spec") -> Any:
    """The value, where it fits. Refused (INVALID_ARGUMENT) names the field."""
    if isinstance(shape, dict):
        return _structure(value, shape, at)
    if isinstance(shape, list):
        return [check(each, shape[0], f"{at}[{n}]") for n, each in enumerate(_typed(value, list, at))]
    if isinstance(shape, tuple):
        if value not in shape:
            raise Refused("INVALID_ARGUMENT", f"{at}: {str(value)[:80]!r} is none of {', '.join(shape)}")
        return value
    return _typed(value, shape, at)


def _structure(value: object, shape: dict[str, Any], at: str) -> dict[str, Any]:
    fields = {name.rstrip("?"): (each, name.endswith("?")) for name, each in shape.items()}
    given = {name: each for name, each in _typed(value, dict, at).items() if each is not None}
    if extra := sorted(set(given) - set(fields)):
        raise Refused("INVALID_ARGUMENT", f"{at}: unexpected field {', '.join(extra)}")
    if absent := [name for name, (_, optional) in fields.items() if not optional and name not in given]:
        raise Refused("INVALID_ARGUMENT", f"{at}: field {', '.join(absent)} is missing")
    return {name: check(each, fields[name][0], f"{at}.{name}") for name, each in given.items()}


def _typed(value: object, kind: type, at: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise Refused("INVALID_ARGUMENT", f"{at}: {type(value).__name__} where {kind.__name__} is expected")
    return value
