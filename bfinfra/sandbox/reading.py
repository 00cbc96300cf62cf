"""From YAML values to frozen dataclasses, checked by their annotations; every complaint names the field."""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Mapping
from typing import Any, NewType

Bytes = NewType("Bytes", int)  # written as a number or with a unit: 32GiB
UNITS = {
    "": 1,
    "B": 1,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
}


class BadWorld(ValueError):
    """A world file has a mistake; the message names file and field."""


def read(kind: object, value: object, at: str) -> Any:
    """`value` as an instance of `kind`: a dataclass, a scalar, tuple[T, ...], Mapping[str, T], T | None or
    Any.
    """
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return value
    if origin in (types.UnionType, typing.Union):
        return (
            None if value is None else read(next(each for each in args if each is not type(None)), value, at)
        )
    if origin is tuple:
        return tuple(read(args[0], each, f"{at}[{n}]") for n, each in enumerate(_of(list, value, at)))
    if origin is Mapping:
        return {str(name): read(args[1], each, f"{at}.{name}") for name, each in _of(dict, value, at).items()}
    return _dataclass(kind, value, at) if dataclasses.is_dataclass(kind) else _scalar(kind, value, at)


def _dataclass(kind: Any, value: Any, at: str) -> Any:
    hints = typing.get_type_hints(kind)
    fields = {field.name.rstrip("_"): field for field in dataclasses.fields(kind) if field.init}
    given = _of(dict, {} if value is None else value, at)
    if unknown := [str(name) for name in given if name not in fields]:
        raise BadWorld(f"{at}: unknown {', '.join(unknown)}; known are {', '.join(fields)}")
    for name, field in fields.items():
        if (
            name not in given
            and field.default is dataclasses.MISSING
            and field.default_factory is dataclasses.MISSING
        ):
            raise BadWorld(f"{at}.{name}: missing")
    found = {
        fields[name].name: read(hints[fields[name].name], each, f"{at}.{name}")
        for name, each in given.items()
    }
    try:
        return kind(**found)
    except BadWorld as error:
        raise BadWorld(f"{at}: {error}") from None


def _scalar(kind: Any, value: Any, at: str) -> Any:
    if kind is Bytes:
        return _bytes(value, at)
    if kind is float and type(value) is int:
        return float(value)
    return _of(kind, value, at)


def _of(kind: type, value: object, at: str) -> Any:
    if type(value) is not kind:  # True is no number here
        raise BadWorld(f"{at}: {type(value).__name__} {str(value)[:60]!r} where {kind.__name__} is expected")
    return value


def _bytes(value: object, at: str) -> int:
    found = re.fullmatch(r"(\d+)\s*([a-zA-Z]*)", str(value))
    if found is None or found[2] not in UNITS or isinstance(value, bool):
        raise BadWorld(f"{at}: {str(value)[:60]!r} is no size; write for example 32GiB")
    return int(found[1]) * UNITS[found[2]]
