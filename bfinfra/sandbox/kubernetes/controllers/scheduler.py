"""The scheduler, and what admission adds to every pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal

from bfinfra.sandbox.kubernetes.allocation import SelectorError
from bfinfra.sandbox.kubernetes.controllers import pod_claims
from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.controllers.pod_claims import PodClaims
from bfinfra.sandbox.kubernetes.errors import forbidden
from bfinfra.sandbox.kubernetes.objects import Object, condition, dig, name_of, namespace_of, stamp
from bfinfra.sandbox.kubernetes.pods import claims_of, selects, tolerates
from bfinfra.sandbox.kubernetes.quantity import amount
from bfinfra.sandbox.kubernetes.store import Change, Key
from bfinfra.sandbox.kubernetes.target import Options, Target

PODS: Key = ("", "pods")
NODES: Key = ("", "nodes")
CLAIMS: Key = ("", "persistentvolumeclaims")
SCHEDULER = "kube-scheduler"
ENDED = ("Succeeded", "Failed")
DEVICES = (pod_claims.CLAIMS, pod_claims.CLASSES, pod_claims.SLICES)
NOT_HELPFUL = "Preemption is not helpful for scheduling"
UNSCHEDULABLE = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


class Scheduler:
    """Gives pods nodes in turn, where one fits and their claims are bound."""

    kinds = (PODS,)

    def __init__(self, loop: Loop) -> None:
        self._cluster = loop.cluster
        loop.cluster.admissions.append(self._account)

    def touched(self, change: Change) -> Iterable[Item]:
        """Pods without a node, when nodes, claims or devices changed, or a pod left room behind."""
        if change.key in (NODES, CLAIMS, *DEVICES) or _leaves(change):
            for pod in self._cluster.store.all(
                PODS, namespace_of(change.after) if change.key == CLAIMS else ""
            ):
                waits = change.key not in DEVICES or dig(pod, "spec", "resourceClaims")
                if waits and not dig(pod, "spec", "nodeName"):
                    yield (PODS, namespace_of(pod), name_of(pod))

    def look(self, item: Item, thing: Object | None) -> None:
        """A node, or the reason why there is none. A pod that lacks a resource claim is passed over."""
        if thing is None or dig(thing, "spec", "nodeName") or thing["metadata"].get("deletionTimestamp"):
            return
        found = pod_claims.of_pod(self._cluster, thing)
        if found is None:
            return
        claims = PodClaims(self._cluster, thing, found)
        nodes = self._cluster.store.all(NODES)
        why = self._unbound(item[1], thing) or _for_all(len(nodes), claims.hindrance())
        try:
            reasons = {} if why else self._against(thing, claims)
        except SelectorError as error:
            self._say(thing, "SchedulerError", f'running "DynamicResources" filter plugin: {error}')
            return
        fitting = [] if why else [node for node in nodes if not reasons[name_of(node)]]
        if fitting:
            held = [dig(pod, "spec", "nodeName") for pod in self._cluster.store.all(PODS)]
            node = min(fitting, key=lambda each: (held.count(name_of(each)), name_of(each)))
            claims.bind(name_of(node))
            self._cluster.change(
                thing, lambda live: live["spec"].__setitem__("nodeName", name_of(node)), SCHEDULER, "binding"
            )
            return
        message = why or _message(list(reasons.values()), self._cluster.version, claims=bool(found))
        self._say(thing, "Unschedulable", message)

    def _against(self, pod: Object, claims: PodClaims) -> dict[str, list[str]]:
        """Why each node does not take the pod. Raises SelectorError."""
        others = [
            each
            for each in self._cluster.store.all(PODS)
            if dig(each, "spec", "nodeName") and dig(each, "status", "phase") not in ENDED
        ]
        return {
            name_of(node): against(node, pod, others, self._cluster.version) or claims.against(name_of(node))
            for node in self._cluster.store.all(NODES)
        }

    def _say(self, pod: Object, reason: str, message: str) -> None:
        if dig(pod, "status", "conditions", 0, "message") != message:
            when = stamp(self._cluster.clock.now())
            unscheduled = condition("PodScheduled", status=False, when=when, reason=reason, message=message)
            self._cluster.set_status(pod, {**pod["status"], "conditions": [unscheduled]}, SCHEDULER)
            self._cluster.event("FailedScheduling", message, pod)

    def _unbound(self, namespace: str, pod: Object) -> str:
        for name in sorted(claims_of(pod)):
            claim = self._cluster.get("", "persistentvolumeclaims", name, namespace)
            if claim is None:
                return (
                    f"0/{len(self._cluster.store.all(NODES))} nodes are available: persistentvolumeclaim "
                    f'"{name}" not found.'
                )
            if dig(claim, "status", "phase") != "Bound":
                return (
                    f"0/{len(self._cluster.store.all(NODES))} nodes are available: pod has unbound "
                    "immediate PersistentVolumeClaims."
                )
        return ""

    def _account(self, target: Target, before: Object | None, after: Object, _: Options) -> Object:
        if target.resource.key != PODS or before is not None:
            return after
        spec = after["spec"]
        account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
        if self._cluster.get("", "serviceaccounts", account, target.namespace) is None:
            why = (
                f'error looking up service account {target.namespace}/{account}: serviceaccount "{account}" '
                "not found"
            )
            raise forbidden("pods", "", name_of(after), why)
        spec |= {
            "serviceAccountName": account,
            "serviceAccount": account,
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        return after


def _leaves(change: Change) -> bool:
    return change.key == PODS and (change.kind == "DELETED" or dig(change.after, "status", "phase") in ENDED)


def against(node: Object, pod: Object, others: list[Object], version: str) -> list[str]:
    """Return why a node does not take the pod: the first filter that refuses, in the scheduler's order and
    words.
    """
    if dig(node, "spec", "unschedulable") and not tolerates(pod, {"spec": {"taints": [UNSCHEDULABLE]}}):
        return ["node(s) were unschedulable"]
    if not tolerates(pod, node):
        taint = next(
            each
            for each in dig(node, "spec", "taints", default=[])
            if not tolerates(pod, {"spec": {"taints": [each]}})
        )
        text = f"{{{taint['key']}: {taint.get('value', '')}}}"
        return [
            f"node(s) had untolerated taint {text}"
            if _since(version, 24)
            else f"node(s) had taint {text}, that the pod didn't tolerate"
        ]
    if not selects(node, pod):
        return [
            "node(s) didn't match Pod's node affinity/selector"
            if _since(version, 21)
            else "node(s) didn't match node selector"
        ]
    return [
        f"Insufficient {name}"
        for name in _short(node, pod, [each for each in others if each["spec"]["nodeName"] == name_of(node)])
    ]


def _short(node: Object, pod: Object, others: list[Object]) -> list[str]:
    """Return the resources that the node has too little of, beside the pods that run on it."""
    room = dig(node, "status", "allocatable", default={})
    wanted, taken = _requests([pod]), _requests(others)
    return sorted(
        name for name, value in wanted.items() if value > amount(room.get(name)) - taken.get(name, 0)
    )


def _requests(pods: list[Object]) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for container in (each for pod in pods for each in pod["spec"]["containers"]):
        resources = container.get("resources") or {}
        for name, value in {**(resources.get("limits") or {}), **(resources.get("requests") or {})}.items():
            found[name] = found.get(name, Decimal(0)) + amount(value)
    return found


def _message(against: list[list[str]], version: str, *, claims: bool) -> str:
    """The event's message: how many nodes each reason excludes; from 1.24, that preemption can't help; from
    1.34, that taking devices from claims can't.
    """
    if not against:
        return "no nodes available to schedule pods"
    counts = Counter(reason for reasons in against for reason in reasons)
    head = (
        f"0/{len(against)} nodes are available: "
        + ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
        + "."
    )
    if not _since(version, 24):
        return head
    short = sum(any(reason.startswith("Insufficient") for reason in reasons) for reasons in against)
    counted = [
        *([f"{short} No preemption victims found for incoming pod"] if short else []),
        *([f"{len(against) - short} {NOT_HELPFUL}"] if len(against) > short else []),
    ]
    freed = "still not schedulable, " if claims else "no new claims to deallocate, "
    freed = freed if _since(version, 34) else ""
    return f"{head} {freed}preemption: 0/{len(against)} nodes are available: {', '.join(sorted(counted))}."


def _for_all(nodes: int, why: str) -> str:
    """The message about a reason that excludes all nodes at once; "" without one."""
    return why and (
        f"0/{nodes} nodes are available: {why}. no new claims to deallocate, preemption: 0/{nodes} nodes are "
        f"available: {nodes} {NOT_HELPFUL}."
    )


def _since(version: str, minor: int) -> bool:
    return int(version.split(".")[1]) >= minor
