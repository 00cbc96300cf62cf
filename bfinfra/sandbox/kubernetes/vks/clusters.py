"""Clusters of the service: a MachineDeployment for each pool, machine after machine, and the conditions and
counts of the Cluster API meanwhile.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.controllers.tanzu import CONTROLLER, WorkloadClusters
from bfinfra.sandbox.kubernetes.controllers.tanzu_admission import TanzuAdmission
from bfinfra.sandbox.kubernetes.guests import Guests, Where
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, namespace_of, owned_by
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.store import Change, Key
from bfinfra.sandbox.kubernetes.tanzu_shapes import CLUSTER_API, CONTROL_PLANE, Pool
from bfinfra.sandbox.kubernetes.vks.shape import VKS, bounds

POOLS: Key = ("cluster.x-k8s.io", "machinedeployments")
OF_CLUSTER, OF_POOL = "cluster.x-k8s.io/cluster-name", "topology.cluster.x-k8s.io/deployment-name"
GONE = "sandbox.bfinfra.io/gone"
"""Annotation of a pool: the numbers of its machines that were deleted one by one, and don't come back."""
Reported = tuple[str, bool, str, str]


class VksClusters(WorkloadClusters):
    """The workload clusters of one supervisor."""

    def __init__(self, loop: Loop, guests: Guests, outside: Outside, admission: TanzuAdmission) -> None:
        super().__init__(VKS, loop, guests, outside, admission)

    def touched(self, change: Change) -> Iterable[Item]:
        """Also those of a pool that is scaled by hand."""
        yield from super().touched(change)
        if change.key == POOLS:
            owner = dig(change.after, "metadata", "labels", OF_CLUSTER)
            if owner:
                yield (CLUSTER_API, namespace_of(change.after), str(owner))

    def look(self, item: Item, thing: Object | None) -> None:
        """The next step of one cluster, its pools first."""
        if thing is not None and VKS.holds(thing) and not thing["metadata"].get("deletionTimestamp"):
            status = thing.get("status", {})
            if status.get("observedGeneration", 0) < thing["metadata"].get("generation", 1) and status:
                # One controller reports the new generation before the others' conditions change.
                self._write(thing, {**status, "observedGeneration": thing["metadata"]["generation"]})
                return
            self._write_pools(thing)
        super().look(item, thing)

    def _write_pools(self, thing: Object) -> None:
        """An autoscaled pool starts with its minimum, and keeps the count that an autoscaler wrote."""
        listed = dig(thing, "spec", "topology", "workers", "machineDeployments", default=[])
        known = self._deployments(thing)
        for pool in listed:
            live = known.get(pool["name"])
            count = pool.get("replicas")
            if live is None:
                self._cluster.create(self._deployment(thing, pool), CONTROLLER)
                continue
            if count is not None and dig(live, "spec", "replicas") != count:
                self._cluster.change(live, functools.partial(_scale, count), CONTROLLER)
            had = dig(live, "metadata", "annotations", default={})
            notes = {**dig(pool, "metadata", "annotations", default={}), **_own(had)}
            if notes != had:
                self._cluster.change(live, functools.partial(_note, notes), CONTROLLER)
        for name, live in known.items():
            if name not in [pool["name"] for pool in listed]:
                self._cluster.remove(live)

    def _deployment(self, thing: Object, pool: Object) -> Object:
        limits = bounds(pool)
        count = pool.get("replicas")
        return {
            "apiVersion": "cluster.x-k8s.io/v1beta1",
            "kind": "MachineDeployment",
            "metadata": {
                "name": f"{name_of(thing)}-{pool['name']}",
                "namespace": namespace_of(thing),
                "labels": {OF_CLUSTER: name_of(thing), OF_POOL: pool["name"]},
                "annotations": dig(pool, "metadata", "annotations", default={}),
                "ownerReferences": [owned_by(thing)],
            },
            "spec": {
                "clusterName": name_of(thing),
                "replicas": count if count is not None else limits[0] if limits else 1,
            },
        }

    def _deployments(self, thing: Object) -> dict[str, Object]:
        return {
            str(dig(each, "metadata", "labels", OF_POOL)): each
            for each in self._cluster.store.all(POOLS, namespace_of(thing))
            if dig(each, "metadata", "labels", OF_CLUSTER) == name_of(thing)
        }

    def _pools(self, thing: Object) -> Iterator[Pool]:
        live = self._deployments(thing)
        for pool in VKS.pools(thing):
            count = dig(live.get(pool.name), "spec", "replicas")
            if pool.name == CONTROL_PLANE or count is None:
                yield pool
            else:
                yield replace(pool, count=count, gone=gone_of(live[pool.name]))

    def numbers(self, where: Where) -> dict[str, int]:
        """Machine → its number in its pool."""
        thing = self._cluster.store.get(CLUSTER_API, *where)
        if thing is None:
            return {}
        numbers = [number for pool in self._pools(thing) for number in pool.numbers()]
        return dict(zip(dict(self._machines(thing)), numbers, strict=True))

    def vm_class(self, where: Where, pool: str) -> str:
        """The VM class of a pool; "" if there is none."""
        thing = self._cluster.store.get(CLUSTER_API, *where)
        pools = VKS.pools(thing) if thing is not None else ()
        return next((each.vm_class for each in pools if each.name == pool), "")

    def _replaces(self, where: Where, pool: Pool, machine: str, old: str) -> bool:
        return old.startswith(f"{where[1]}-{pool.name}-")

    def _write(self, thing: Object, status: Object) -> None:
        """The pools' own status, too: before that of the cluster, which sums it up a moment later."""
        nodes = self._nodes((namespace_of(thing), name_of(thing)))
        wanted = {name for name, _ in self._machines(thing)}
        for pool, live in self._deployments(thing).items():
            there = {name for name in nodes if name.startswith(f"{name_of(thing)}-{pool}-")}
            known = {
                "observedGeneration": live["metadata"].get("generation", 1),
                "replicas": len(there),
                "updatedReplicas": len(there & wanted),
                "upToDateReplicas": len(there & wanted),
                "readyReplicas": len(there),
                "availableReplicas": len(there),
            }
            if live.get("status") != known:
                self._cluster.set_status(live, known, CONTROLLER)
        super()._write(thing, status)

    def _status(self, thing: Object, nodes: Mapping[str, str], *, done: bool = False) -> Object:
        before = thing.get("status", {})
        counts = {
            "controlPlane": self._counted(thing, nodes, control_plane=True),
            "workers": self._counted(thing, nodes, control_plane=False),
        }
        entered = any("-control-plane-" in name and state == "ready" for name, state in nodes.items())
        conditions = _conditions(counts, self._why_off(thing), entered=entered, done=done)
        address = self._guests.addresses.get((namespace_of(thing), name_of(thing)), "")
        return {
            "phase": "Provisioned" if address else "Provisioning",  # however few of its nodes are there
            "observedGeneration": thing["metadata"].get("generation", 1),
            "infrastructureReady": bool(address),
            "controlPlaneReady": entered,
            "conditions": self._conditions(
                before, [(kind, ok, why, text) for kind, ok, why, text in conditions if kind != "Available"]
            ),
            "v1beta2": {
                "conditions": [
                    _with_generation(each, thing["metadata"].get("generation", 1))
                    for each in self._conditions(before.get("v1beta2", {}), conditions)
                ],
                **counts,
            },
        }

    def _counted(self, thing: Object, nodes: Mapping[str, str], *, control_plane: bool) -> dict[str, int]:
        def of(name: str) -> bool:
            return ("-control-plane-" in name) == control_plane

        wanted = {name for name, _ in self._machines(thing) if of(name)}
        there = {name: state for name, state in nodes.items() if of(name)}
        ready = sum(state == "ready" for state in there.values())
        return {
            "desiredReplicas": len(wanted),
            "replicas": len(there),
            "upToDateReplicas": sum(name in wanted for name in there),
            "readyReplicas": ready,
            "availableReplicas": ready,
        }

    def _fail(self, thing: Object, why: tuple[str, str]) -> None:
        status = self._status(thing, self._nodes((namespace_of(thing), name_of(thing))))
        failed = ("TopologyReconciled", False, *why)
        conditions = self._conditions(thing.get("status", {}).get("v1beta2", {}), [failed])
        others = [each for each in status["v1beta2"]["conditions"] if each["type"] != "TopologyReconciled"]
        status["v1beta2"]["conditions"] = [*others, *conditions]
        self._write(thing, status)
        self._cluster.event(why[0], why[1], thing)


def _with_generation(each: Object, generation: int) -> Object:
    """A condition with its observed generation; `ControlPlaneInitialized`, once true, keeps its own."""
    latched = each["type"] == "ControlPlaneInitialized" and each["status"] == "True"
    return {
        **each,
        "reason": each.get("reason") or each["type"],
        "message": each.get("message", ""),
        "observedGeneration": each.get("observedGeneration", generation) if latched else generation,
    }


def _conditions(
    counts: Mapping[str, Mapping[str, int]], off: str, *, entered: bool, done: bool
) -> list[Reported]:
    late = [
        f"* {name}: {each['upToDateReplicas']} of {each['desiredReplicas']} replicas are up to date"
        for name, each in counts.items()
        if each["upToDateReplicas"] < each["desiredReplicas"] or each["replicas"] > each["desiredReplicas"]
    ]
    behind = "; ".join([*late, *([f"* Machine {off}"] if off else [])])
    return [
        (
            "TopologyReconciled",
            done,
            "ReconcileSucceeded" if done else "ClusterUpgrading" if entered else "ClusterCreating",
            "" if done else "Cluster is upgrading" if entered else "Cluster is being created",
        ),
        ("InfrastructureReady", True, "Ready", ""),
        ("ControlPlaneInitialized", entered, "Initialized" if entered else "NotInitialized", ""),
        ("RemoteConnectionProbe", entered, "ProbeSucceeded" if entered else "ProbeFailed", ""),
        ("RollingOut", not done, "NotRollingOut" if done else "RollingOut", ""),
        ("Available", done, "Available" if done else "NotAvailable", behind),
        ("Ready", done, "" if done else "ScalingUp", behind),
    ]


def gone_of(deployment: Object) -> tuple[int, ...]:
    """The numbers of a pool's machines that were deleted one by one."""
    return tuple(json.loads(dig(deployment, "metadata", "annotations", GONE, default="[]")))


def note_gone(deployment: Object, numbers: Iterable[int]) -> None:
    """Note them."""
    notes = deployment["metadata"].setdefault("annotations", {})
    notes[GONE] = json.dumps(sorted(set(numbers)))


def _own(notes: Object) -> Object:
    return {GONE: notes[GONE]} if GONE in notes else {}


def _note(notes: Object, deployment: Object) -> None:
    deployment["metadata"]["annotations"] = notes


def _scale(count: int, deployment: Object) -> None:
    deployment["spec"]["replicas"] = count
