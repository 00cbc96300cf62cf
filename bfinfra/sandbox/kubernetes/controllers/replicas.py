"""Controllers of Deployments, ReplicaSets, StatefulSets and DaemonSets: they make pods and count them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import partial

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.objects import (
    Object,
    condition,
    copied,
    dig,
    is_ready,
    name_of,
    namespace_of,
    owned_by,
    random_suffix,
    stamp,
    uid_of,
)
from bfinfra.sandbox.kubernetes.pods import REQUIRED, selects, tolerates
from bfinfra.sandbox.kubernetes.store import Change, Key

PODS: Key = ("", "pods")
NODES: Key = ("", "nodes")
DEPLOYMENTS, SETS, STATEFUL, DAEMONS = (
    ("apps", plural) for plural in ("deployments", "replicasets", "statefulsets", "daemonsets")
)
OWNERS = {"ReplicaSet": SETS, "StatefulSet": STATEFUL, "DaemonSet": DAEMONS, "Deployment": DEPLOYMENTS}
HASH = "pod-template-hash"


class Replicas:
    """The controllers of apps/v1. A new template replaces all pods at once, without surge; with OnDelete
    none.
    """

    kinds = (DEPLOYMENTS, SETS, STATEFUL, DAEMONS)

    def __init__(self, loop: Loop) -> None:
        self._loop, self._cluster = loop, loop.cluster

    def touched(self, change: Change) -> Iterable[Item]:
        """The owner of a pod or of a replica set; every daemon set when nodes change."""
        if change.key in (PODS, SETS):
            for owner in change.after["metadata"].get("ownerReferences") or []:
                if owner["kind"] in OWNERS:
                    yield (OWNERS[owner["kind"]], namespace_of(change.after), owner["name"])
        elif change.key in (NODES, ("", "resourcequotas")):
            for key in (DAEMONS, SETS, STATEFUL):
                for each in self._cluster.store.all(key):
                    yield (key, namespace_of(each), name_of(each))

    def look(self, item: Item, thing: Object | None) -> None:
        """Make or delete pods until there are as many as wanted."""
        if thing is None or thing["metadata"].get("deletionTimestamp"):
            return
        if item[0] == DEPLOYMENTS:
            self._deployment(thing)
        elif item[0] == DAEMONS:
            self._daemons(thing)
        else:
            self._set(thing, item[0])

    def _deployment(self, thing: Object) -> None:
        mark, replicas = template_hash(thing), thing["spec"].get("replicas", 1)
        name, labels = (
            f"{name_of(thing)}-{mark}",
            {**dig(thing, "spec", "template", "metadata", "labels", default={}), HASH: mark},
        )
        template = {
            **copied(thing["spec"]["template"]),
            "metadata": {**thing["spec"]["template"].get("metadata", {}), "labels": labels},
        }
        current = self._cluster.ensure(
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "metadata": {
                    "name": name,
                    "namespace": namespace_of(thing),
                    "labels": labels,
                    "ownerReferences": [owned_by(thing)],
                },
                "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
            }
        )
        for each in self._owned(thing, SETS):
            wanted = replicas if name_of(each) == name else 0
            if each["spec"].get("replicas") != wanted:
                self._cluster.change(each, partial(_scale, replicas=wanted))
        ready = dig(current, "status", "readyReplicas", default=0)
        self._write(
            thing,
            _counted(thing, replicas=dig(current, "status", "replicas", default=0), ready=ready)
            | self._conditions(thing, ready >= replicas),
        )

    def _conditions(self, thing: Object, ready: bool) -> Object:
        before = {each["type"]: each for each in dig(thing, "status", "conditions", default=[])}
        when = stamp(self._cluster.clock.now())
        reason = "MinimumReplicasAvailable" if ready else "MinimumReplicasUnavailable"
        available = condition("Available", status=ready, when=when, reason=reason)
        progress = condition(
            "Progressing",
            status=True,
            when=when,
            reason="NewReplicaSetAvailable" if ready else "ReplicaSetUpdated",
        )
        same = [
            each if not (old := before.get(each["type"])) or _facts(old) != _facts(each) else old
            for each in (available, progress)
        ]
        return {"conditions": same}

    def _set(self, thing: Object, key: Key) -> None:
        wanted = thing["spec"].get("replicas", 1)
        pods = [pod for pod in self._owned(thing, PODS) if not pod["metadata"].get("deletionTimestamp")]
        names = [f"{name_of(thing)}-{number}" for number in range(wanted)] if key == STATEFUL else []
        missing = (
            [name for name in names if name not in {name_of(pod) for pod in pods}]
            if names
            else [""] * (wanted - len(pods))
        )
        made = [self._loop.made(thing, _pod(thing, name)) for name in missing]
        for pod in pods[wanted:]:
            self._cluster.remove(pod)
        ready = sum(1 for pod in pods[:wanted] if is_ready(pod))
        missing_still = made.count(None)
        failure = dig(thing, "status", "conditions") or [
            condition(
                "ReplicaFailure", status=True, when=stamp(self._cluster.clock.now()), reason="FailedCreate"
            )
        ]
        self._write(
            thing,
            _counted(thing, replicas=wanted - missing_still, ready=ready)
            | ({"conditions": failure} if missing_still else {}),
        )

    def _daemons(self, thing: Object) -> None:
        template = dig(thing, "spec", "template")
        nodes = [
            name_of(node)
            for node in self._cluster.store.all(NODES)
            if selects(node, template) and tolerates(template, node, ("NoSchedule", "NoExecute"))
        ]
        pods = {_aimed(pod): pod for pod in self._owned(thing, PODS)}
        mark, by_hand = template_hash(thing), dig(thing, "spec", "updateStrategy", "type") == "OnDelete"
        for node in nodes:
            if node not in pods:
                pod = _pod(thing, "")
                _aim(pod["spec"], node)
                pod["metadata"]["labels"] = {
                    **pod["metadata"].get("labels", {}),
                    "controller-revision-hash": mark,
                }
                if self._loop.made(thing, pod) is None:
                    continue
            elif not by_hand and dig(pods[node], "metadata", "labels", "controller-revision-hash") != mark:
                self._cluster.remove(pods[node])
        for node, pod in pods.items():
            if node not in nodes:
                self._cluster.remove(pod)
        ready = sum(1 for pod in pods.values() if is_ready(pod))
        updated = sum(
            1 for pod in pods.values() if dig(pod, "metadata", "labels", "controller-revision-hash") == mark
        )
        self._write(
            thing,
            {
                "desiredNumberScheduled": len(nodes),
                "currentNumberScheduled": len(pods),
                "updatedNumberScheduled": updated,
                "numberReady": ready,
                "numberAvailable": ready,
                "numberMisscheduled": 0,
                "observedGeneration": thing["metadata"].get("generation", 1),
            },
        )

    def _owned(self, thing: Object, key: Key) -> list[Object]:
        uid = uid_of(thing)
        return [
            each
            for each in self._cluster.store.all(key, namespace_of(thing))
            if any(owner.get("uid") == uid for owner in each["metadata"].get("ownerReferences") or [])
        ]

    def _write(self, thing: Object, status: Object) -> None:
        if thing.get("status") != status:
            self._cluster.set_status(thing, status)


def _counted(thing: Object, *, replicas: int, ready: int) -> Object:
    status: Object = {"observedGeneration": thing["metadata"].get("generation", 1), "replicas": replicas}
    counts = {
        "readyReplicas": ready,
        "availableReplicas": ready,
        "updatedReplicas": replicas if thing["kind"] != "ReplicaSet" else 0,
        "fullyLabeledReplicas": replicas if thing["kind"] == "ReplicaSet" else 0,
        "unavailableReplicas": replicas - ready if thing["kind"] == "Deployment" else 0,
    }
    return {**status, **{key: value for key, value in counts.items() if value}}


def _facts(each: Object) -> tuple[object, ...]:
    return (each.get("status"), each.get("reason"))


def template_hash(thing: Object) -> str:
    """The revision of the pods that a controller makes now."""
    return hashlib.sha256(json.dumps(thing["spec"]["template"], sort_keys=True).encode()).hexdigest()[:10]


def _pod(owner: Object, name: str) -> Object:
    template = copied(owner["spec"]["template"])
    own = (
        {"name": name}
        if name
        else {"name": f"{name_of(owner)}-{random_suffix()}", "generateName": f"{name_of(owner)}-"}
    )
    metadata = {
        **template.get("metadata", {}),
        **own,
        "namespace": namespace_of(owner),
        "ownerReferences": [owned_by(owner)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def _aim(spec: Object, node: str) -> None:
    """Let a pod of a daemon set run on a node: with claims by the scheduler, as it allocates them."""
    if not spec.get("resourceClaims"):
        spec["nodeName"] = node
        return
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = copied(spec.get("affinity") or {})
    affinity.setdefault("nodeAffinity", {})[REQUIRED] = {"nodeSelectorTerms": [term]}
    spec["affinity"] = affinity
    taints = ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
    tolerated = [
        {"key": f"node.kubernetes.io/{each}", "operator": "Exists", "effect": "NoSchedule"} for each in taints
    ]
    spec["tolerations"] = [*(spec.get("tolerations") or []), *tolerated]


def _aimed(pod: Object) -> str:
    """The node that a pod of a daemon set is for."""
    terms = dig(pod, "spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms", 0, "matchFields", 0)
    return str(dig(pod, "spec", "nodeName") or dig(terms, "values", 0, default=""))


def _scale(live: Object, replicas: int) -> None:
    live["spec"]["replicas"] = replicas
