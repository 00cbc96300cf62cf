"""The few protobuf bodies that kubectl insists on (reviews, `create secret` and its like), read without a
protobuf library.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

MAGIC = b"k8s\x00"
TEXT: Any = str
META = ("metadata", "Meta")
FIELDS: dict[str, dict[int, tuple[str, Any]]] = {
    "Meta": {
        1: ("name", TEXT),
        2: ("generateName", TEXT),
        3: ("namespace", TEXT),
        11: ("labels", "map:text"),
        12: ("annotations", "map:text"),
    },
    "Secret": {
        1: META,
        2: ("data", "map:bytes"),
        3: ("type", TEXT),
        4: ("stringData", "map:text"),
        5: ("immutable", bool),
    },
    "ConfigMap": {1: META, 2: ("data", "map:text"), 3: ("binaryData", "map:bytes"), 4: ("immutable", bool)},
    "Namespace": {1: META},
    "ServiceAccount": {1: META},
    "ResourceQuota": {1: META, 2: ("spec", "QuotaSpec")},
    "QuotaSpec": {1: ("hard", "map:quantity")},
    "SelfSubjectAccessReview": {2: ("spec", "AccessSpec")},
    "AccessSpec": {
        1: ("resourceAttributes", "ResourceAttributes"),
        2: ("nonResourceAttributes", "NonResourceAttributes"),
    },
    "ResourceAttributes": {
        1: ("namespace", TEXT),
        2: ("verb", TEXT),
        3: ("group", TEXT),
        4: ("version", TEXT),
        5: ("resource", TEXT),
        6: ("subresource", TEXT),
        7: ("name", TEXT),
    },
    "NonResourceAttributes": {1: ("path", TEXT), 2: ("verb", TEXT)},
    "SelfSubjectRulesReview": {2: ("spec", "RulesSpec")},
    "RulesSpec": {1: ("namespace", TEXT)},
    "SelfSubjectReview": {},
    "TokenReview": {2: ("spec", "TokenSpec")},
    "TokenSpec": {1: ("token", TEXT)},
    "TokenRequest": {2: ("spec", "TokenRequestSpec")},
    "TokenRequestSpec": {4: ("expirationSeconds", int)},
}
"""Message → field number → name and type, as k8s.io/api declares them."""


def decode(data: bytes) -> dict[str, Any] | None:
    """The object in Kubernetes' protobuf envelope; None where its kind is not among those read here.
    Raises ValueError if it is broken.
    """
    if not data.startswith(MAGIC):
        raise ValueError("no Kubernetes protobuf envelope")
    envelope = dict(_parts(data[len(MAGIC) :]))
    meta = dict(_parts(envelope.get(1, b"")))
    version, kind = meta.get(1, b"").decode(), meta.get(2, b"").decode()
    if kind not in FIELDS:
        return None
    return {
        "apiVersion": version,
        "kind": kind,
        **({"metadata": {}, "spec": {}} if kind.endswith(("Review", "Request")) else {}),
        **_message(kind, envelope.get(2, b"")),
    }


def _message(name: str, data: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, value in _parts(data):
        if number not in FIELDS[name]:
            continue
        field, kind = FIELDS[name][number]
        if isinstance(kind, str) and kind.startswith("map:"):
            key, item = _entry(kind, value)
            found.setdefault(field, {})[key] = item
        elif isinstance(kind, str):
            found[field] = _message(kind, value)
        else:
            found[field] = value.decode() if kind is str else kind(value)
    return {key: value for key, value in found.items() if value != ""}


def _entry(kind: str, data: bytes) -> tuple[str, str]:
    parts = dict(_parts(data))
    key, value = parts.get(1, b"").decode(), parts.get(2, b"")
    if kind == "map:quantity":
        value = dict(_parts(value)).get(1, b"")
    return key, base64.b64encode(value).decode() if kind == "map:bytes" else value.decode()


def _parts(data: bytes) -> Iterator[tuple[int, Any]]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
        elif tag & 7 == 2:
            size, at = _varint(data, at)
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            raise ValueError(f"wire type {tag & 7} is not read here")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data):
            raise ValueError("cut off")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
