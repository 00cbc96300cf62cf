"""The resources that a server serves: the stock ones of its version, and those that its CRDs add."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bfinfra.sandbox.kubernetes.objects import Object, copied
from bfinfra.sandbox.kubernetes.types import ANY, Type, builtin, of_custom

SINCE = {
    ("batch/v1", "cronjobs"): 21,
    ("policy/v1", ""): 21,
    ("discovery.k8s.io/v1", ""): 21,
    ("autoscaling/v2", ""): 23,
    ("admissionregistration.k8s.io/v1", "validatingadmissionpolicies"): 30,
    ("resource.k8s.io/v1", ""): 34,
    ("admissionregistration.k8s.io/v1", "mutatingadmissionpolicies"): 36,
}
"""The minor version that brought what not every supported server has."""

Convert = Callable[[Object, str], Object]


def relabel(thing: Object, version: str) -> Object:
    """A CRD's conversion strategy None: only the apiVersion changes."""
    return {**thing, "apiVersion": version}


@dataclass(frozen=True)
class Resource:
    """One resource in one version. `stored` is the apiVersion under which its objects are kept."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    type: Type = field(repr=False, compare=False)
    stored: str
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: Mapping[str, tuple[str, tuple[str, ...]]] = field(
        default_factory=dict, compare=False
    )  # name → kind, verbs
    columns: tuple[Mapping[str, Any], ...] = field(default=(), compare=False)
    custom: bool = False
    convert: Convert = field(default=relabel, repr=False, compare=False)

    @property
    def api_version(self) -> str:
        """`v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> tuple[str, str]:
        """The part that all versions of a resource share: group and plural."""
        return (self.group, self.plural)

    def read(self, thing: Object) -> Object:
        """An object of the store, in this version."""
        return (
            thing
            if thing["apiVersion"] == self.api_version
            else self.convert(copied(thing), self.api_version)
        )

    def write(self, thing: Object) -> Object:
        """An object of this version, as the store keeps it."""
        return thing if self.api_version == self.stored else self.convert(copied(thing), self.stored)


class Registry:
    """All resources by group version and plural."""

    def __init__(self, version: str) -> None:
        self.minor = int(re.split(r"\D+", version.lstrip("v"))[1])
        self._served: dict[tuple[str, str, str], Resource] = {}
        self._announced: dict[tuple[str, str], tuple[str, ...]] = {}
        for api_version, rows in builtin().resources.items():
            for each in stock(api_version, rows):
                if not any(SINCE.get((api_version, which), 0) > self.minor for which in ("", each.plural)):
                    self.add(each)

    def add(self, resource: Resource) -> None:
        """Serve it (again)."""
        self._served[(resource.group, resource.version, resource.plural)] = resource

    def drop(self, group: str, plural: str) -> None:
        """Serve no version of it any more."""
        self._served = {key: each for key, each in self._served.items() if each.key != (group, plural)}

    def announce(self, group: str, plural: str, versions: Iterable[str]) -> None:
        """Let the group name these versions, served or not, while a definition is being added or removed;
        without versions, that is over.
        """
        self._announced[(group, plural)] = tuple(versions)

    def named(self) -> list[str]:
        """The group versions that discovery names."""
        coming = (f"{key[0]}/{each}" for key, versions in self._announced.items() for each in versions)
        return list(dict.fromkeys([*(each.api_version for each in self.all()), *coming]))

    def all(self) -> list[Resource]:
        """Every resource in every version."""
        return list(self._served.values())

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource under this path."""
        return self._served.get((group, version, plural))

    def stored(self, group: str, plural: str) -> Resource:
        """The resource in the version in which its objects are kept."""
        return next(
            each for each in self.all() if each.key == (group, plural) and each.api_version == each.stored
        )

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource of a manifest."""
        return next(
            (each for each in self.all() if each.kind == kind and each.api_version == api_version), None
        )


def stock(api_version: str, rows: list[dict[str, Any]]) -> list[Resource]:
    """The built-in resources of one group version, their sub-resources folded in."""
    group, _, version = api_version.rpartition("/")
    below: dict[str, dict[str, tuple[str, tuple[str, ...]]]] = {}
    for row in rows:
        parent, _, child = row["name"].partition("/")
        if child:
            below.setdefault(parent, {})[child] = (row["kind"], tuple(row["verbs"]))
    return [
        Resource(
            group,
            version,
            row["name"],
            row["kind"],
            row["namespaced"],
            tuple(row["verbs"]),
            builtin().type(row["type"]),
            api_version,
            row["singularName"],
            tuple(row.get("shortNames", ())),
            tuple(row.get("categories", ())),
            below.get(row["name"], {}),
        )
        for row in rows
        if "/" not in row["name"]
    ]


VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def of_definition(crd: Object, convert: Convert = relabel) -> list[Resource]:
    """The resources that a CustomResourceDefinition adds, one a served version."""
    spec, names = crd["spec"], crd["spec"]["names"]
    stored = next(each["name"] for each in spec["versions"] if each.get("storage"))
    return [
        Resource(
            spec["group"],
            each["name"],
            names["plural"],
            names["kind"],
            spec["scope"] == "Namespaced",
            VERBS,
            of_custom(each["schema"]["openAPIV3Schema"]) if each.get("schema") else ANY,
            f"{spec['group']}/{stored}",
            names.get("singular", names["kind"].lower()),
            tuple(names.get("shortNames", ())),
            tuple(names.get("categories", ())),
            {
                name: (names["kind"] if name == "status" else "Scale", ("get", "patch", "update"))
                for name in each.get("subresources", {})
            },
            tuple(each.get("additionalPrinterColumns", ())),
            custom=True,
            convert=convert,
        )
        for each in spec["versions"]
        if each.get("served")
    ]
