"""Types as OpenAPI declares them: fields, list keys, atomic maps. Built-in kinds from schema.json, others
from their CRD.
"""

from __future__ import annotations

import json
from collections.abc import Callable, ItemsView, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from typing import Any, Literal

Form = Literal["object", "array", "scalar", "any"]
Lookup = Callable[[str], Mapping[str, Any]]
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
OPEN = {QUANTITY, "io.k8s.apimachinery.pkg.util.intstr.IntOrString"}
SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


@dataclass(frozen=True)
class Type:
    """One declared type. An undeclared one (`any`) has atomic lists and granular maps, as a server deduces
    them.
    """

    raw: Mapping[str, Any]
    lookup: Lookup
    name: str = ""

    @cached_property
    def form(self) -> Form:
        """The form of the value."""
        if self.name in OPEN or self.raw.get("x-kubernetes-int-or-string"):
            return "scalar"
        kind = self.raw.get("type", "")
        if kind in ("object", "array"):
            return (
                "any"
                if kind == "object" and not self.closed and "additionalProperties" not in self.raw
                else kind
            )
        return "scalar" if kind in SCALARS or "format" in self.raw else "any"

    @property
    def closed(self) -> bool:
        """True if only declared fields are allowed."""
        return "properties" in self.raw

    @property
    def open(self) -> bool:
        """True where undeclared fields are kept although others are declared."""
        return bool(self.raw.get("x-kubernetes-preserve-unknown-fields"))

    @property
    def atomic(self) -> bool:
        """True where an apply owns the value whole."""
        if self.form == "array":
            return bool(self.raw.get("x-kubernetes-list-type", "atomic") == "atomic")
        return bool(self.raw.get("x-kubernetes-map-type") == "atomic")

    @property
    def keys(self) -> tuple[str, ...]:
        """The fields that name an item of a list that is a map."""
        return (
            tuple(self.raw.get("x-kubernetes-list-map-keys", ()))
            if self.raw.get("x-kubernetes-list-type") == "map"
            else ()
        )

    @property
    def merge_key(self) -> str:
        """The field by which a strategic merge patch finds an item; empty where lists are replaced (or are
        sets).
        """
        return str(self.raw.get("x-kubernetes-patch-merge-key", ""))

    @property
    def merges(self) -> bool:
        """True where a strategic merge patch merges a list."""
        return "merge" in str(self.raw.get("x-kubernetes-patch-strategy", ""))

    @property
    def fields(self) -> ItemsView[str, Type]:
        """The declared fields."""
        return self._fields.items()

    def declared(self, name: str) -> bool:
        """True for a field of a struct; False for a key of a map."""
        return name in self._fields

    def field(self, name: str) -> Type | None:
        """The type of a field or of a map's value; None if the type doesn't have it."""
        return self._fields.get(name, self._extra)

    @cached_property
    def _fields(self) -> dict[str, Type]:
        return {name: self._resolve(raw) for name, raw in self.raw.get("properties", {}).items()}

    @cached_property
    def _extra(self) -> Type | None:
        """The type of a field that is not declared."""
        extra = self.raw.get("additionalProperties")
        if isinstance(extra, Mapping):
            return self._resolve(extra)
        return ANY if extra or self.open or not self.closed else None

    @cached_property
    def item(self) -> Type:
        """The type of a list's items."""
        raw = self.raw.get("items")
        return self._resolve(raw) if raw else ANY

    def wants(self, value: object) -> str:
        """The expected type's name where the value is of another one; empty where it fits."""
        kind = self.raw.get("type", "")
        if value is None or self.form == "any" or (self.form == "scalar" and kind not in SCALARS):
            return ""
        if self.form == "array":
            return "" if isinstance(value, list) else "list"
        if self.form == "object":
            return "" if isinstance(value, dict) else "map"
        fits = isinstance(value, SCALARS[kind]) and (kind == "boolean" or not isinstance(value, bool))
        return "" if fits else str(kind)

    def _resolve(self, raw: Mapping[str, object]) -> Type:
        name = raw.get("$ref")
        return Type(self.lookup(name), self.lookup, name) if isinstance(name, str) else Type(raw, self.lookup)


def _nothing(name: str) -> Mapping[str, Any]:
    raise KeyError(name)


ANY = Type({}, _nothing)


@dataclass(frozen=True)
class Catalogue:
    """Return a server's declarations of the stock kinds: resources by group version, and types by name."""

    resources: Mapping[str, list[dict[str, Any]]]
    types: Mapping[str, Mapping[str, Any]] = field(repr=False)
    _read: dict[str, Type] = field(default_factory=dict, repr=False)

    def type(self, name: str) -> Type:
        """A built-in type; ANY where it has no name."""
        if name and name not in self._read:
            self._read[name] = Type(self.types[name], self.types.__getitem__, name)
        return self._read[name] if name else ANY


@cache
def builtin() -> Catalogue:
    """The stock kinds, as a kube-apiserver 1.36 declared them (script/kube_schema.py wrote the file)."""
    data = json.loads(resources.files(__package__).joinpath("schema.json").read_text())
    return Catalogue(data["resources"], data["types"])


def of_custom(schema: Mapping[str, Any]) -> Type:
    """The type of a custom resource: its schema with the metadata that every object has."""
    catalogue = builtin()
    properties = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        **schema.get("properties", {}),
    }
    properties["metadata"] = {"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    return Type({"type": "object", **schema, "properties": properties}, catalogue.types.__getitem__)
