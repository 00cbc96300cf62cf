"""The reasons that a server gives with 422, in its words."""

from __future__ import annotations

import json

from bfinfra.sandbox.kubernetes.errors import Cause

LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
SUBDOMAIN = rf"{LABEL}(\.{LABEL})*"
SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and "
    "must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must "
    "start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)


def required(field: str, what: str = "") -> Cause:
    """A field that must be there."""
    return Cause("FieldValueRequired", "Required value" + (f": {what}" if what else ""), field)


def wrong(field: str, value: object, why: str) -> Cause:
    """A value that may not be."""
    return Cause(
        "FieldValueInvalid", f"Invalid value: {json.dumps(value, separators=(',', ':'))}: {why}", field
    )


def immutable(field: str, value: object) -> Cause:
    """A field that may not change."""
    return wrong(field, value, "field is immutable")


def unsupported(field: str, value: object, known: tuple[str, ...]) -> Cause:
    """A word that isn't one of those that are known."""
    return Cause(
        "FieldValueNotSupported",
        f'Unsupported value: "{value}": supported values: {", ".join(json.dumps(each) for each in known)}',
        field,
    )


def duplicate(field: str, value: str) -> Cause:
    """A value that is there twice."""
    return Cause("FieldValueDuplicate", f"Duplicate value: {json.dumps(value)}", field)


def forbidden_field(field: str, why: str) -> Cause:
    """A field that may not be set."""
    return Cause("FieldValueForbidden", f"Forbidden: {why}", field)
