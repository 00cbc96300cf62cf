"""NVIDIA's GPU operator, where its Deployment is available: labels of nodes with GPUs (which NFD and GFD
set), the operands of the ClusterPolicy, the upgrade of drivers, and what it says of itself. A driver reads
the license token when its pod starts, and never again.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from dataclasses import replace

from bfinfra.sandbox.kubernetes.controllers import gpu_operands as operands
from bfinfra.sandbox.kubernetes.controllers.gpu_operands import (
    DRIVERS,
    MANAGER,
    OPERANDS,
    OPERATOR,
    TOOLKIT,
    Operand,
)
from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.controllers.mig_manager import STATE, MigManagers
from bfinfra.sandbox.kubernetes.controllers.pod_claims import of_driver
from bfinfra.sandbox.kubernetes.controllers.replicas import template_hash
from bfinfra.sandbox.kubernetes.nvidia import Gpus, uses
from bfinfra.sandbox.kubernetes.nvidia_dra import GPU
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, namespace_of, runs, uid_of
from bfinfra.sandbox.kubernetes.outside import Outside
from bfinfra.sandbox.kubernetes.store import Change, Key

POLICIES: Key = ("nvidia.com", "clusterpolicies")
CLUSTERS: Key = ("nvidia.com", "gpuclusters")
NVIDIA_DRIVERS: Key = ("nvidia.com", "nvidiadrivers")
DEPLOYMENTS: Key = ("apps", "deployments")
DAEMONS: Key = ("apps", "daemonsets")
NODES: Key = ("", "nodes")
PODS: Key = ("", "pods")
FOUND, PRESENT = "feature.node.kubernetes.io/pci-10de.present", "nvidia.com/gpu.present"
PAUSED = "paused-for-driver-upgrade"
FILE = "client_configuration_token.tok"
GOOD, BAD = "good", "bad"


class GpuOperator:
    """Watches ClusterPolicies, nodes, its own Deployment and its operands."""

    kinds = (POLICIES, NODES)

    def __init__(self, loop: Loop, outside: Outside, manager: MigManagers) -> None:
        self._cluster, self._outside, self._manager = loop.cluster, outside, manager
        self._licensed = loop.cluster.remembered.setdefault("drivers with a license", {})
        """Of each driver's pod, by its uid, whether the token was good that it read when it started."""

    def touched(self, change: Change) -> Iterable[Item]:
        """All ClusterPolicies and nodes, when an operator or an operand comes or goes."""
        if change.key == PODS and operands.is_driver(change.after):
            self._read_token(change.after)
        if change.key in (DEPLOYMENTS, DAEMONS, NODES, NVIDIA_DRIVERS, POLICIES, CLUSTERS) or (
            change.key == PODS and any(o["kind"] == "DaemonSet" for o in _owners(change.after))
        ):
            for key in (POLICIES, NODES):
                for each in self._cluster.store.all(key):
                    yield (key, "", name_of(each))

    def look(self, item: Item, thing: Object | None) -> None:
        """Label a node; or bring operands into being, or remove them, and say how it is."""
        if thing is None or thing["metadata"].get("deletionTimestamp"):
            return
        if item[0] == NODES:
            self._label(thing)
        elif home := self.home():
            if self.policy() is not thing and name_of(self.policy() or {}) != name_of(thing):
                self._say(thing, home, "ignored", [])
                return
            for other in self._cluster.store.all(CLUSTERS):
                why = f'conflicting GPUCluster resource "{name_of(other)}" detected; ClusterPolicy and '
                self._say(thing, home, "notReady", [], f"{why}GPUCluster cannot co-exist")
                return
            for node in self._cluster.store.all(NODES):
                self._label(node)
            self._cluster.ensure(operands.layouts(thing, home), OPERATOR)
            for each in OPERANDS:
                self._operand(thing, each, home)
            if _by_drivers(thing):
                self.drivers(home)
            self.upgrade(bool(dig(thing, "spec", "driver", "upgradePolicy", "autoUpgrade")))
            self._say(thing, home, "", sorted(self._late(thing, home)))

    def policy(self) -> Object | None:
        """The ClusterPolicy that the operator follows; None without an operator."""
        every = [
            each
            for each in self._cluster.store.all(POLICIES)
            if not each["metadata"].get("deletionTimestamp")
        ]
        return operands.older(every)[0] if every and self.home() else None

    def gpu_cluster(self) -> Object | None:
        """The GPUCluster that the operator follows, with which it gives GPUs by claims; None without one."""
        found = self._cluster.get(*CLUSTERS, operands.GPU_CLUSTER)
        return found if self.home() and self.policy() is None else None

    def gpus(self, node: str) -> Gpus:
        """The GPUs that containers of a node can use, with the operator's driver and toolkit."""
        found = self._outside.gpus(node)
        policy = self.policy()
        if not found.count or (policy is None and self.gpu_cluster() is None):
            return found if found.driver else replace(found, count=0)
        pods = [pod for pod in self._driver_pods(node) if runs(pod)]
        ours = (
            bool(self._cluster.store.all(NVIDIA_DRIVERS))
            if policy is None
            else operands.enabled(policy, DRIVERS) or _by_drivers(policy)
        )
        driver = operands.version_of(pods[0]) if pods else "" if ours else found.driver
        licensed = not found.vgpu or any(self._licensed.get(uid_of(pod)) == GOOD for pod in pods)
        divided = () if policy is None else self._manager.profiles(node)
        return replace(
            found,
            count=found.count if driver and licensed else 0,
            driver=driver,
            runtimes=frozenset({*found.runtimes, ""}) if self._toolkit(node) else found.runtimes,
            parts=operands.parts(divided, str(dig(policy, "spec", "mig", "strategy", default="single"))),
            profiles=divided,
        )

    def _toolkit(self, node: str) -> bool:
        """Return whether the container toolkit runs there, or the policy leaves it to the machine."""
        policy = self.policy()
        if policy is None or not operands.enabled(policy, TOOLKIT):
            return False
        return any(
            operands.on(pod) == node and runs(pod)
            for pod in self._cluster.store.all(PODS)
            if dig(pod, "metadata", "labels", "app") == TOOLKIT.name
        )

    def _read_token(self, pod: Object) -> None:
        if uid_of(pod) in self._licensed or not runs(pod):
            return
        for volume in dig(pod, "spec", "volumes", default=[]):
            if name := dig(volume, "secret", "secretName"):
                secret = self._cluster.get("", "secrets", name, namespace_of(pod)) or {}
                token = base64.b64decode(dig(secret, "data", FILE, default=""))
                self._licensed[uid_of(pod)] = GOOD if _good(token, self._cluster.clock.now()) else BAD

    def _label(self, node: Object) -> None:
        """The labels of discovery, and of the operands that the node shall have."""
        name, policy = name_of(node), self.policy()
        gpus = self._outside.gpus(name)
        labels = dict(node["metadata"].get("labels") or {})
        kept = {key: value for key, value in labels.items() if not _set_by_operator(key)}
        found: Iterable[tuple[str, str]] = ()
        if policy is not None:
            found = self._deployed(labels, name, policy, gpus)
        elif self.gpu_cluster() is not None:
            found = self._claimed(labels, name)
        if gpus.count and (policy is not None or found):
            kept |= {FOUND: "true", PRESENT: "true", **dict(found)}
        if kept != labels:
            self._cluster.change(node, lambda live: live["metadata"].__setitem__("labels", kept), OPERATOR)
        pods = self._driver_pods(name)
        if pods and not any(runs(pod) for pod in pods):
            self._evict(name)

    def _claimed(self, labels: Object, node: str) -> Iterator[tuple[str, str]]:
        """The labels of a GPUCluster's operands. While a driver of the operator starts, they are off; what
        somebody else wrote stays.
        """
        pods = self._driver_pods(node)
        free = any(runs(pod) for pod in pods) or not self._cluster.store.all(NVIDIA_DRIVERS)
        for each in operands.BY_CLAIMS:
            by_hand = labels.get(each.label, "") not in ("", "true", PAUSED)
            yield each.label, labels[each.label] if by_hand else "true" if free else PAUSED
        yield DRIVERS.label, "true"

    def _deployed(self, labels: Object, node: str, policy: Object, gpus: Gpus) -> Iterator[tuple[str, str]]:
        up = any(runs(pod) for pod in self._driver_pods(node))
        handed_out = self._toolkit(node) or not operands.enabled(policy, TOOLKIT)
        held = "paused-for-mig-change" if labels.get(STATE) in ("pending", "rebooting") else PAUSED
        for each in OPERANDS:
            if each is MANAGER and not gpus.divisible:
                continue
            client = each.deploy in operands.CLIENTS
            free = not client or (up and handed_out and labels.get(STATE) not in ("pending", "rebooting"))
            yield each.label, "true" if free else held
        yield DRIVERS.label, "true"
        if up:
            yield "nvidia.com/gpu.count", str(gpus.count)
            yield "nvidia.com/mig.capable", str(gpus.divisible).lower()
            yield "nvidia.com/mig.strategy", str(dig(policy, "spec", "mig", "strategy", default="single"))
            if gpus.product:
                yield "nvidia.com/gpu.product", gpus.product
            if gpus.vgpu:
                yield "nvidia.com/vgpu.present", "true"
                yield "nvidia.com/vgpu.host-driver-version", gpus.host_driver

    def _evict(self, node: str) -> None:
        """A new driver's pod takes the GPUs from all pods before it loads the driver."""
        for pod in self._cluster.store.all(PODS):
            if operands.on(pod) == node and (uses(pod) or any(of_driver(self._cluster, pod, GPU))):
                self._cluster.remove(pod)

    def _operand(self, policy: Object, operand: Operand, home: str) -> None:
        live = self._cluster.get("apps", "daemonsets", operand.name, home)
        if not operands.enabled(policy, operand):
            if live is not None:
                self._cluster.remove(live)
            return
        self.bring(operands.daemon_set(policy, operand, home), live)

    def drivers(self, home: str) -> None:
        """A DaemonSet for each NVIDIADriver."""
        for each in self._cluster.store.all(NVIDIA_DRIVERS):
            if each["metadata"].get("deletionTimestamp"):
                continue
            name = f"nvidia-gpu-driver-{name_of(each)}"
            wanted = operands.driver_set(each, each.get("spec") or {}, name, home)
            self.bring(wanted, self._cluster.get("apps", "daemonsets", name, home))
            late = self.unready(name, home, DRIVERS)
            self._say(each, home, "", [DRIVERS.state] if late else [])

    def bring(self, wanted: Object, live: Object | None) -> None:
        """Create a DaemonSet, or give it another template."""
        mark = operands.digest(wanted)
        wanted["metadata"]["annotations"] = {operands.APPLIED: mark}
        if live is None:
            self._cluster.create(wanted, OPERATOR)
        elif dig(live, "metadata", "annotations", operands.APPLIED) != mark:

            def changed(fresh: Object) -> None:
                fresh["spec"]["template"] = wanted["spec"]["template"]
                fresh["metadata"].setdefault("annotations", {})[operands.APPLIED] = mark

            self._cluster.change(live, changed, OPERATOR)

    def upgrade(self, wanted: bool) -> None:
        """Restart drivers of an earlier revision, one node after the other, if that is wanted."""
        of_drivers = [dig(each, "spec", "upgradePolicy") for each in self._cluster.store.all(NVIDIA_DRIVERS)]
        if not wanted and not any(dig(each, "autoUpgrade") for each in of_drivers):
            return
        pods = [pod for pod in self._cluster.store.all(PODS) if operands.is_driver(pod)]
        if all(runs(pod) for pod in pods):
            old = [pod for pod in pods if not self._latest(pod)]
            for pod in sorted(old, key=operands.on)[:1]:
                self._cluster.remove(pod)

    def _latest(self, pod: Object) -> bool:
        name = next((owner["name"] for owner in _owners(pod)), "")
        live = self._cluster.get("apps", "daemonsets", name, namespace_of(pod))
        revision = dig(pod, "metadata", "labels", "controller-revision-hash")
        return live is None or revision == template_hash(live)

    def _late(self, policy: Object, home: str) -> set[str]:
        """The states that are not ready."""
        late = {
            each.state
            for each in OPERANDS
            if operands.enabled(policy, each) and self.unready(each.name, home, each)
        }
        others = self._cluster.store.all(NVIDIA_DRIVERS)
        if _by_drivers(policy):
            late |= {
                DRIVERS.state
                for each in others
                if self.unready(f"nvidia-gpu-driver-{name_of(each)}", home, DRIVERS)
            }
        return late

    def unready(self, name: str, home: str, operand: Operand) -> bool:
        """Return whether a node lacks a ready pod of the latest revision."""
        live = self._cluster.get("apps", "daemonsets", name, home)
        if live is None:
            return True
        nodes = [
            node
            for node in self._cluster.store.all(NODES)
            if node["metadata"]["labels"].get(operand.label, "false") != "false"
        ]
        pods = {
            operands.on(pod): pod
            for pod in self._cluster.store.all(PODS, home)
            if any(owner["name"] == name for owner in _owners(pod))
        }
        return any(
            (pod := pods.get(name_of(node))) is None or not runs(pod) or not self._latest(pod)
            for node in nodes
        )

    def _say(self, thing: Object, home: str, state: str, late: list[str], why: str = "") -> None:
        says = state or ("notReady" if late else "ready")
        conditions = operands.conditions(
            self._cluster.clock.now(),
            ready=says == "ready",
            reason="OperandNotReady" if late else "Reconciled",
            message=why or _message(late),
        )
        operands.say(self._cluster, thing, {"namespace": home, "state": says, "conditions": conditions})

    def _driver_pods(self, node: str) -> list[Object]:
        return [
            pod
            for pod in self._cluster.store.all(PODS)
            if operands.is_driver(pod) and operands.on(pod) == node
        ]

    def home(self) -> str:
        """The namespace of an available operator, or ""."""
        return next(
            (
                namespace_of(each)
                for each in self._cluster.store.all(DEPLOYMENTS)
                if dig(each, "status", "availableReplicas")
                and OPERATOR in str(dig(each, "spec", "template", "spec", "containers", 0, "image"))
            ),
            "",
        )


def _owners(pod: Object) -> list[Object]:
    return pod["metadata"].get("ownerReferences") or []


def _by_drivers(policy: Object) -> bool:
    """Return whether a ClusterPolicy leaves the driver to NVIDIADrivers."""
    return bool(dig(policy, "spec", "driver", "useNvidiaDriverCRD"))


def _message(late: list[str]) -> str:
    return f"ClusterPolicy is not ready; states not ready: [{' '.join(late)}]" if late else ""


def _set_by_operator(label: str) -> bool:
    return label == FOUND or label.startswith(
        ("nvidia.com/gpu.", "nvidia.com/vgpu.", "nvidia.com/mig.capable", "nvidia.com/mig.strategy")
    )


def _good(token: bytes, now: float) -> bool:
    """Return whether a license token is one, and has not expired."""
    try:
        claims = json.loads(base64.urlsafe_b64decode(token.split(b".")[1] + b"=="))
    except (IndexError, ValueError):
        return False
    return bool(claims.get("exp", now + 1) > now)
