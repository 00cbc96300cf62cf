"""The document's own checks: the plug-in runs on the nodes, they advertise GPUs, and the webhook runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bfinfra.backends.words import safe
from bfinfra.kinds.cluster.base.pods import PULLING, STUCK, Object
from bfinfra.kinds.cluster.bitfusion_device_plugin.manifests import PLUGIN, WEBHOOK
from bfinfra.kinds.cluster.bitfusion_device_plugin.state import State
from bfinfra.model.device_plugin import ALLOCATED
from bfinfra.model.errors import RemoteError
from bfinfra.model.readiness import Readiness, Ready, failed, waiting

if TYPE_CHECKING:
    from bfinfra.backends.kubernetes import ClusterClient

NEVER = ("InvalidImageName",)
FOLDERS = (
    "/var/lib/kubelet",
    "/var/vcap/data/kubelet (TKGI)",
    "/var/lib/k0s/kubelet (k0s)",
    "/var/snap/microk8s/common/var/lib/kubelet (MicroK8s)",
)
"""Known folders of kubelets."""
REMEDY = f"Write kubelet_folder as the kubelet has it in --root-dir: {', '.join(FOLDERS)}, or another"
SOCKET = re.compile(r"device-plugins/|register to kubelet|connect to kubelet")
FATAL = re.compile(r"^[FE]\d{4} \S+ +\d+ [\w.]+:\d+\] ")
"""A line of glog with the reason why a program ends; its goroutines are printed below it."""
TAIL = 80  # lines of a log
SHOWN = 5  # nodes that a message names
OWN = {PLUGIN: "app=bitfusion-device-plugin", WEBHOOK: "app=bwki"}
"""Labels of their pods."""


def readiness(state: State, cluster: ClusterClient) -> Readiness:
    """Return whether pods can ask for GPUs, or what that still waits for."""
    things = {
        place.name: thing
        for place, thing in state.things.items()
        if place.kind in ("DaemonSet", "Deployment")
    }
    if any(thing.going for thing in state.things.values()):
        return waiting("its old objects are being removed")
    for name, late in ((PLUGIN, _plugin), (WEBHOOK, webhook_late)):
        thing = things.get(name)
        if thing is None or (why := late(thing.live)):
            return _late(cluster, name, why if thing else "doesn't exist", thing.live if thing else None)
    nodes = {
        node["metadata"]["name"]: str(
            ((node.get("status") or {}).get("allocatable") or {}).get(ALLOCATED, "0")
        )
        for node in cluster.list("v1", "Node")
    }
    good = [each for each in nodes.values() if each != "0"]
    plugin = things[PLUGIN].live
    if len(good) < plugin["status"]["numberAvailable"]:
        silent = sorted(
            _nodes(_pods(cluster, plugin["metadata"]["namespace"], OWN[PLUGIN]))
            & {name for name, number in nodes.items() if number == "0"}
        )
        return waiting(
            f"{', '.join(silent[:SHOWN]) or 'a node'} registers no {ALLOCATED} yet, though the plug-in "
            f"runs there; if it stays so, its kubelet's folder is not {_folder(plugin)}. {REMEDY}"
        )
    note = f"{len(good)} nodes advertise {ALLOCATED}, {', '.join(sorted(set(good)))} each"
    pods = [
        pod for name in OWN for pod in _pods(cluster, things[name].live["metadata"]["namespace"], OWN[name])
    ]
    return Readiness(Ready.READY, note="; ".join([note, *_different(pods)]))


def _different(pods: Sequence[Object]) -> Iterator[str]:
    """Images whose nodes run different contents, because the tag was built again after some had pulled it."""
    found: dict[str, dict[str, str]] = {}
    for pod in pods:
        node = safe((pod.get("spec") or {}).get("nodeName", ""), 100)
        for each in (pod.get("status") or {}).get("containerStatuses") or ():
            if digest := safe(str(each.get("imageID", "")).rpartition("@")[2], 80):
                found.setdefault(safe(each.get("image", ""), 300), {}).setdefault(digest, node)
    for image, digests in found.items():
        if len(digests) > 1:
            listed = ", ".join(f"{digest[:19]} on {node}" for digest, node in sorted(digests.items()))
            yield (
                f"nodes have different images under the name {image} ({listed}): write another tag, or the "
                "image by its digest"
            )


def _late(cluster: ClusterClient, name: str, why: str, live: Object | None) -> Readiness:
    """Waiting, with the reason that its pods report, if one can't start."""
    for pod in _pods(cluster, live["metadata"]["namespace"], OWN[name]) if live else ():
        for each in (pod.get("status") or {}).get("containerStatuses") or ():
            wait = (each.get("state") or {}).get("waiting") or {}
            if wait.get("reason") not in (*PULLING, *STUCK):
                continue
            reason = f"{name} {why}: {safe(wait['reason'], 80)}: {safe(wait.get('message', ''), 300)}"
            if wait["reason"] in NEVER:
                return failed(reason)
            words = _last_words(cluster, pod, each["name"]) if wait["reason"] == "CrashLoopBackOff" else ""
            if live and name == PLUGIN and SOCKET.search(words):
                node = safe((pod.get("spec") or {}).get("nodeName", "a node"), 100)
                return failed(
                    f"{node} registers no {ALLOCATED}: its kubelet's folder seems not to be "
                    f"{_folder(live)}; the plug-in's log says: {words}. {REMEDY}"
                )
            return waiting(f"{reason}; its log says: {words}" if words else reason)
    return waiting(f"{name} {why}")


def _folder(live: Object) -> str:
    volumes = ((live.get("spec") or {}).get("template") or {}).get("spec", {}).get("volumes") or ()
    return safe(next((each["hostPath"].get("path", "") for each in volumes if "hostPath" in each), ""), 200)


def _pods(cluster: ClusterClient, namespace: str, label: str) -> Sequence[Object]:
    """The pods; None if the account may not list them."""
    try:
        return cluster.list("v1", "Pod", namespace, label)
    except RemoteError:
        return ()


def _nodes(pods: Sequence[Object]) -> set[str]:
    return {safe((pod.get("spec") or {}).get("nodeName", ""), 100) for pod in pods}


def _last_words(cluster: ClusterClient, pod: Object, container: str) -> str:
    """The last message of a program that ended: its fatal line, else its last one; "" if the account may not
    read the log.
    """
    try:
        lines = cluster.log(
            pod["metadata"]["name"], container, pod["metadata"]["namespace"], TAIL
        ).splitlines()
    except RemoteError:
        return ""
    fatal = [FATAL.sub("", line) for line in lines if FATAL.match(line)]
    return safe((fatal or [line for line in lines if line.strip()] or [""])[-1], 300)


def _plugin(live: Object) -> str:
    """Return why the plug-in doesn't run on every node that it should, or ""."""
    status = live.get("status") or {}
    wanted, there = status.get("desiredNumberScheduled", 0), status.get("numberAvailable", 0)
    if status.get("observedGeneration", 0) < live["metadata"].get("generation", 1):
        return "was just changed"
    if not wanted:
        return "has no node to run on"
    return (
        ""
        if there >= wanted <= status.get("updatedNumberScheduled", 0)
        else f"runs on {there} of {wanted} nodes"
    )


def webhook_late(live: Object) -> str:
    """Return why not all of the webhook's pods run in the desired version, or ""."""
    status, wanted = live.get("status") or {}, (live.get("spec") or {}).get("replicas", 1)
    if status.get("observedGeneration", 0) < live["metadata"].get("generation", 1):
        return "was just changed"
    counts = [status.get(name, 0) for name in ("updatedReplicas", "availableReplicas")]
    return (
        ""
        if min(counts) >= wanted and status.get("replicas", 0) == wanted
        else f"has {min(counts)} of {wanted} pods"
    )
