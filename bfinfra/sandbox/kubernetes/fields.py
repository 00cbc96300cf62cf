"""Values against their declared types: what is unknown, what has the wrong type, what a server drops or fills
in.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bfinfra.sandbox.kubernetes.objects import copied
from bfinfra.sandbox.kubernetes.types import Type

GO = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}
JSON_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
JSON_NAMES_OF = {"map": "object", "list": "array"}


@dataclass(frozen=True)
class Problem:
    """A field that is not declared (`wanted` empty) or has the wrong type. `path` has dots and [positions],
    no leading dot.
    """

    path: str
    wanted: str
    value: Any

    @property
    def typed(self) -> str:
        """The message of an apply."""
        if not self.wanted:
            return f".{self.path}: field not declared in schema"
        return (
            f".{self.path}: expected {self.wanted}, got "
            f"&value.valueUnstructured{{Value:{go_value(self.value)}}}"
        )

    @property
    def validated(self) -> str:
        """The message of a custom resource's validation."""
        kind = JSON_NAMES.get(type(self.value), "null")
        return (
            f'Invalid value: "{kind}": {self.path} in body must be of type '
            f'{JSON_NAMES_OF.get(self.wanted, self.wanted)}: "{kind}"'
        )

    @property
    def decoded(self) -> str:
        """The message of a create's decoder."""
        if not self.wanted:
            return f'unknown field "{self.path}"'
        return (
            f"json: cannot unmarshal {GO.get(type(self.value), 'null')} into Go struct field {self.path} of "
            f"type {self.wanted}"
        )


def go_value(value: object) -> str:
    """A value as Go's %#v shows the plain ones."""
    return (
        json.dumps(value)
        if isinstance(value, (str, bool, int, float))
        else ("map[...]" if isinstance(value, dict) else "[]interface {}{...}")
    )


def problems(declared: Type, value: object, path: str = "") -> Iterator[Problem]:
    """All fields of a value that its type doesn't have."""
    wanted = declared.wants(value)
    if wanted:
        yield Problem(path, wanted, value)
    elif isinstance(value, dict):
        for name, child in value.items():
            below = declared.field(name)
            inner = f"{path}.{name}" if path else name
            if below is None:
                yield Problem(inner, "", child)
            else:
                yield from problems(below, child, inner)
    elif isinstance(value, list):
        for position, child in enumerate(value):
            yield from problems(declared.item, child, f"{path}[{position}]")


def kept(declared: Type, value: object, *, custom: bool) -> Any:
    """The value without undeclared fields and nulls; for built-in kinds without empty lists and maps too, as
    Go drops them.
    """
    if isinstance(value, dict):
        pairs = ((name, declared.field(name), child) for name, child in value.items() if child is not None)
        done = {name: kept(below, child, custom=custom) for name, below, child in pairs if below is not None}
        return (
            done
            if custom
            else {name: child for name, child in done.items() if not _omitted(declared, name, child)}
        )
    if isinstance(value, list):
        return [kept(declared.item, child, custom=custom) for child in value]
    return value


def _omitted(declared: Type, name: str, child: object) -> bool:
    below = declared.field(name)
    if child == []:
        return True
    return child == {} and below is not None and below.form == "object" and not below.closed


def filled(declared: Type, value: object) -> Any:
    """The value with the schema's defaults."""
    if isinstance(value, dict):
        done = {
            name: filled(below, child) if (below := declared.field(name)) else child
            for name, child in value.items()
        }
        for name, below in declared.fields:
            if name not in done and "default" in below.raw:
                done[name] = filled(below, copied(below.raw["default"]))
        return done
    return [filled(declared.item, child) for child in value] if isinstance(value, list) else value
