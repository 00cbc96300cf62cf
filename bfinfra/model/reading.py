"""What is asked of a server in bulk, as a value: two that are equal are answered by the same requests."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Reading(NamedTuple, Generic[T_co]):
    """All objects of a type, with these property paths. The parameter is the type of what comes of it."""

    type: str
    paths: tuple[str, ...] = ()
