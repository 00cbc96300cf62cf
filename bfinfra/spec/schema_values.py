"""The schema of the site language with `{value: NAME}` allowed wherever a field has a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfinfra.spec.merge import VALUES
from bfinfra.spec.values import NAME, VALUE

Schema = dict[str, Any]
REFERENCE: Schema = {
    "type": "object",
    "description": f"A value that the site declares under {VALUES}.",
    "properties": {VALUE: {"type": "string", "pattern": f"^{NAME}$", "description": "Its name."}},
    "required": [VALUE],
    "additionalProperties": False,
}
POINTER: Schema = {"$ref": "#/definitions/value_reference"}
SHAPES = frozenset({"$ref", "allOf", "oneOf", "enum", "const"})


def with_values(whole: Schema, kinds: Mapping[str, object]) -> Schema:
    """The schema in which fields, items and whole resources may be values. Names of resources, and the
    declarations, may not.
    """
    inner = {name: _within(node) for name, node in whole["definitions"].items() if name != VALUES}
    properties = {
        name: node if name == VALUES else _within(node) if name in kinds else _field(_within(node))
        for name, node in whole["properties"].items()
    }
    declared = {VALUES: whole["definitions"][VALUES], "value_reference": REFERENCE}
    return {**whole, "properties": properties, "definitions": {**inner, **declared}}


def _within(node: object) -> Any:
    """The node in which fields and items may be values."""
    if isinstance(node, list):
        return [_within(each) for each in node]
    if not isinstance(node, dict):
        return node
    found = dict(node)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in found:
            found[key] = _within(found[key])
    if isinstance(properties := found.get("properties"), dict):
        found["properties"] = {name: _field(_within(each)) for name, each in properties.items()}
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = _field(_within(found[key]))
    return found


def _field(node: object) -> Any:
    """The node, or a reference to a value. Nodes of text, numbers and lists get it added, as editors show
    more of one node than of alternatives.
    """
    if not isinstance(node, dict) or not node:
        return node
    if "anyOf" in node:
        return {**node, "anyOf": [*node["anyOf"], POINTER]}
    types = [node["type"]] if isinstance(node.get("type"), str) else list(node.get("type", []))
    if SHAPES & node.keys() or "object" in types or not types:
        about = {name: node[name] for name in ("description", "default") if name in node}
        rest = {name: each for name, each in node.items() if name not in about}
        if rest.keys() == {"allOf"} and len(rest["allOf"]) == 1:
            rest = rest["allOf"][0]
        return {"anyOf": [rest, POINTER], **about}
    reference = {"properties": {VALUE: {}}, "required": [VALUE], "additionalProperties": False}
    return {**node, "type": [*types, "object"], **reference}
