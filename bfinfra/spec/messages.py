"""Turns pydantic's errors into messages for an operator."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from bfinfra.model.suggest import nearest

Error = Mapping[str, Any]
TEXT = "text"
NUMBER = "a number"
WHOLE = "a whole number"
SWITCH = "true or false"
FIELDS = "fields, each `name: value`"
ITEMS = "a list"
SHOWN = 60  # characters of a value that a message repeats

EXPECTED: dict[str, str] = {
    "string_type": TEXT,
    "int_type": WHOLE,
    "int_parsing": WHOLE,
    "int_from_float": WHOLE,
    "int_parsing_size": "a smaller whole number",
    "float_type": NUMBER,
    "float_parsing": NUMBER,
    "decimal_parsing": NUMBER,
    "finite_number": NUMBER,
    "bool_type": SWITCH,
    "bool_parsing": SWITCH,
    "model_type": FIELDS,
    "model_attributes_type": FIELDS,
    "dict_type": FIELDS,
    "mapping_type": FIELDS,
    "dataclass_type": FIELDS,
    "list_type": ITEMS,
    "tuple_type": ITEMS,
    "set_type": ITEMS,
    "frozen_set_type": ITEMS,
    "none_required": "nothing",
    "ip_any_address": "an IP address",
    "ip_v4_address": "an IPv4 address",
    "ip_v6_address": "an IPv6 address",
    "ip_any_network": "a network such as 10.0.0.0/24",
    "ip_v4_network": "an IPv4 network such as 10.0.0.0/24",
    "ip_any_interface": "an address with its prefix, such as 10.0.0.5/24",
    "ip_v4_interface": "an IPv4 address with its prefix, such as 10.0.0.5/24",
}
BOUNDS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "greater_than": lambda c: f"more than {c['gt']}",
    "greater_than_equal": lambda c: f"{c['ge']} or more",
    "less_than": lambda c: f"less than {c['lt']}",
    "less_than_equal": lambda c: f"{c['le']} or less",
    "multiple_of": lambda c: f"a multiple of {c['multiple_of']}",
    "string_too_short": lambda c: f"at least {c['min_length']} characters",
    "string_too_long": lambda c: f"at most {c['max_length']} characters",
    "too_short": lambda c: f"at least {c['min_length']} of them",
    "too_long": lambda c: f"at most {c['max_length']} of them",
    "string_pattern_mismatch": lambda c: f"text of the form {c['pattern']}",
    "literal_error": lambda c: f"one of {', '.join(_choices(c))}",
    "enum": lambda c: f"one of {', '.join(_choices(c))}",
    "union_tag_invalid": lambda c: f"one of {', '.join(_choices({'expected': c['expected_tags']}))}",
}


def expected(error: Error) -> str:
    """Return what is expected, to follow the word "expected"; "" if the error names nothing expected."""
    kind, context = error["type"], error.get("ctx", {})
    return BOUNDS[kind](context) if kind in BOUNDS else EXPECTED.get(kind, "")


def sentence(error: Error) -> str:
    """The message of a field's own check, without pydantic's prefix."""
    inner = error.get("ctx", {}).get("error")
    return str(inner) if inner is not None else re.sub(r"^Input should be ", "expected ", error["msg"])


def choice(errors: list[Error]) -> str:
    """Advice with the most similar allowed word, or ""."""
    allowed = [
        word
        for error in errors
        if error["type"] in ("literal_error", "enum")
        for word in _choices(error["ctx"])
    ]
    value = errors[0]["input"]
    return (
        near
        if allowed and isinstance(value, str) and (near := nearest(value, allowed)).startswith("did you mean")
        else ""
    )


def found(error: Error) -> str:
    """Return what was found, cut to SHOWN characters."""
    value = error["input"]
    if value is None:
        return "found nothing"
    if isinstance(value, str):
        return f"found {value[:SHOWN]!r}{'…' if len(value) > SHOWN else ''}"
    if isinstance(value, (list, tuple)):
        return "found a list"
    return "found fields" if isinstance(value, dict) else f"found {value}"


def _choices(context: Mapping[str, Any]) -> list[str]:
    return re.findall(r"'([^']*)'", context["expected"]) or [context["expected"]]
