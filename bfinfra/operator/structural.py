"""The site language's JSON Schema as a structural schema, which a custom resource definition requires: no
references, no patterns for names, one type for each field. Loading the site checks the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from bfinfra.model.secret import WAYS
from bfinfra.model.sources import BELOW
from bfinfra.model.sources import FILE as NAMES_A_FILE

Schema = dict[str, Any]
LISTED = (
    "description",
    "type",
    "enum",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
)
LEFT = {"anything": {"x-kubernetes-preserve-unknown-fields": True}}
TEXT = ["string", "number", "boolean"]
NUMBER_OR_TEXT: Schema = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
}
SECRET: Schema = {
    "type": "object",
    "description": "A secret, by reference only: a variable of spec.env, or a file of spec.files.",
    "properties": {
        "env": {"type": "string", "minLength": 1},
        "file": {"type": "string", "minLength": 1, "pattern": BELOW},
    },
    "oneOf": [{"required": ["env"]}, {"required": ["file"]}],
}
"""A command or a keyring belongs to a user's machine; a Job has neither."""


def structural(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """A draft-07 schema as a structural one, with documentation and without defaults: what bfinfra adds is
    not the user's text.
    """
    whole = _inlined(node, definitions)
    if "anyOf" in whole:
        return _one_of(whole, definitions)
    if _is_secret(whole):
        return {**SECRET, **_description(whole)}
    made = {key: whole[key] for key in LISTED if key in whole}
    types = [each for each in _types(whole) if each != "null"]
    made |= {"nullable": True} if "null" in _types(whole) else {}
    if len(types) != 1:
        return {
            **LEFT["anything"],
            **_description(whole),
            **({"nullable": True} if "nullable" in made else {}),
        }
    made["type"] = types[0]
    if "(?" in made.get("pattern", ""):
        del made["pattern"]  # the server's regular expressions have no lookaround
    if whole.get(NAMES_A_FILE):
        made["pattern"] = BELOW
    if (above := whole.get("exclusiveMinimum")) is not None:
        made |= {"minimum": above, "exclusiveMinimum": True}
    return made | _inner(whole, types[0], definitions)


def _inner(whole: Mapping[str, Any], kind: str, definitions: Mapping[str, Any]) -> Schema:
    """The inside of an object or a list."""
    convert = functools.partial(structural, definitions=definitions)
    if kind == "array":
        items = whole.get("items")
        return {"items": convert(items) if isinstance(items, dict) else dict(LEFT["anything"])}
    if kind != "object":
        return {}
    if named := {name: convert(each) for name, each in (whole.get("properties") or {}).items()}:
        return {"properties": named}
    values = whole.get("additionalProperties") or next(
        iter((whole.get("patternProperties") or {}).values()), None
    )
    return (
        {"additionalProperties": convert(values)}
        if isinstance(values, dict) and values
        else dict(LEFT["anything"])
    )


def _one_of(whole: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """A field that may be empty, or a number with or without its unit. Of other alternatives the server
    checks nothing.
    """
    forms = [_inlined(each, definitions) for each in whole["anyOf"]]
    real = [each for each in forms if each.get("type") != "null"]
    empty: Schema = {"nullable": True} if len(real) < len(forms) else {}
    if len(real) == 1:
        return {**structural(real[0], definitions), **_description(whole), **empty}
    if {"".join(_types(each)) for each in real} == {"integer", "string"}:
        return {**NUMBER_OR_TEXT, **_description(whole), **empty}
    return {**LEFT["anything"], **_description(whole), **empty}


def _types(whole: Mapping[str, Any]) -> list[str]:
    """The types of a field. Text stays text: `0x10de` and `1.20` would become other numbers on the way to the
    server.
    """
    given = whole.get("type", [])
    found = [given] if isinstance(given, str) else list(given)
    return ["string", *(["null"] if "null" in found else [])] if set(TEXT) <= set(found) else found


def _inlined(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """The node with its references replaced. What is written beside a reference counts."""
    if "$ref" in node:
        return _inlined(definitions[node["$ref"].rpartition("/")[2]], definitions)
    if len(node.get("allOf", ())) == 1:
        return {
            **_inlined(node["allOf"][0], definitions),
            **{key: value for key, value in node.items() if key != "allOf"},
        }
    return node


def _is_secret(whole: Mapping[str, Any]) -> bool:
    return {way for each in whole.get("oneOf", ()) for way in each.get("properties", ())} == set(WAYS)


def _description(whole: Mapping[str, Any]) -> Schema:
    return {"description": whole["description"]} if whole.get("description") and not _is_secret(whole) else {}
