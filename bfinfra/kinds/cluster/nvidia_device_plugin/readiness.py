"""Finds out if the nodes offer their GPUs, by the plug-in's pods and the nodes' status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bfinfra.backends.words import safe
from bfinfra.kinds.cluster.base.pods import PULLING, STUCK
from bfinfra.kinds.cluster.nvidia_device_plugin.manifest import LABELS, RESOURCE, Live
from bfinfra.kinds.cluster.nvidia_device_plugin.spec import Spec
from bfinfra.model.errors import RemoteError
from bfinfra.model.readiness import Readiness, Ready, failed, waiting

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

NEVER = ("InvalidImageName",)
SIZES = "nvidia.com/mig-"


def readiness(spec: Spec, live: Live, cluster: ClusterClient) -> Readiness:
    """READY once every node with a pod of the plug-in offers GPUs; if the plug-in may run on nodes without
    GPUs (`fail_on_init_error: false`), once one node does.
    """
    status = live.get("status") or {}
    desired = status.get("desiredNumberScheduled", 0)
    if status.get("observedGeneration", 0) < live["metadata"].get("generation", 1):
        return waiting("it was just changed")
    if not desired:
        return waiting(f"no node takes its pods: {_nowhere(spec)}")
    nodes = {str(node["metadata"]["name"]): node for node in cluster.list("v1", "Node")}
    pods = {
        str((pod.get("spec") or {}).get("nodeName")): pod
        for pod in _pods(cluster, str(live["metadata"]["namespace"]))
    }
    for name, pod in sorted(pods.items()):
        reason, why = _stuck(pod)
        if reason:
            return (failed if reason in NEVER else waiting)(
                f"{name}: its pod is {reason}{why and f': {why}'}"
            )
    if status.get("updatedNumberScheduled", 0) < desired or status.get("numberAvailable", 0) < desired:
        return waiting(
            "its pods run on "
            f"{min(status.get('updatedNumberScheduled', 0), status.get('numberAvailable', 0))} of "
            f"{desired} nodes"
        )
    offered = {name: _offered(node) for name, node in nodes.items() if name in pods or not pods}
    none = sorted(name for name, found in offered.items() if not any(found.values()))
    if none and (spec.fail_on_init_error or len(none) == len(offered)):
        return waiting(
            f"{none[0]}: {_without(nodes[none[0]])}"
            + (f", and {len(none) - 1} more" if len(none) > 1 else "")
        )
    return Readiness(Ready.READY, note=_note(offered, none))


def _pods(cluster: ClusterClient, namespace: str) -> Sequence[Live]:
    """The pods; None if the account may not list them: then only their counts are known."""
    try:
        return [
            pod
            for pod in cluster.list(
                "v1", "Pod", namespace, ",".join(f"{key}={value}" for key, value in LABELS.items())
            )
            if not pod["metadata"].get("deletionTimestamp")
        ]
    except RemoteError:
        return []


def _stuck(pod: Live) -> tuple[str, str]:
    """Return why its container doesn't run, and the last message of the one before; ("", "") if it runs."""
    for each in (pod.get("status") or {}).get("containerStatuses") or ():
        wait = (each.get("state") or {}).get("waiting") or {}
        if wait.get("reason") in (*STUCK, *PULLING):
            ended = ((each.get("lastState") or {}).get("terminated") or {}).get("message") or ""
            words = ended.strip().splitlines()[-1] if ended.strip() else str(wait.get("message") or "")
            return safe(str(wait["reason"]), 80), safe(words, 300)
    return "", ""


def _offered(node: Live) -> dict[str, int]:
    """Return what pods may request on a node, by name: nvidia.com/gpu, and MIG devices of each size."""
    found = (node.get("status") or {}).get("allocatable") or {}
    return {
        name: int(count)
        for name, count in found.items()
        if (name == RESOURCE or name.startswith(SIZES)) and str(count).isdecimal()
    }


def _without(node: Live) -> str:
    had = (node.get("status") or {}).get("capacity") or {}
    if str(had.get(RESOURCE, "0")) != "0":
        return f"it has {had[RESOURCE]} GPUs, and none is healthy: look for Xid errors in its dmesg"
    return f"it offers no {RESOURCE}, though the plug-in's pod runs there"


def _nowhere(spec: Spec) -> str:
    named = ", ".join(f"{key}={value}" for key, value in spec.node_selector.items())
    return (
        f"none has the labels {named} and only taints that are tolerated"
        if named
        else "each has a taint that is not tolerated"
    )


def _note(offered: Mapping[str, Mapping[str, int]], none: Sequence[str]) -> str:
    reasons = [
        f"{name}: " + ", ".join(f"{count} {resource}" for resource, count in sorted(found.items()) if count)
        for name, found in sorted(offered.items())
        if any(found.values())
    ]
    shown = (
        "; ".join(reasons)
        if len(reasons) <= 4
        else f"{len(reasons)} nodes offer {sum(sum(found.values()) for found in offered.values())} GPUs"
    )
    return f"{shown}; none on {', '.join(none)}" if none else shown
