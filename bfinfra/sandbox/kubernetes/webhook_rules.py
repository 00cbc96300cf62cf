"""Selects the writes that a webhook gets, by its rules and selectors. Some writes no webhook gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.sandbox.kubernetes.objects import Object
from bfinfra.sandbox.kubernetes.registry import Resource
from bfinfra.sandbox.kubernetes.selectors import by_selector
from bfinfra.sandbox.kubernetes.target import Target

if TYPE_CHECKING:
    from bfinfra.sandbox.kubernetes.cluster_state import ClusterState

CONFIGURATIONS = "admissionregistration.k8s.io"
NAMESPACES = ("", "namespaces")


def exempt(resource: Resource) -> bool:
    """Configurations of admission: a webhook could else keep everybody from taking it away."""
    return resource.group == CONFIGURATIONS


def matched(hook: Object, resource: Resource, target: Target, operation: str) -> bool:
    """Return whether some rule covers the write, in this version of its resource."""
    return any(_covers(rule, resource, target, operation) for rule in hook.get("rules") or [])


def _covers(rule: Object, resource: Resource, target: Target, operation: str) -> bool:
    return (
        _one_of(rule["operations"], operation)
        and _one_of(rule["apiGroups"], resource.group)
        and _one_of(rule["apiVersions"], resource.version)
        and any(_resource(each, resource.plural, target.subresource) for each in rule["resources"])
        and _in_scope(rule.get("scope", "*"), target)
    )


def _one_of(listed: list[str], value: str) -> bool:
    return "*" in listed or value in listed


def _resource(written: str, plural: str, subresource: str) -> bool:
    first, _, second = written.partition("/")
    return first in ("*", plural) and second in ("*", subresource)


def _in_scope(scope: str, target: Target) -> bool:
    if scope == "*":
        return True
    inside = target.resource.key != NAMESPACES and bool(target.namespace)
    return inside is (scope == "Namespaced")


def selected(
    hook: Object, cluster: ClusterState, target: Target, before: Object | None, after: Object | None
) -> bool:
    """Return whether its namespaceSelector and its objectSelector match the write."""
    choose = by_selector(hook.get("objectSelector") or {})
    if not any(choose(thing) for thing in (after, before) if thing is not None):
        return False
    selector = hook.get("namespaceSelector") or {}
    if target.resource.key == NAMESPACES:
        return by_selector(selector)(after or before or {"metadata": {}})
    home = cluster.get(*NAMESPACES, target.namespace) if target.namespace else None
    return by_selector(selector)(home) if home else not target.namespace
