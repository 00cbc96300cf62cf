"""The scheduler, and what admission adds to every pod."""

from __future__ import annotations

from collections.abc import Iterable

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.errors import forbidden
from bfinfra.sandbox.kubernetes.objects import Object, condition, dig, name_of, namespace_of, stamp
from bfinfra.sandbox.kubernetes.pods import claims_of
from bfinfra.sandbox.kubernetes.quantity import amount
from bfinfra.sandbox.kubernetes.store import Change, Key
from bfinfra.sandbox.kubernetes.target import Options, Target

PODS: Key = ("", "pods")
NODES: Key = ("", "nodes")
CLAIMS: Key = ("", "persistentvolumeclaims")
SCHEDULER = "kube-scheduler"


class Scheduler:
    """Gives pods nodes in turn, where one fits and their claims are bound."""

    kinds = (PODS,)

    def __init__(self, loop: Loop) -> None:
        self._cluster = loop.cluster
        loop.cluster.admissions.append(self._account)

    def touched(self, change: Change) -> Iterable[Item]:
        """Pods without a node, when nodes or claims changed."""
        if change.key in (NODES, CLAIMS):
            for pod in self._cluster.store.all(PODS, namespace_of(change.after)):
                if not dig(pod, "spec", "nodeName"):
                    yield (PODS, namespace_of(pod), name_of(pod))

    def look(self, item: Item, thing: Object | None) -> None:
        """A node, or the reason why there is none."""
        if thing is None or dig(thing, "spec", "nodeName") or thing["metadata"].get("deletionTimestamp"):
            return
        why = self._unbound(item[1], thing)
        nodes = self._cluster.store.all(NODES)
        fitting = [] if why else [node for node in nodes if _fits(node, thing)]
        if fitting:
            held = [dig(pod, "spec", "nodeName") for pod in self._cluster.store.all(PODS)]
            node = min(fitting, key=lambda each: (held.count(name_of(each)), name_of(each)))
            self._cluster.change(thing, lambda live: live["spec"].__setitem__("nodeName", name_of(node)), SCHEDULER, "binding")
            return
        message = why or f"0/{len(nodes)} nodes are available: {_lacking(nodes, thing)}."
        told = dig(thing, "status", "conditions", 0, "message")
        if told != message:
            when = stamp(self._cluster.clock.now())
            unscheduled = condition("PodScheduled", status=False, when=when, reason="Unschedulable", message=message)
            self._cluster.set_status(thing, {**thing["status"], "conditions": [unscheduled]}, SCHEDULER)
            self._cluster.event("FailedScheduling", message, thing)

    def _unbound(self, namespace: str, pod: Object) -> str:
        for name in sorted(claims_of(pod)):
            claim = self._cluster.get("", "persistentvolumeclaims", name, namespace)
            if claim is None:
                return f'0/{len(self._cluster.store.all(NODES))} nodes are available: persistentvolumeclaim "{name}" not found.'
            if dig(claim, "status", "phase") != "Bound":
                return f"0/{len(self._cluster.store.all(NODES))} nodes are available: pod has unbound immediate PersistentVolumeClaims."
        return ""

    def _account(self, target: Target, before: Object | None, after: Object, _: Options) -> Object:
        if target.resource.key != PODS or before is not None:
            return after
        spec = after["spec"]
        account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        if self._cluster.get("", "serviceaccounts", account, target.namespace) is None:
            why = f'error looking up service account {target.namespace}/{account}: serviceaccount "{account}" not found'
            raise forbidden("pods", "", name_of(after), why)
        spec |= {"serviceAccountName": account, "serviceAccount": account, "priority": 0, "preemptionPolicy": "PreemptLowerPriority"}
        return after


def _fits(node: Object, pod: Object) -> bool:
    labels = node["metadata"].get("labels") or {}
    selector = dig(pod, "spec", "nodeSelector") or {}
    open_to_all = not any(each.get("effect") == "NoSchedule" for each in dig(node, "spec", "taints", default=[]))
    return (
        not dig(node, "spec", "unschedulable")
        and (open_to_all or bool(dig(pod, "spec", "tolerations")))
        and all(labels.get(key) == value for key, value in selector.items())
        and not _short(node, pod)
    )


def _short(node: Object, pod: Object) -> list[str]:
    room = dig(node, "status", "allocatable", default={})
    short = set()
    for container in pod["spec"]["containers"]:
        for name, value in (dig(container, "resources", "requests") or {}).items():
            if amount(value) > amount(room.get(name)):
                short.add(name)
    return sorted(short)


def _lacking(nodes: list[Object], pod: Object) -> str:
    names = sorted({name for node in nodes for name in _short(node, pod)})
    if names:
        return ", ".join(f"{len(nodes)} Insufficient {name}" for name in names)
    return "no node matches Pod's node affinity/selector or its taints are not tolerated" if nodes else "no nodes available to schedule pods"
