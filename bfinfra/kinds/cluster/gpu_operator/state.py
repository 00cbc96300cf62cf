"""The state of a GPU operator: its objects, and its nodes, drivers and pods with GPUs."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import field

from bfinfra.backends.kubernetes.marks import notes
from bfinfra.kinds.capabilities import NVIDIA
from bfinfra.kinds.cluster.base.objects import Object
from bfinfra.kinds.cluster.base.rendered.objects import Id
from bfinfra.kinds.cluster.base.rendered.state import State
from bfinfra.kinds.cluster.gpu_operator.policy import LICENSE
from bfinfra.model.records import dataclass

NOTE = "bfinfra.io/mig"
"""The annotation of a node whose GPUs bfinfra divides."""
WRITTEN = "bfinfra.io/tokenWrittenAt"
"""The annotation of the license's Secret: when its token was last replaced, by the cluster's clock."""
LAYOUT, PROGRESS = "nvidia.com/mig.config", "nvidia.com/mig.config.state"
FOUND = ("pci-10de.present", "pci-0302_10de.present", "pci-0300_10de.present")
PRESENT, OPERANDS = "nvidia.com/gpu.present", "nvidia.com/gpu.deploy.operands"
COMPONENT, DRIVER = "app.kubernetes.io/component", "nvidia-driver"
OLD_DRIVER, MANAGER = "nvidia-driver-daemonset", "nvidia-mig-manager"
OFFERED = (NVIDIA, f"{NVIDIA}.shared", "nvidia.com/mig-")
BUSY = ("pending", "rebooting")
Parts = Mapping[str, int]
"""What one GPU is divided into: MIG profile, such as 1g.5gb, → how many; {} for a whole GPU."""


@dataclass(frozen=True)
class Note:
    """Who divides a node's GPUs, `site kind/name`; whether the node was cordoned before; which pod of the MIG
    manager failed and is restarted, and which pod of the DRA driver is restarted since they are divided, by
    their uids.
    """

    by: str
    cordoned: bool
    again: str = ""
    restarted: str = ""

    def encode(self) -> str:
        """The text of the annotation."""
        uids = {"again": self.again, "restarted": self.restarted}
        return json.dumps(
            {
                "by": self.by,
                "cordoned": self.cordoned,
                **{name: value for name, value in uids.items() if value},
            }
        )


@dataclass(frozen=True)
class User:
    """A pod that uses GPUs. `owner`: its controller, `Job train`; "" if there is none."""

    namespace: str
    name: str
    owner: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def stays(self) -> str:
        """Why an eviction doesn't help, or ""."""
        if not self.owner:
            return "it has no controller, and would not come back"
        return "it would come back at once" if self.owner.startswith("DaemonSet ") else ""


@dataclass(frozen=True)
class Plugin:
    """A pod of NVIDIA's DRA driver that runs, and is not being deleted."""

    namespace: str
    name: str
    uid: str


@dataclass(frozen=True)
class Node:
    """A node as the operator labels it. `manager`: its MIG manager's pod and the pod's uid, "" for none;
    `plugin`: its DRA driver's pod, read while its GPUs are to be divided.
    """

    name: str
    version: str
    labels: Mapping[str, str]
    cordoned: bool
    note: Note | None
    offers: bool
    manager: tuple[str, str] = ("", "")
    users: tuple[User, ...] = ()
    plugin: Plugin | None = None

    @property
    def has_gpus(self) -> bool:
        """Whether discovery, or the operator, found NVIDIA's GPUs in it, and its operands are not off."""
        found = any(self.labels.get(f"feature.node.kubernetes.io/{each}") == "true" for each in FOUND)
        there = self.labels.get(PRESENT) == "true" or (found and self.labels.get(PRESENT) != "false")
        return there and self.labels.get(OPERANDS) != "false"

    @property
    def vgpu(self) -> bool:
        """Whether its GPUs are vGPUs."""
        return bool(self.labels.get("nvidia.com/vgpu.host-driver-version"))

    @property
    def layout(self) -> str:
        """The layout that its label asks for."""
        return self.labels.get(LAYOUT, "")

    @property
    def progress(self) -> str:
        """What its MIG manager says: pending, rebooting, success, failed, or ""."""
        return self.labels.get(PROGRESS, "")


@dataclass(frozen=True)
class Driver:
    """A pod of the driver. `started`: when, in UTC, "" if it has not; `licensed`: it mounts the license's
    Secret; `old`: its image is not that of its DaemonSet; `going`: it is being deleted.
    """

    name: str
    namespace: str
    node: str
    started: str
    ready: bool
    licensed: bool
    old: bool
    going: bool = False


@dataclass(frozen=True, kw_only=True)
class GpuState(State):
    """The operator's objects and nodes. `owner`: `site kind/name`; `layouts`: those that its MIG manager
    knows, None if that is not known, each with what a GPU may be divided into, () if it names single GPUs;
    `operands`: its DaemonSets; `slices`: the nodes whose GPUs can be claimed, each with what each GPU is
    divided into there; None where GPUs are not given by claims; `dynamic`: those whose DRA driver divides
    GPUs itself.
    """

    owner: str = ""
    nodes: Mapping[str, Node] = field(default_factory=dict)
    drivers: tuple[Driver, ...] = ()
    operands: tuple[str, ...] = ()
    driver_images: frozenset[str] = frozenset()
    layouts: Mapping[str, tuple[Parts, ...]] | None = None
    slices: Mapping[str, tuple[Parts, ...]] | None = None
    dynamic: frozenset[str] = frozenset()

    def mine(self, node: Node) -> bool:
        """Whether this resource divides the node's GPUs."""
        return node.note is not None and node.note.by == self.owner

    def stale(self, node: Node) -> bool:
        """Whether what can be claimed of a node is not what its GPUs are divided into, as its layout says."""
        options = (self.layouts or {}).get(node.layout) or ()
        found = (self.slices or {}).get(node.name, ())
        return bool(options) and any(each not in options for each in found)

    def license_written(self) -> str:
        """When the license's token was last replaced, in UTC; "" if there is none."""
        thing = next((t for each, t in self.things.items() if is_license(each)), None)
        if thing is None:
            return ""
        created = str(thing.manifest["metadata"].get("creationTimestamp") or "")
        return str(notes(thing.manifest).get(WRITTEN) or created)


def is_license(each: Id) -> bool:
    """Whether an object is the license's Secret."""
    return each.type == ("", "Secret") and each.name == LICENSE


def node_of(
    obj: Object,
    managers: Mapping[str, tuple[str, str]],
    users: Mapping[str, Sequence[User]],
    plugins: Mapping[str, Plugin],
) -> Node:
    """A node."""
    metadata, name = obj["metadata"], str(obj["metadata"]["name"])
    return Node(
        name,
        str(metadata.get("resourceVersion") or ""),
        {str(key): str(value) for key, value in (metadata.get("labels") or {}).items()},
        bool((obj.get("spec") or {}).get("unschedulable")),
        _note(notes(obj).get(NOTE)),
        _offers(obj),
        managers.get(name, ("", "")),
        tuple(users.get(name, ())),
        plugins.get(name),
    )


def user_of(pod: Object, claims: Container[str] = ()) -> User | None:
    """A pod that uses GPUs, or parts of them; None for others, and for one that has ended. `claims`: the uids
    of pods that have GPUs by claims.
    """
    if (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return None
    spec = pod.get("spec") or {}
    asked = {
        str(name)
        for each in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ()))
        for what in ("limits", "requests")
        for name in (each.get("resources") or {}).get(what) or ()
    }
    if not any(name.startswith(OFFERED) for name in asked) and pod["metadata"].get("uid") not in claims:
        return None
    owner = next((o for o in pod["metadata"].get("ownerReferences") or () if o.get("controller")), None)
    named = f"{owner['kind']} {owner['name']}" if owner else ""
    return User(pod["metadata"].get("namespace") or "", pod["metadata"]["name"], named)


def driver_of(pod: Object, images: Mapping[str, tuple[str, ...]]) -> Driver:
    """A pod of the driver. `images`: those of each DaemonSet's template."""
    metadata, status, spec = pod["metadata"], pod.get("status") or {}, pod.get("spec") or {}
    ready = any(
        c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ()
    )
    owner = next((str(o.get("name")) for o in metadata.get("ownerReferences") or ()), "")
    mounted = [(volume.get("secret") or {}).get("secretName") for volume in spec.get("volumes") or ()]
    wanted = images.get(owner)
    return Driver(
        metadata["name"],
        metadata.get("namespace") or "",
        str(spec.get("nodeName") or ""),
        str(status.get("startTime") or ""),
        ready and not metadata.get("deletionTimestamp"),
        LICENSE in mounted,
        wanted is not None and images_of(spec) != wanted,
        bool(metadata.get("deletionTimestamp")),
    )


def images_of(pod: Object) -> tuple[str, ...]:
    """The images of a pod's containers."""
    return tuple(str(each.get("image")) for each in pod.get("containers") or ())


def is_driver(labels: Object) -> bool:
    """Whether these are labels of the driver's pods."""
    return labels.get(COMPONENT) == DRIVER or labels.get("app") == OLD_DRIVER


def _offers(obj: Object) -> bool:
    offered = (obj.get("status") or {}).get("allocatable") or {}
    return any(str(name).startswith(OFFERED) and str(count) != "0" for name, count in offered.items())


def _note(text: str | None) -> Note | None:
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        return Note("somebody", cordoned=True)
    again, restarted = (str(found.get(name) or "") for name in ("again", "restarted"))
    return Note(str(found.get("by")), bool(found.get("cordoned")), again, restarted)
