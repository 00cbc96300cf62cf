"""The site language as JSON Schema, for editors: every kind and field with its documentation.

Draft-07, the newest draft that every release of yaml-language-server supports completely.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import core_schema

from bfinfra import kinds as registry
from bfinfra.model.documentation import documentation, summary
from bfinfra.model.drift import DriftSettings
from bfinfra.model.names import LABEL_VALUE
from bfinfra.model.secret import Secret
from bfinfra.model.site import VCenterSettings
from bfinfra.spec.merge import ANCHORS, VALUES
from bfinfra.spec.schema_values import with_values
from bfinfra.spec.schema_words import with_words
from bfinfra.spec.values import NAME, NAME_RULE, Declaration

DIALECT = "http://json-schema.org/draft-07/schema#"
ID = "https://raw.githubusercontent.com/bfinfra/bfinfra/main/specs/site.schema.json"
TITLE = "bfinfra site"
HELD, NAMED = (
    ("default", "examples", "enum", "const"),
    ("properties", "patternProperties", "definitions"),
)  # keys that contain no schema, or schemas by name
Schema = dict[str, Any]


class _Documented(GenerateJsonSchema):
    """Adds each field's documentation to its schema."""

    def model_schema(self, schema: core_schema.ModelSchema) -> Schema:
        """The schema of a model."""
        made = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        texts = documentation(model)
        fields = {
            name: {**field, "description": texts[name]} if name in texts else field
            for name, field in made["properties"].items()
        }
        if "description" in made:
            made = {**made, "description": " ".join(made["description"].split())}
        return {**made, "properties": fields}


def schema(kinds: Mapping[str, object] | None = None, *, values: bool = True) -> Schema:
    """The whole language as one JSON Schema. `kinds`: name → Kind class instead of the registry; `values`:
    for editors: allow references to values, add titles and messages. Imports every kind.
    """
    found = {name: registry.kind(name) for name in registry.names()} if kinds is None else kinds
    definitions: Schema = {}
    properties: Schema = {
        "site": _described(
            {"type": "string", "pattern": f"^{LABEL_VALUE}$"},
            "Name of the site; every object that is made carries it.",
        ),
        "vcenter": _described(_model("vcenter", VCenterSettings, definitions), "The vCenter of the site."),
        "pepper": _described(
            TypeAdapter(Secret).json_schema(),
            "Mixed into the digests of secrets that can be written but not read back.",
        ),
        "drift": _described(_model("drift", DriftSettings, definitions), "How drift is judged."),
    }
    if values:
        properties[VALUES] = {
            "description": "Values that the site uses as `{value: NAME}`, by name.",
            "type": ["object", "null"],
            "propertyNames": {"pattern": f"^{NAME}$", "description": NAME_RULE},
            "additionalProperties": _model(VALUES, Declaration, definitions),
        }
    for name, kind in found.items():
        properties[name] = _kind(name, kind, definitions)
    whole = {
        "$schema": DIALECT,
        "title": TITLE,
        "type": "object",
        "properties": properties,
        "patternProperties": {f"^{ANCHORS}": _described({}, "Anything, such as anchors.")},
        "additionalProperties": False,
        "definitions": definitions,
    }
    draft: Schema = _draft07(whole)
    return {"$id": ID, **with_words(with_values(draft, found), found)} if values else draft


def _kind(name: str, kind: Any, definitions: Schema) -> Schema:
    """Names → fields. A resource without required fields may be empty."""
    body = _model(name, kind.Spec, definitions)
    required = any(field.is_required() for field in kind.Spec.model_fields.values())
    return {
        "description": f"{summary(kind)} Names, each with its fields.",
        "type": ["object", "null"],
        "propertyNames": {"pattern": f"^(?:{kind.Spec.name_pattern})$", "description": kind.Spec.name_rule},
        "additionalProperties": body if required else {"anyOf": [body, {"type": "null"}]},
    }


def _model(prefix: str, model: type[BaseModel], definitions: Schema) -> Schema:
    """A reference to a model's schema, which is added to `definitions` with all that it uses."""
    made = model.model_json_schema(
        ref_template=f"#/definitions/{prefix}.{{model}}", schema_generator=_Documented
    )
    for name, inner in made.pop("$defs", {}).items():
        definitions[f"{prefix}.{name}"] = inner
    definitions[prefix] = made
    return {"$ref": f"#/definitions/{prefix}"}


def _draft07(node: object) -> Any:
    """Pydantic's schemas as draft-07. Scalars may be of any type that bfinfra reads, and references are
    described.
    """
    if isinstance(node, list):
        return [_draft07(item) for item in node]
    if not isinstance(node, dict):
        return node
    found = {
        key: value
        if key in HELD
        else {name: _draft07(each) for name, each in value.items()}
        if key in NAMED
        else _draft07(value)
        for key, value in node.items()
    }
    for change in (_no_noise, _tuples, _text, _beside_ref, _references):
        found = change(found)
    return found


def _no_noise(node: Schema) -> Schema:
    """Remove pydantic's titles, which editors show instead of the documentation, and empty defaults."""
    drop = {"title"} if isinstance(node.get("title"), str) and node.get("title") != TITLE else set()
    drop |= (
        {"default"}
        if ("default" in node and node["default"] in (None, [], "")) or isinstance(node.get("default"), dict)
        else set()
    )
    return {key: value for key, value in node.items() if key not in drop}


def _tuples(node: Schema) -> Schema:
    return {
        ("items" if key == "prefixItems" else key): value
        for key, value in node.items()
        if not (key == "items" and "prefixItems" in node)
    }


def _text(node: Schema) -> Schema:
    """Accept numbers where text is expected: `version: 1.20` is right, though an editor sees a number."""
    if node.get("type") == "string" and "enum" not in node and "const" not in node:
        return {**node, "type": ["string", "number", "boolean"]}
    return node


def _beside_ref(node: Schema) -> Schema:
    """Draft-07 ignores whatever is beside a $ref."""
    if "$ref" not in node or len(node) == 1:
        return node
    return {"allOf": [{"$ref": node["$ref"]}], **{key: value for key, value in node.items() if key != "$ref"}}


def _references(node: Schema) -> Schema:
    """Describe the fields that hold the name of a resource."""
    if not isinstance(properties := node.get("properties"), dict):
        return node
    fields = {
        name: _described(field, f"Name of a {' or '.join(names)} of this site.")
        if (names := sorted(set(_names(field))))
        else field
        for name, field in properties.items()
    }
    return {**node, "properties": fields}


def _names(node: object) -> Iterator[str]:
    if isinstance(node, dict) and "properties" not in node:
        yield from node.get("x-names", ())
        for value in node.values():
            yield from _names(value)
    elif isinstance(node, list):
        for item in node:
            yield from _names(item)


def _described(node: Schema, text: str) -> Schema:
    return {**node, "description": " ".join(part for part in (node.get("description", ""), text) if part)}
