"""A site's files as the object in a Site. Fields that read numbers have numbers, all others have the text as
it was written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfinfra.model.site import Site
from bfinfra.operator.structural import Schema
from bfinfra.spec.resolve import merged

TRUTHS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def written(site: Site, schema: Schema) -> dict[str, Any]:
    """The files of a valid site, with overlays merged and values filled in. `schema`: the structural one of
    the site language.
    """
    found = merged(site).plain()
    return {name: shaped(value, schema["properties"].get(name, {})) for name, value in found.items()}


def shaped(value: Any, schema: Mapping[str, Any]) -> Any:
    """Text from a file as the type that the schema has there. Text that can't become it stays text, and the
    server rejects it.
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
