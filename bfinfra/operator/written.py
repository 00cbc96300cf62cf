"""A site's files as the object that a Site holds: what a field reads as a number is one, and all else is
text, as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bfinfra import kinds as registry
from bfinfra.model.errors import Problem, SiteError
from bfinfra.operator.structural import Schema
from bfinfra.spec import files
from bfinfra.spec.merge import merge

TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def written(paths: Sequence[Path], schema: Schema) -> dict[str, Any]:
    """The files merged. `schema`: the structural one of the site language. SiteError for what can't be
    read.
    """
    problems: list[Problem] = []
    blocks = merge(files.read(list(paths), problems), registry.names(), problems)
    if problems:
        raise SiteError(*problems)
    found: dict[str, Any] = {name: block.data() for name, block in blocks.settings.items()}
    for key, block in blocks.resources.items():
        found.setdefault(key.kind, {})[key.name] = block.data()
    return {name: shaped(value, schema["properties"].get(name, {})) for name, value in found.items()}


def shaped(value: Any, schema: Mapping[str, Any]) -> Any:
    """Text from a file as the type that the schema has there; what it can't be stays text, and the server
    says so.
    """
    if isinstance(value, dict):
        inner, other = schema.get("properties", {}), schema.get("additionalProperties", {})
        return {name: shaped(each, inner.get(name, other)) for name, each in value.items()}
    if isinstance(value, list):
        return [shaped(each, schema.get("items", {})) for each in value]
    return _scalar(value, schema.get("type", "")) if isinstance(value, str) else value


def _scalar(text: str, kind: str) -> Any:
    if kind == "boolean":
        return TRUTHS.get(text.lower(), text)
    try:
        return int(text, 0) if kind == "integer" else float(text) if kind == "number" else text
    except ValueError:
        return text
