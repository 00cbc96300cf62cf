"""metadata.managedFields: read, kept up to date by updates, written back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from bfinfra.sandbox.kubernetes.fieldset import Path, Paths, differing, from_fields, to_fields, tracked
from bfinfra.sandbox.kubernetes.objects import Object
from bfinfra.sandbox.kubernetes.types import Type

ALWAYS_THERE = {
    tuple(f"f:{name}" for name in path.split("."))
    for path in (
        "spec",
        "status",
        "spec.names",
        "spec.finalizers",
        "spec.template",
        "spec.template.metadata",
        "spec.template.spec",
        "spec.template.spec.containers",
        "spec.containers",
        "spec.strategy",
        "spec.updateStrategy",
        "spec.resources",
        "spec.jobTemplate",
        "spec.jobTemplate.spec",
        "spec.jobTemplate.spec.template",
        "spec.jobTemplate.spec.template.spec",
        "spec.jobTemplate.spec.template.spec.containers",
        "spec.jobTemplate.metadata",
        "spec.jobTemplate.spec.template.metadata",
    )
}
"""Containers that Go writes even if they are not set: an update of a built-in kind never adds them."""


@dataclass(frozen=True)
class Manager:
    """The writer of fields: its manager, operation, version and sub-resource."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""

    @property
    def described(self) -> str:
        """As a conflict names it."""
        return (
            f'"{self.name}"'
            + (f" with subresource {self.subresource!r}".replace("'", '"') if self.subresource else "")
            + (f" using {self.api_version}" if self.operation == "Update" else "")
        )


Owners = dict[Manager, tuple[Paths, str]]  # the set, and when it changed last


def read(thing: Object | None) -> Owners:
    """The owners of an object's fields."""
    entries = (thing or {}).get("metadata", {}).get("managedFields") or []
    return {
        Manager(
            each.get("manager", ""),
            each.get("operation", ""),
            each.get("apiVersion", ""),
            each.get("subresource", ""),
        ): (frozenset(from_fields(each.get("fieldsV1") or {})), each.get("time", ""))
        for each in entries
    }


def written(thing: Object, owners: Owners) -> Object:
    """The object with these owners; managers that own nothing are left out, applies come first."""
    entries = [
        _entry(manager, paths, when) for manager, (paths, when) in sorted(owners.items(), key=_order) if paths
    ]
    metadata = {key: value for key, value in thing["metadata"].items() if key != "managedFields"}
    return {**thing, "metadata": {**metadata, "managedFields": entries} if entries else metadata}


def _order(item: tuple[Manager, tuple[Paths, str]]) -> tuple[bool, str, str]:
    manager, (_, when) = item
    return (manager.operation != "Apply", when, manager.name)


def _entry(manager: Manager, paths: Paths, when: str) -> Mapping[str, object]:
    entry = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": when,
        "fieldsType": "FieldsV1",
        "fieldsV1": to_fields(paths),
    }
    return {**entry, "subresource": manager.subresource} if manager.subresource else entry


def updated(
    before: Object | None, after: Object, manager: Manager, when: str, paths: tuple[Paths, Paths]
) -> Object:
    """The fields' owners after an update: the writer owns what it changed, and what it removed has no owner.
    `paths`: what `moved` returned.
    """
    changed, removed = paths
    owners = read(before)
    owners = {
        each: ((paths - removed) if each == manager else (paths - removed - changed), at)
        for each, (paths, at) in owners.items()
    }
    mine, _ = owners.get(manager, (frozenset(), when))
    if changed:
        owners[manager] = (mine | changed, when)
    return written(after, owners)


def moved(declared: Type, before: Object | None, after: Object, *, custom: bool) -> tuple[Paths, Paths]:
    """(changed or added, removed) tracked paths between two states of an object."""
    changed, removed = differing(declared, bare(before or {}), bare(after))
    hidden: set[Path] = set() if custom else ALWAYS_THERE
    return tracked(changed) - hidden, tracked(removed) - hidden


def bare(thing: Object) -> Object:
    """The object without managedFields, with metadata."""
    return {
        **thing,
        "metadata": {
            key: value for key, value in thing.get("metadata", {}).items() if key != "managedFields"
        },
    }
