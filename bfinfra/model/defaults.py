"""The default value of a field."""

from __future__ import annotations

from pydantic import BaseModel


def default_of(part: object, path: str) -> str | float | bool | None:
    """The default of a field at a dotted path; None if it has none, or if the path goes through a map."""
    name, _, rest = path.partition(".")
    known = type(part).model_fields.get(name) if isinstance(part, BaseModel) else None
    default = known.get_default(call_default_factory=True) if known and not known.is_required() else None
    if rest:
        return default_of(default if isinstance(default, BaseModel) else getattr(part, name, None), rest)
    return default if isinstance(default, str | int | float | bool) else None
