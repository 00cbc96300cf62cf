"""The fields of a Spec, from its annotations and the docstrings under its fields."""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from bfinfra.model.documentation import documentation
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref
from bfinfra.model.secret import Secret
from bfinfra.model.sources import LocalFile
from bfinfra.model.units import Bytes, Megahertz, PciId, Seconds
from bfinfra.render.style import Units

UNITS = ((Bytes, "bytes"), (Megahertz, "MHz"), (Seconds, "seconds"))
NAMES = (
    (Bytes, "size, such as 128GiB"),
    (Megahertz, "frequency, such as 48GHz"),
    (Seconds, "time, such as 10m"),
    (PciId, "PCI id, such as 0x10de"),
    (str, "text"),
    (int, "number"),
    (float, "number"),
    (bool, "true or false"),
    (Secret, "secret reference"),
    (LocalFile, "file"),
    (Any, "anything"),
)


@dataclass(frozen=True)
class Field:
    """One field of a Spec: its dotted path (`*` for any name, `[]` for any element), type and meaning for
    people.
    """

    path: str
    type: str
    required: bool
    default: Any
    about: str


def fields(spec: type[BaseModel], prefix: str = "") -> Iterator[Field]:
    """Every field; fields of nested parts follow the field that contains them."""
    hints, documented = _hints(spec), documentation(spec)
    for name, info in spec.model_fields.items():
        path, hint = f"{prefix}{info.alias or name}", hints.get(name, info.annotation)
        yield Field(
            path,
            type_text(hint),
            info.is_required(),
            _default(info),
            " ".join(documented.get(name, "").split()),
        )
        for part, suffix in _nested(hint):
            if part is not spec:
                yield from fields(part, f"{path}{suffix}.")


def units(specs: Mapping[str, type[BaseModel]]) -> Units:
    """Kind and dotted field → unit, from the annotations of these Specs."""
    return lambda kind, field: unit(specs[kind], field) if kind in specs else ""


def unit(spec: type[BaseModel], field: str) -> str:
    """The unit of a number at a dotted field: bytes, MHz, seconds, or ""."""
    return _unit(spec, tuple(field.split(".")))


def type_text(hint: Any) -> str:
    """A type in words: `size, such as 128GiB`, `name of a tanzu_cluster`, `list of text`."""
    for known, name in NAMES:
        if _is(hint, known):
            return name
    if typing.get_origin(hint) is typing.Annotated:
        ref = next((m for m in hint.__metadata__ if isinstance(m, Ref)), None)
        return "name of a " + " or ".join(ref.kinds) if ref else type_text(typing.get_args(hint)[0])
    if typing.get_origin(hint) is typing.Literal:
        return " | ".join(map(str, typing.get_args(hint)))
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return "fields"
    return _composed(hint)


def _is(hint: object, known: object) -> bool:
    """Return whether a hint is a known type, or a restricted one: `Annotated[Bytes, Field(gt=0)]`."""
    parts = typing.get_args(known)
    return hint == known or bool(
        parts and typing.get_origin(hint) is typing.Annotated and typing.get_args(hint)[: len(parts)] == parts
    )


def _composed(hint: object) -> str:
    origin, args = (
        typing.get_origin(hint),
        [a for a in typing.get_args(hint) if a not in (type(None), Ellipsis)],
    )
    if origin in (typing.Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(type_text, args)))
    if origin in (list, tuple, frozenset, set) and args:
        return f"list of {type_text(args[0])}"
    if isinstance(origin, type) and issubclass(origin, Mapping) and len(args) == 2:
        return f"name → {type_text(args[1])}"
    return str(getattr(hint, "__name__", hint))


def _default(info: FieldInfo) -> Any:
    known = (
        not info.is_required() and info.default_factory is None and not isinstance(info.default, BaseModel)
    )
    return info.default if known else None


def _nested(hint: object, suffix: str = "") -> Iterator[tuple[type[BaseModel], str]]:
    """The parts in a hint, each with the path between the field's name and theirs."""
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        yield hint, suffix
        return
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        yield from _nested(args[0], suffix)
    elif origin in (list, tuple, frozenset, set) and args:
        yield from _nested(args[0], suffix + "[]")
    elif isinstance(origin, type) and issubclass(origin, Mapping):
        yield from _nested(args[1], suffix + ".*")
    elif origin in (typing.Union, types.UnionType):
        for arg in args:
            yield from _nested(arg, suffix)


def _unit(hint: object, path: tuple[str, ...]) -> str:
    """The unit at a dotted path through models, mappings and lists."""
    found = next((unit for known, unit in UNITS if _is(hint, known)), "")
    if found:
        return found
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _unit(args[0], path)
    if origin in (typing.Union, types.UnionType):
        return next((found for arg in args if (found := _unit(arg, path))), "")
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return _unit(_hints(hint).get(path[0]), path[1:]) if path else ""
    if args:
        return _unit(
            args[-1] if isinstance(origin, type) and issubclass(origin, Mapping) else args[0], path[1:]
        )
    return ""


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls, include_extras=True)
