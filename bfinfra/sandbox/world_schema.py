"""The world file as JSON Schema, from the same annotations that it is read by."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from bfinfra.sandbox.reading import UNITS, Bytes
from bfinfra.sandbox.world import World

DIALECT = "http://json-schema.org/draft-07/schema#"
SIZE = {"type": ["integer", "string"], "pattern": rf"^\d+\s*({'|'.join(filter(None, UNITS))})?$"}
SCALARS: Mapping[object, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}
Schema = dict[str, Any]


def schema() -> Schema:
    """The whole language of world files as one JSON Schema, draft-07."""
    definitions: Schema = {}
    whole = _of(World, definitions)
    body = definitions.pop(whole["$ref"].rpartition("/")[2])
    return {"$schema": DIALECT, "title": "bfinfra sandbox world", **body, "definitions": definitions}


def sections() -> dict[str, type]:
    """Every dataclass of a world file by its name, the whole world first."""
    found: dict[str, type] = {}

    def see(kind: object) -> None:
        if dataclasses.is_dataclass(kind) and isinstance(kind, type) and kind.__name__ not in found:
            found[kind.__name__] = kind
            for hint in typing.get_type_hints(kind).values():
                see(hint)
        for inner in typing.get_args(kind):
            see(inner)

    see(World)
    return found


def about(kind: type) -> str:
    """Return a dataclass's docstring, on one line."""
    return " ".join((kind.__doc__ or "").split())


def fields(kind: type) -> dict[str, tuple[object, object]]:
    """The keys of a dataclass: its type, and its default (MISSING where it must be given)."""
    hints = typing.get_type_hints(kind)
    found = {}
    for field in dataclasses.fields(kind):
        default = field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        found[field.name.rstrip("_")] = (hints[field.name], default)
    return found


def descriptions(kind: type) -> dict[str, str]:
    """The keys of a dataclass that have a docstring, with it on one line."""
    return dict(_documented(textwrap.dedent(inspect.getsource(kind))))


def _documented(source: str) -> Iterator[tuple[str, str]]:
    (whole,) = ast.parse(source).body
    assert isinstance(whole, ast.ClassDef)
    for field, text in zip(whole.body, whole.body[1:], strict=False):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(words))):
                yield name.rstrip("_"), " ".join(words.split())


def _of(kind: object, definitions: Schema) -> Schema:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or kind is Bytes:
        return {} if kind is Any else dict(SIZE)
    if origin is not None:
        return _of_several(origin, args, definitions)
    if not dataclasses.is_dataclass(kind):
        return {"type": SCALARS[kind]}
    made = typing.cast("type", kind)
    if made.__name__ not in definitions:
        definitions[made.__name__] = {}
        definitions[made.__name__] = _object(made, definitions)
    return {"$ref": f"#/definitions/{made.__name__}"}


def _of_several(origin: object, args: tuple[object, ...], definitions: Schema) -> Schema:
    """Of a list, a mapping, or what may be absent."""
    if origin is tuple:
        return {"type": "array", "items": _of(args[0], definitions)}
    if origin is Mapping:
        return {"type": "object", "additionalProperties": _of(args[1], definitions)}
    inner = _of(next(each for each in args if each is not type(None)), definitions)
    return {"anyOf": [inner, {"type": "null"}]}


def _object(kind: type, definitions: Schema) -> Schema:
    found, texts = fields(kind), descriptions(kind)
    required = [name for name, (_, default) in found.items() if default is dataclasses.MISSING]
    return {
        "description": about(kind),
        "type": "object" if required else ["object", "null"],
        "properties": {
            name: _described(_of(hint, definitions), texts.get(name, "")) for name, (hint, _) in found.items()
        },
        "required": required,
        "additionalProperties": False,
    }


def _described(field: Schema, text: str) -> Schema:
    """The field with its description, which a validator of draft-07 would overlook beside a $ref."""
    return {**({"allOf": [field]} if "$ref" in field else field), "description": text}
