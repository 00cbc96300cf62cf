"""Order between resources that don't name each other: what one provides, another requires."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from bfinfra.model.refs import Key

AFTER = "after"
"""The reason for an order that the site states itself."""
Specs = Mapping[Key, Any]
Before = Mapping[Key, Mapping[Key, str]]
"""Key → the keys that must be done before it, and why: "" if a field names them."""


class Capability(NamedTuple):
    """A capability that resources provide and require: `bitfusion.io/gpu on kubernetes_cluster/k8s`. `where`:
    a cluster, a machine, a host; "" if there is only one place.
    """

    name: str
    where: str = ""

    def __str__(self) -> str:
        return f"{self.name} on {self.where}" if self.where else self.name


class Ordered:
    """The capabilities that a resource provides and requires. Pure; `site`: the specs of the whole site."""

    def provides(self, name: str, site: Specs) -> Iterable[Capability]:
        """What others can require once the resource `name` is ready."""
        return ()

    def requires(self, name: str, site: Specs) -> Iterable[Capability]:
        """What must exist before the resource `name` is created. What no resource of the site provides is
        assumed to exist.
        """
        return ()


def derived(specs: Specs) -> dict[Key, dict[Key, str]]:
    """For each resource, those that provide what it requires and those in its `after`, each with the reason.
    Resources without any are left out.
    """
    required = {
        key: tuple(spec.requires(key.name, specs))
        for key, spec in specs.items()
        if type(spec).requires is not Ordered.requires
    }
    providers = _providers(specs) if any(required.values()) else {}
    found: dict[Key, dict[Key, str]] = {}
    for key, spec in specs.items():
        needed: dict[Key, list[Capability]] = {}
        for each in required.get(key, ()):
            for other in providers.get(each, ()):
                needed.setdefault(other, []).append(each)
        why = {other: _reason(each) for other, each in needed.items()}
        if spec.after:
            why = (
                dict.fromkeys((other for each in spec.after if (other := Key.parse(each)) in specs), AFTER)
                | why
            )
        why.pop(key, None)
        if why:
            found[key] = why
    return found


def _reason(needed: list[Capability]) -> str:
    further = len(set(needed)) - 1
    return f"{needed[0]}{f' and {further} more' if further else ''}"


def _providers(specs: Specs) -> dict[Capability, list[Key]]:
    found: dict[Capability, list[Key]] = {}
    for key, spec in specs.items():
        if type(spec).provides is not Ordered.provides:  # most kinds provide nothing
            for each in spec.provides(key.name, specs):
                found.setdefault(each, []).append(key)
    return found
