"""The document's own checks: the plug-in runs on the nodes, they advertise GPUs, and the webhook runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bfinfra.backends.words import safe
from bfinfra.kinds._pods import STUCK
from bfinfra.kinds.bitfusion_device_plugin.manifests import PLUGIN, WEBHOOK
from bfinfra.kinds.bitfusion_device_plugin.state import State
from bfinfra.model.device_plugin import ALLOCATED
from bfinfra.model.errors import RemoteError
from bfinfra.model.kind import Readiness, Ready, failed, waiting

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import Cluster

NEVER = ("InvalidImageName",)


def readiness(state: State, cluster: Cluster) -> Readiness:
    """May pods ask for GPUs?"""
    things = {place.name: thing for place, thing in state.things.items() if place.kind in ("DaemonSet", "Deployment")}
    if any(thing.going for thing in state.things.values()):
        return waiting("what was there before is being removed")
    for name, label, told in ((PLUGIN, "app=bitfusion-device-plugin", _plugin), (WEBHOOK, "app=bwki", _webhook)):
        thing = things.get(name)
        if thing is None or (why := told(thing.live)):
            return _late(cluster, f"{name} {why if thing else 'is not there'}", thing.live["metadata"]["namespace"] if thing else "", label)
    nodes = [str(((node.get("status") or {}).get("allocatable") or {}).get(ALLOCATED, "0")) for node in cluster.list("v1", "Node")]
    good = [each for each in nodes if each != "0"]
    run = things[PLUGIN].live["status"]["numberAvailable"]
    if len(good) < run:
        return waiting(f"{len(good)} of {run} nodes advertise {ALLOCATED}")
    return Readiness(Ready.READY, note=f"{len(good)} nodes advertise {ALLOCATED}, {', '.join(sorted(set(good)))} each")


def _late(cluster: Cluster, why: str, namespace: str, label: str) -> Readiness:
    """With what its pods say, where one is stuck."""
    try:
        pods = cluster.list("v1", "Pod", namespace, label) if namespace else []
    except RemoteError:
        pods = []
    for pod in pods:
        for each in (pod.get("status") or {}).get("containerStatuses") or ():
            wait = (each.get("state") or {}).get("waiting") or {}
            if wait.get("reason") in STUCK:
                said = f"{why}: {safe(wait['reason'], 80)}: {safe(wait.get('message', ''), 300)}"
                return failed(said) if wait["reason"] in NEVER else waiting(said)
    return waiting(why)


def _plugin(live: Mapping[str, Any]) -> str:
    """Why the plug-in doesn't run on every node that it is meant for, or ""."""
    status = live.get("status") or {}
    wanted, there = status.get("desiredNumberScheduled", 0), status.get("numberAvailable", 0)
    if status.get("observedGeneration", 0) < live["metadata"].get("generation", 1):
        return "was changed just now"
    if not wanted:
        return "has no node to run on"
    return "" if there >= wanted <= status.get("updatedNumberScheduled", 0) else f"runs on {there} of {wanted} nodes"


def _webhook(live: Mapping[str, Any]) -> str:
    """Why not all of the webhook's pods run as they are wanted, or ""."""
    status, wanted = live.get("status") or {}, (live.get("spec") or {}).get("replicas", 1)
    if status.get("observedGeneration", 0) < live["metadata"].get("generation", 1):
        return "was changed just now"
    counts = [status.get(name, 0) for name in ("updatedReplicas", "availableReplicas")]
    return "" if min(counts) >= wanted and status.get("replicas", 0) == wanted else f"has {min(counts)} of {wanted} pods"
