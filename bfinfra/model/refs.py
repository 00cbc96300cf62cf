"""References between resources: an annotated name *is* the edge."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic_core import CoreSchema

from bfinfra.model.records import dataclass

EDGES = "_edges"  # where a Spec, which never changes, caches its references: every stage reads them


class Key(NamedTuple):
    """The address of a resource: `kind/name`."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> Key:
        """The Key of a text `kind/name`. Raises ValueError."""
        kind, slash, name = text.partition("/")
        if not (slash and kind and name):
            raise ValueError(
                f"{text!r} is not an address; addresses read kind/name, such as tanzu_cluster/cluster-01"
            )
        return cls(kind, name)


@dataclass(frozen=True)
class Ref:
    """`Annotated[str, Ref("supervisor_namespace")]`: the text is the name of a resource of one of these
    kinds.

    `optional`: it may also name something that this site doesn't describe, such as an existing namespace.
    """

    kinds: tuple[str, ...]
    optional: bool

    def __init__(self, *kinds: str, optional: bool = False) -> None:
        object.__setattr__(self, "kinds", kinds)
        object.__setattr__(self, "optional", optional)

    def edge(self, field: str, name: str) -> Edge:
        """The reference that `name` in this field is."""
        return Edge(field, tuple(Key(kind, name) for kind in self.kinds), self.optional)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "x-names": list(self.kinds)}


class Edge(NamedTuple):
    """A reference found in a value: the dotted field (`workers.pool-1.class`), and the keys that it may name:
    one name, of one or more kinds.
    """

    field: str
    keys: tuple[Key, ...]
    optional: bool = False

    @property
    def name(self) -> str:
        """The name in the field."""
        return self.keys[0].name

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that the name may belong to."""
        return tuple(key.kind for key in self.keys)


def edges(value: object) -> tuple[Edge, ...]:
    """Every reference in a Spec (pydantic) or State (dataclass), in the order of its fields."""
    if value is None:
        return ()
    kept = vars(value) if isinstance(value, BaseModel) else {}
    if EDGES not in kept:
        kept[EDGES] = tuple(_of_object(value, ""))
    found: tuple[Edge, ...] = kept[EDGES]
    return found


def kinds_named(cls: object) -> frozenset[str]:
    """Every kind that a value of this class may refer to."""
    return _named(cls)


class _Shape(NamedTuple):
    """Where a type hint has references: the Ref of a text, those of a mapping's keys, the shapes of items."""

    text: Ref | None
    keys: tuple[Ref, ...]
    items: tuple[_Shape, ...]


@functools.cache
def _referring(cls: object) -> dict[str, _Shape]:
    """The fields that may contain a reference. All other fields need not be searched."""
    return {name: _shape(hint) for name, hint in _hints(cls).items() if any(_kinds_in(hint))}


def _shape(hint: object) -> _Shape:
    found = [[a for a in typing.get_args(part) if a is not Ellipsis] for part in _parts(hint)]
    inner = [args for args in found if args]
    keys = tuple(ref for args in inner if (ref := _ref(args[0])))
    return _Shape(_ref(hint), keys, tuple(_shape(args[-1]) for args in inner))


@functools.cache
def _named(cls: object) -> frozenset[str]:
    return frozenset(kind for hint in _hints(cls).values() for kind in _kinds_in(hint))


def _kinds_in(hint: object) -> Iterator[str]:
    if isinstance(hint, type):
        if issubclass(hint, BaseModel) or dataclasses.is_dataclass(hint):
            yield from kinds_named(hint)
        return
    if ref := _ref(hint):
        yield from ref.kinds
    for part in _parts(hint):
        for arg in (part,) if isinstance(part, type) else typing.get_args(part):
            if arg is not Ellipsis:
                yield from _kinds_in(arg)


def _of_object(value: object, path: str) -> Iterator[Edge]:
    for name, shape in _referring(type(value)).items():  # type: ignore[arg-type]  # typeshed has no hashable type[Any]
        yield from _of_value(getattr(value, name), shape, f"{path}.{name}" if path else name)


def _of_value(value: object, shape: _Shape, path: str) -> Iterator[Edge]:
    if value is None:
        return
    if isinstance(value, str):
        if shape.text:
            yield shape.text.edge(path, value)
    elif isinstance(value, BaseModel) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        yield from _of_object(value, path)
    elif isinstance(value, Mapping):
        for ref in shape.keys:  # such as storage policies with their limits
            yield from (ref.edge(f"{path}.{name}", name) for name in value)
        yield from _of_items(value.items(), shape, path)
    elif isinstance(value, (tuple, list, frozenset)):
        yield from _of_items(enumerate(value), shape, path)


def _of_items(items: Iterable[tuple[object, object]], shape: _Shape, path: str) -> Iterator[Edge]:
    for name, item in items:
        for inner in shape.items:
            yield from _of_value(item, inner, f"{path}.{name}")


def _parts(hint: object) -> Iterator[Any]:
    """The alternatives of a hint, without their annotations."""
    if typing.get_origin(hint) is typing.Annotated:
        yield from _parts(typing.get_args(hint)[0])
    elif typing.get_origin(hint) in (typing.Union, types.UnionType):
        for arg in typing.get_args(hint):
            yield from _parts(arg)
    else:
        yield hint


def _ref(hint: Any) -> Ref | None:
    if typing.get_origin(hint) is typing.Annotated:
        found = next((m for m in hint.__metadata__ if isinstance(m, Ref)), None)
        return found or _ref(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next((ref for arg in typing.get_args(hint) if (ref := _ref(arg))), None)
    return None


@functools.cache
def _hints(cls: Any) -> dict[str, Any]:
    if issubclass(cls, BaseModel):
        return {
            name: field.rebuild_annotation() for name, field in cls.model_fields.items()
        }  # pydantic has resolved them already
    fields = {field.name for field in dataclasses.fields(cls)}
    found = {}
    for base in reversed(cls.__mro__):
        for name, text in inspect.get_annotations(base).items():
            with contextlib.suppress(NameError):  # imported for type checkers only, so it is no reference
                found[name] = (
                    eval(text, vars(sys.modules[base.__module__])) if isinstance(text, str) else text  # noqa: S307 - our own source
                )
    return {name: hint for name, hint in found.items() if name in fields}
