"""Values of a class's variables against its own schema: what Cluster API's webhook would refuse, reported
before the first write and at its line. Rules in CEL (`x-kubernetes-validations`) are left to the server.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from bfinfra.kinds.supervisor.base.words import at
from bfinfra.model.suggest import nearest

Schema = Mapping[str, Any]
OPEN = "x-kubernetes-preserve-unknown-fields"
EITHER = "x-kubernetes-int-or-string"
NAMES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    EITHER: "a whole number or text",
}


class Wrong(NamedTuple):
    """`path`: dotted, below the value; `what` reads after the field's name; `near`: how to go on."""

    path: str
    what: str
    near: str = ""


def wrong(schema: Schema, value: object, path: str = "") -> Iterator[Wrong]:
    """All that a schema does not allow, the outermost first."""
    if value is None and schema.get("nullable"):
        return
    kind = EITHER if schema.get(EITHER) else str(schema.get("type") or "")
    if not KINDS.get(kind, _anything)(value):
        yield Wrong(path, f"is not {NAMES[kind]}")
    elif "enum" in schema and value not in schema["enum"]:
        yield Wrong(path, f"is {value}", f"one of: {', '.join(map(str, schema['enum']))}")
    else:
        for rule, breaks, text in RULES:
            if rule in schema and breaks(schema[rule], value):
                yield Wrong(path, text.format(schema[rule]))
        yield from _inside(schema, value, path)


def _inside(schema: Schema, value: object, path: str) -> Iterator[Wrong]:
    if isinstance(value, Mapping):
        yield from _fields(schema, value, path)
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, item in enumerate(value):
            yield from wrong(schema["items"], item, _below(path, str(index)))


def _fields(schema: Schema, value: Mapping[str, object], path: str) -> Iterator[Wrong]:
    known, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for name in schema.get("required") or ():
        if name not in value and "default" not in known.get(name, {}):
            yield Wrong(path, f"lacks {name}")
    for name, item in value.items():
        here = _below(path, name)
        if name in known:
            yield from wrong(known[name], item, here)
        elif isinstance(more, Mapping):
            yield from wrong(more, item, here)
        elif not (more or schema.get(OPEN)):
            yield Wrong(here, "is unknown to the class", nearest(name, known))


def _anything(_: object) -> bool:
    return True


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def typed(value: object, schema: Schema | None) -> Any:
    """A value of a file, in which scalars are text, as a schema wants it; else as YAML reads it."""
    if isinstance(value, Mapping):
        known, more = at(schema, "properties"), (schema or {}).get("additionalProperties")
        return {
            name: typed(item, known.get(name) or (more if isinstance(more, Mapping) else None))
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        items = (schema or {}).get("items")
        return [typed(item, items if isinstance(items, Mapping) else None) for item in value]
    if not isinstance(value, str) or (schema or {}).get(EITHER):
        return value
    kind = (schema or {}).get("type")
    for wanted, pattern, made in SCALARS:
        if kind in (None, *wanted) and pattern.fullmatch(value):
            return made(value)
    return value


def text(value: object) -> Any:
    """The other way: scalars as a file has them, to compare with it."""
    if isinstance(value, Mapping):
        return {name: text(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [text(item) for item in value]
    found = str(value)
    return found.lower() if isinstance(value, bool) or SCALARS[0][1].fullmatch(found) else found


SCALARS: tuple[tuple[tuple[str, ...], re.Pattern[str], Callable[[str], Any]], ...] = (
    (("boolean",), re.compile(r"(?i)true|false"), lambda value: value.lower() == "true"),
    (("integer", "number"), re.compile(r"[-+]?\d+"), int),
    (("number",), re.compile(r"[-+]?\d*\.\d+"), float),
)


KINDS: Mapping[str, Callable[[object], bool]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _whole,
    "number": lambda value: _whole(value) or isinstance(value, float),
    EITHER: lambda value: _whole(value) or isinstance(value, str),
}


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _least(bound: float, value: object) -> bool:
    return (number := _number(value)) is not None and number < bound


def _most(bound: float, value: object) -> bool:
    return (number := _number(value)) is not None and number > bound


def _short(bound: int, value: object) -> bool:
    return isinstance(value, str) and len(value) < bound


def _long(bound: int, value: object) -> bool:
    return isinstance(value, str) and len(value) > bound


def _unlike(pattern: str, value: object) -> bool:
    try:
        return isinstance(value, str) and not re.search(pattern, value)
    except re.error:
        return False  # Go's expressions have forms that Python's lack: the server checks them


def _few(bound: int, value: object) -> bool:
    return isinstance(value, list) and len(value) < bound


def _many(bound: int, value: object) -> bool:
    return isinstance(value, list) and len(value) > bound


RULES: tuple[tuple[str, Callable[[Any, object], bool], str], ...] = (
    ("minimum", _least, "is less than {}"),
    ("maximum", _most, "is more than {}"),
    ("minLength", _short, "is shorter than {}"),
    ("maxLength", _long, "is longer than {}"),
    ("pattern", _unlike, "does not match {}"),
    ("minItems", _few, "has fewer entries than {}"),
    ("maxItems", _many, "has more entries than {}"),
)


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
