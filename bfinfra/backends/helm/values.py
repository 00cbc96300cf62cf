"""Values of a chart: a site has scalars as text, and a chart wants numbers and switches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

NUMBER = re.compile(r"[-+]?\d+(\.\d+)?")
WHOLE = re.compile(r"0|[-+]?[1-9]\d{0,17}")
SWITCHES = {"true": True, "false": False}


def merged(below: Mapping[str, object], above: Mapping[str, object]) -> dict[str, Any]:
    """As Helm merges values: maps field by field, all else whole."""
    found = dict(below)
    for name, given in above.items():
        value, before = given, found.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            value = merged(before, value)
        found[name] = value
    return found


def typed(value: object, default: object) -> Any:
    """A value with the type of the chart's default: text where that is text. Without a default, switches and
    whole numbers are what they look like, and all else is text, so that a version 1.10 stays one.
    """
    if isinstance(value, Mapping):
        known = default if isinstance(default, Mapping) else {}
        return {name: typed(each, known.get(name)) for name, each in value.items()}
    if isinstance(value, list | tuple):
        first = default[0] if isinstance(default, list) and default else None
        return [typed(each, first) for each in value]
    if not isinstance(value, str) or isinstance(default, str):
        return value
    if value.lower() in SWITCHES:
        return SWITCHES[value.lower()]
    if WHOLE.fullmatch(value):
        return int(value)
    return float(value) if isinstance(default, float) and NUMBER.fullmatch(value) else value
