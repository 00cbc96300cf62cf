"""NVIDIA's GPUCluster, with which the GPU operator gives GPUs by resource claims: the DRA driver, its device
classes, and the operands that have GPUs by claims with admin access. After the operator's v26.7.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bfinfra.sandbox.kubernetes.controllers import gpu_operands as operands
from bfinfra.sandbox.kubernetes.controllers.gpu_operands import (
    BY_CLAIMS,
    CLAIMED,
    DRA_DRIVER,
    OPERATOR,
    Operand,
)
from bfinfra.sandbox.kubernetes.controllers.gpu_operator import (
    CLUSTERS,
    DAEMONS,
    DEPLOYMENTS,
    NODES,
    NVIDIA_DRIVERS,
    POLICIES,
    GpuOperator,
)
from bfinfra.sandbox.kubernetes.controllers.loop import Item, Loop
from bfinfra.sandbox.kubernetes.controllers.pod_claims import CLASSES, GROUP
from bfinfra.sandbox.kubernetes.controllers.resource_claims import ADMIN, TEMPLATES
from bfinfra.sandbox.kubernetes.nvidia_dra import COMPUTE_DOMAIN, GPU
from bfinfra.sandbox.kubernetes.objects import Object, dig, name_of, owned_by, uid_of
from bfinfra.sandbox.kubernetes.store import Change, Key

PODS: Key = ("", "pods")
FINALIZER = "gpucluster.nvidia.com/dra-resourceclaim"
VERSION = f"{GROUP}/v1"
TYPES = {GPU: "gpu", "mig.nvidia.com": "mig", "vfio.gpu.nvidia.com": "vfio"}
"""Device classes → the type of their devices."""
WATCHED = (DEPLOYMENTS, DAEMONS, NODES, NVIDIA_DRIVERS, POLICIES, CLASSES, TEMPLATES, ("", "namespaces"))


class GpuClusters:
    """Watches GPUClusters, and what the operator made for one."""

    kinds = (CLUSTERS,)

    def __init__(self, loop: Loop, operator: GpuOperator) -> None:
        self._cluster, self._operator = loop.cluster, operator

    def touched(self, change: Change) -> Iterable[Item]:
        """The GPUCluster, when something of the operator comes, changes or goes."""
        if change.key in WATCHED or change.key == PODS:
            for each in self._cluster.store.all(CLUSTERS):
                yield (CLUSTERS, "", name_of(each))

    def look(self, item: Item, thing: Object | None) -> None:
        """Bring its operands into being, and say how it is; or let them go, those with claims first."""
        home = self._operator.home()
        if thing is None or not home:
            return
        if thing["metadata"].get("deletionTimestamp"):
            self._drain(thing, home)
            return
        if FINALIZER not in (thing["metadata"].get("finalizers") or []):
            self._cluster.change(thing, _hold, OPERATOR)
            return
        if why := self._missing():
            self._say(thing, home, ready=False, reason="PrerequisiteNotMet", message=why)
            return
        if self._cluster.registry.of_kind(VERSION, "DeviceClass") is None:
            why = (
                "Error syncing state state-dra-driver: failed to create k8s objects from manifests: failed "
                "to get DRA resource apiVersion: the resource.k8s.io DeviceClass API is not served by the "
                "cluster; ensure Dynamic Resource Allocation is enabled on the API server and kubelet"
            )
            self._say(thing, home, ready=False, reason="ReconcileFailed", message=why)
            return
        self._label(home)
        for each in (*_classes(thing), *_templates(thing, home)):
            self._cluster.ensure(each, OPERATOR)
        for operand in BY_CLAIMS:
            self._operand(thing, operand, home)
        self._operator.drivers(home)
        self._operator.upgrade(wanted=False)
        late = any(self._operator.unready(each.name, home, each) for each in BY_CLAIMS if _has(thing, each))
        reason = "OperandNotReady" if late else "Reconciled"
        message = (
            "Waiting for operand pods to be ready"
            if late
            else "All resources have been successfully reconciled"
        )
        self._say(thing, home, ready=not late, reason=reason, message=message)

    def _missing(self) -> str:
        """What a GPUCluster lacks, or ""."""
        for each in self._cluster.store.all(POLICIES):
            return (
                f'A ClusterPolicy CR "{name_of(each)}" exists; a ClusterPolicy CR and GPUCluster CR may not '
                "exist at the same time"
            )
        return ""

    def _label(self, home: str) -> None:
        """Claims with admin access are admitted in a labelled namespace only."""
        space = self._cluster.get("", "namespaces", home)
        if space is not None and dig(space, "metadata", "labels", ADMIN) != "true":
            self._cluster.change(
                space,
                lambda live: live["metadata"].setdefault("labels", {}).update({ADMIN: "true"}),
                OPERATOR,
            )

    def _operand(self, thing: Object, operand: Operand, home: str) -> None:
        live = self._cluster.get("apps", "daemonsets", operand.name, home)
        if _has(thing, operand):
            self._operator.bring(_daemon_set(thing, operand, home), live)
        elif live is not None:
            self._cluster.remove(live)

    def _drain(self, thing: Object, home: str) -> None:
        """Pods with claims go while the DRA driver is there to take their devices back."""
        sets = [
            each
            for each in self._cluster.store.all(DAEMONS, home)
            if dig(each, "spec", "template", "spec", "resourceClaims")
            and any(owner["uid"] == uid_of(thing) for owner in each["metadata"].get("ownerReferences") or [])
        ]
        for each in sets:
            if not each["metadata"].get("deletionTimestamp"):
                self._cluster.remove(each, "Foreground")
        if not sets and FINALIZER in (thing["metadata"].get("finalizers") or []):
            self._cluster.change(thing, _let_go, OPERATOR)

    def _say(self, thing: Object, home: str, *, ready: bool, reason: str, message: str) -> None:
        conditions = operands.conditions(
            self._cluster.clock.now(), ready=ready, reason=reason, message=message
        )
        says = "ready" if ready else "notReady"
        operands.say(self._cluster, thing, {"namespace": home, "state": says, "conditions": conditions})


def _has(thing: Object, operand: Operand) -> bool:
    """Return whether a GPUCluster has an operand: the standalone DCGM must be switched on, the exporter is on
    unless it is switched off.
    """
    if operand in (operands.DCGM, operands.EXPORTER):
        return bool(dig(thing, "spec", operand.part, "enabled", default=operand is operands.EXPORTER))
    return True


def _domains(thing: Object) -> bool:
    return bool(dig(thing, "spec", "draDriver", "computeDomains", "enabled", default=True))


def _classes(thing: Object) -> Iterator[Object]:
    selected = {
        name: f"device.driver == '{GPU}' && device.attributes['{GPU}'].type == '{kind}'"
        for name, kind in TYPES.items()
    }
    if _domains(thing):
        of = f"device.driver == '{COMPUTE_DOMAIN}' && device.attributes['{COMPUTE_DOMAIN}']"
        selected |= {
            "compute-domain-daemon.nvidia.com": f"{of}.type == 'daemon'",
            "compute-domain-default-channel.nvidia.com": (
                f"{of}.type == 'channel' && device.attributes['{COMPUTE_DOMAIN}'].id == 0"
            ),
        }
    for name, expression in selected.items():
        yield {
            "apiVersion": VERSION,
            "kind": "DeviceClass",
            "metadata": {"name": name, "ownerReferences": [owned_by(thing)]},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }


def _templates(thing: Object, home: str) -> Iterator[Object]:
    for operand, (name, request, wanted) in CLAIMED.items():
        if _has(thing, operand):
            exactly: Object = {"deviceClassName": GPU, "adminAccess": True, **wanted}
            yield {
                "apiVersion": VERSION,
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": name, "namespace": home, "ownerReferences": [owned_by(thing)]},
                "spec": {"spec": {"devices": {"requests": [{"name": request, "exactly": exactly}]}}},
            }


def _daemon_set(thing: Object, operand: Operand, home: str) -> Object:
    if operand is DRA_DRIVER:
        return operands.dra_set(thing, home, domains=_domains(thing))
    template, name, _ = CLAIMED[operand]
    used = {"resources": {"claims": [{"name": name}]}}
    pod: Object = {
        "resourceClaims": [{"name": name, "resourceClaimTemplateName": template}],
        "containers": [{"name": operand.name, "image": f"operands/{operand.name}", **used}],
    }
    if operand is operands.VALIDATOR:
        first = {"name": "gpu-validation", "image": "operands/gpu-operator", **used}
        pod["initContainers"] = [{**first, "command": ["sh", "-c", "nvidia-smi -L"]}]
    return operands.set_of(thing, operand.name, home, operand.label, pod)


def _hold(thing: Object) -> None:
    thing["metadata"]["finalizers"] = [*(thing["metadata"].get("finalizers") or []), FINALIZER]


def _let_go(thing: Object) -> None:
    held = thing["metadata"].get("finalizers") or []
    thing["metadata"]["finalizers"] = [each for each in held if each != FINALIZER]
