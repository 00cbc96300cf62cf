"""The eviction subresource: a pod is deleted, unless a disruption budget keeps it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bfinfra.sandbox.kubernetes.deletion import delete
from bfinfra.sandbox.kubernetes.errors import Refused, internal
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of
from bfinfra.sandbox.kubernetes.selectors import by_selector
from bfinfra.sandbox.kubernetes.target import Options, Target
from bfinfra.sandbox.kubernetes.writes import Writer

if TYPE_CHECKING:
    from bfinfra.sandbox.kubernetes.admission import AdmittingCluster

SETS = {"ReplicaSet": "replicasets", "StatefulSet": "statefulsets"}
DONE = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def answer(cluster: AdmittingCluster, target: Target, body: Object, options: Options) -> Object:
    """Evict a pod. Refused (429) while its budget allows no disruption."""
    pod = Writer(cluster).found(target)
    budgets = [
        each
        for each in cluster.all("policy", "poddisruptionbudgets", target.namespace)
        if by_selector(dig(each, "spec", "selector"))(pod)
    ]
    if len(budgets) > 1:
        raise internal(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    if budgets and _ready(pod) and not _allowed(cluster, budgets[0]):
        text = "Cannot evict pod as it would violate the pod's disruption budget."
        needs = f"The disruption budget {name_of(budgets[0])} allows no disruption now"
        causes = [{"reason": "DisruptionBudget", "message": needs}]
        raise Refused(429, "TooManyRequests", text, {"causes": causes})
    whole = Target(target.resource, "delete", target.namespace, target.name)
    delete(cluster, whole, dig(body, "deleteOptions", default={}), options)
    return DONE


def _allowed(cluster: AdmittingCluster, budget: Object) -> int:
    """How many of its pods may go now."""
    pods = [
        each
        for each in cluster.all("", "pods", budget["metadata"]["namespace"])
        if by_selector(dig(budget, "spec", "selector"))(each)
    ]
    healthy = sum(_ready(each) for each in pods)
    least = dig(budget, "spec", "minAvailable")
    most = dig(budget, "spec", "maxUnavailable")
    if isinstance(least, int):
        return max(0, healthy - least)
    expected = _expected(cluster, pods)
    wanted = _number(least, expected) if least is not None else expected - _number(most, expected)
    return max(0, healthy - wanted) if expected else 0


def _expected(cluster: AdmittingCluster, pods: Iterable[Object]) -> int:
    """How many pods their controllers want; 0 where one has none, of which a server can't tell."""
    found: dict[str, int] = {}
    for pod in pods:
        owner = next(
            (each for each in pod["metadata"].get("ownerReferences") or [] if each["controller"]), None
        )
        plural = SETS.get(owner["kind"]) if owner else None
        if owner is None or plural is None:
            return 0
        thing = cluster.get("apps", plural, owner["name"], pod["metadata"]["namespace"])
        found[owner["uid"]] = int(dig(thing, "spec", "replicas", default=1))
    return sum(found.values())


def _number(value: int | str, of: int) -> int:
    text = str(value or 0)
    return math.ceil(of * int(text.rstrip("%")) / 100) if text.endswith("%") else int(text)


def _ready(pod: Object) -> bool:
    conditions = dig(pod, "status", "conditions", default=[])
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")
