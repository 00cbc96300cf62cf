"""The words that editors show with the schema: titles of objects, which appear in their messages, and a
sentence for what doesn't fit a pattern.

`patternErrorMessage` is an extension of yaml-language-server and VS Code; validators ignore it.
"""

from __future__ import annotations

import re
from collections.abc import Container

from bfinfra.model.secret import WAYS
from bfinfra.spec.schema_values import Schema

TITLES = {
    "vcenter": "vcenter settings",
    "drift": "drift settings",
    "values": "declared value",
    "value_reference": "value reference",
}


def with_words(whole: Schema, kinds: Container[str]) -> Schema:
    """The same schema with titles and messages."""
    definitions = {
        name: {**_worded(node, "", node.get("description", "")), "title": _title(name)}
        for name, node in whole["definitions"].items()
    }
    properties = {
        name: _worded(node, f"{name} resources" if name in kinds else name)
        for name, node in whole["properties"].items()
    }
    return {**whole, "properties": properties, "definitions": definitions}


def _title(name: str) -> str:
    """Of a model: its kind, and what it is in it."""
    kind, _, model = name.partition(".")
    inner = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", model).lower()
    return f"{kind} {inner}".strip() if inner else TITLES.get(name, name)


def _worded(node: Schema, name: str, about: str = "", example: str = "") -> Schema:
    """A node with its titles and messages. `name` and `about`: of the field that it belongs to."""
    about = node.get("description", about)
    example = str(node["examples"][0]) if node.get("examples") else example
    found = dict(node)
    for key in ("anyOf", "oneOf", "allOf"):
        if key in found:
            found[key] = [_worded(each, name, about, example) for each in found[key]]
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), dict):
            found[key] = _worded(found[key], name, about, example)
    for key in ("properties", "patternProperties"):
        if isinstance(found.get(key), dict):
            found[key] = {
                field: _worded(each, field if key == "properties" else name)
                for field, each in found[key].items()
            }
    if isinstance(rule := found.get("propertyNames"), dict) and "description" in rule:
        found["propertyNames"] = {**rule, "patternErrorMessage": f"Expected a name: {rule['description']}."}
    return {**found, **_message(found, about, example), **_titled(found, name)}


def _message(node: Schema, about: str, example: str) -> Schema:
    if "pattern" not in node:
        return {}
    words = f"Expected something such as {example}." if example else "This does not fit."
    return {"patternErrorMessage": words if example and example in about else f"{words} {about}".strip()}


def _titled(node: Schema, name: str) -> Schema:
    """A title for an object. An editor names one of a secret's forms where none fits: all have the same."""
    if node.get("type") != "object" or not name:
        return {}
    required = node.get("required", [])
    if len(required) == 1 and required[0] in WAYS and list(node["properties"]) == required:
        return {"title": "secret by reference, such as {env: NAME}"}
    return {"title": name}
