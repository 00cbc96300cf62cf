"""A bulk read as a value. Equal readings share the same requests."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Reading(NamedTuple, Generic[T_co]):
    """All objects of a type, with these property paths. The type parameter is that of the result."""

    type: str
    paths: tuple[str, ...] = ()
