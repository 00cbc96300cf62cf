"""Custom resources against the value rules of their schema: required, enum, limits, pattern."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from bfinfra.sandbox.kubernetes.errors import Cause
from bfinfra.sandbox.kubernetes.types import Type


def schema_causes(declared: Type, value: object, path: str = "") -> Iterator[Cause]:
    """Everything that is wrong with a value, in the words of the API server's CRD validation."""
    raw = declared.raw
    if isinstance(value, dict):
        for name in raw.get("required", ()):
            if name not in value:
                yield Cause("FieldValueRequired", "Required value", f"{path}.{name}".lstrip("."))
        for name, child in value.items():
            below = declared.field(name)
            yield from (
                schema_causes(below, child, f"{path}.{name}".lstrip("."))
                if below and name != "metadata"
                else ()
            )
    elif isinstance(value, list):
        for position, child in enumerate(value):
            yield from schema_causes(declared.item, child, f"{path}[{position}]")
    else:
        yield from _scalar(raw, value, path)


def _scalar(raw: Any, value: Any, path: str) -> Iterator[Cause]:
    if "enum" in raw and value not in raw["enum"]:
        known = ", ".join(json.dumps(each) for each in raw["enum"])
        yield Cause(
            "FieldValueNotSupported",
            f"Unsupported value: {json.dumps(value)}: supported values: {known}",
            path,
        )
    if isinstance(value, str):
        if "pattern" in raw and not re.search(raw["pattern"], value):
            yield _wrong(path, value, f"{path} in body should match '{raw['pattern']}'")
        if len(value) < raw.get("minLength", 0):
            yield _wrong(path, value, f"{path} in body should be at least {raw['minLength']} chars long")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if "minimum" in raw and value < raw["minimum"]:
            yield _wrong(path, value, f"{path} in body should be greater than or equal to {raw['minimum']}")
        if "maximum" in raw and value > raw["maximum"]:
            yield _wrong(path, value, f"{path} in body should be less than or equal to {raw['maximum']}")


def _wrong(path: str, value: object, why: str) -> Cause:
    return Cause("FieldValueInvalid", f"Invalid value: {json.dumps(value)}: {why}", path)
