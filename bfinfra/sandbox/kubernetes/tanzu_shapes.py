"""The two kinds of objects that a workload cluster is written as, read and reported in one way: Tanzu's own,
and a Cluster of a ClusterClass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bfinfra.sandbox.kubernetes.objects import Object, dig
from bfinfra.sandbox.kubernetes.store import Key
from bfinfra.sandbox.kubernetes.tanzu_versions import pools_of

TANZU: Key = ("run.tanzu.vmware.com", "tanzukubernetesclusters")
CLUSTER_API: Key = ("cluster.x-k8s.io", "clusters")
CONTROL_PLANE = "control-plane"


@dataclass(frozen=True)
class Pool:
    """Machines that are alike. `name`: control-plane, or the workers' own."""

    name: str
    count: int
    vm_class: str
    storage_class: str
    volumes: Any = None
    rest: str = ""
    """The other properties of its machines; another value means other machines."""
    surge: bool = True
    """True if a new machine comes before an old one goes."""
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[str, ...] = ()
    """Of its nodes; taints as JSON."""
    gone: tuple[int, ...] = ()
    """Numbers of machines that were deleted one by one."""

    def numbers(self) -> list[int]:
        """The numbers of its machines."""
        every = (number for number in range(self.count + len(self.gone)) if number not in self.gone)
        return list(every)[: self.count]

    @property
    def duration(self) -> str:
        """Return the time that one of its machines takes, by its name among the world's durations."""
        return "control_plane" if self.name == CONTROL_PLANE else "worker"


@dataclass(frozen=True)
class Progress:
    """The progress of a cluster. `phase`: creating, running, updating, failed, updateFailed, deleting;
    `address`: of its API, "" = none yet.
    """

    phase: str
    nodes: Mapping[str, str]
    conditions: list[Object]
    addons: Object
    address: str


@dataclass(frozen=True)
class Shape:
    """How one kind is read from the store, and how its status is written. `holds`: whether an object is of
    this kind.
    """

    key: Key
    finalizer: str
    pools: Callable[[Object], Iterator[Pool]]
    release: Callable[[Object], str]
    status: Callable[[Object, Progress], Object]
    phase: Callable[[Object], str]
    holds: Callable[[Object], bool] = lambda _: True


def legacy(thing: Object) -> bool:
    """Return whether a Cluster, as it is kept, is of the class that came before those of the vSphere
    Kubernetes Service.
    """
    return bool(dig(thing, "spec", "topology", "class") == "tanzukubernetescluster")


def _tanzu_pools(thing: Object) -> Iterator[Pool]:
    topology = thing["spec"]["topology"]
    yield _first(CONTROL_PLANE, topology["controlPlane"])
    for each in pools_of(thing):
        yield Pool(
            each["name"], each.get("replicas", 0), each["vmClass"], each["storageClass"], each.get("volumes")
        )


def _first(name: str, nodes: Object) -> Pool:
    return Pool(name, nodes.get("count", 0), nodes["class"], nodes["storageClass"], nodes.get("volumes"))


def _tanzu_status(_: Object, now: Progress) -> Object:
    nodes = dict(now.nodes)
    status: Object = {
        "phase": now.phase,
        "nodeStatus": nodes,
        "vmStatus": nodes,
        "conditions": now.conditions,
        "addons": now.addons,
    }
    if now.address:
        status["clusterApiStatus"] = {
            "apiEndpoints": [{"host": now.address, "port": 6443}],
            "phase": "Provisioned",
        }
    return status


def _cluster_pools(thing: Object) -> Iterator[Pool]:
    topology = thing["spec"]["topology"]
    values = variables(topology.get("variables"))
    yield _pool(CONTROL_PLANE, topology.get("controlPlane"), values, "controlPlaneVolumes")
    for each in dig(topology, "workers", "machineDeployments", default=[]):
        yield _pool(
            each["name"], each, values | variables(dig(each, "variables", "overrides")), "nodePoolVolumes"
        )


def _pool(name: str, nodes: Any, values: Mapping[str, Any], volumes: str) -> Pool:
    return Pool(
        name,
        dig(nodes, "replicas", default=0),
        values.get("vmClass", ""),
        values.get("storageClass", ""),
        values.get(volumes),
    )


def variables(listed: Any) -> dict[str, Any]:
    """Their values by name."""
    return {each["name"]: each.get("value") for each in listed or []}


def _cluster_status(thing: Object, now: Progress) -> Object:
    """A Cluster is Provisioned as soon as its API can be reached, however many of its machines are there."""
    phase = {"deleting": "Deleting"}.get(now.phase, "Provisioned" if now.address else "Provisioning")
    known = {"infrastructureReady": bool(now.address), "controlPlaneReady": bool(now.nodes)}
    return {
        "phase": phase,
        "conditions": now.conditions,
        "observedGeneration": thing["metadata"].get("generation", 1),
        **known,
    }


def _cluster_phase(thing: Object) -> str:
    return {"Provisioned": "running", "Deleting": "deleting"}.get(
        dig(thing, "status", "phase", default=""), "creating"
    )


TANZU_CLUSTER = Shape(
    TANZU,
    "tanzukubernetescluster.run.tanzu.vmware.com",
    _tanzu_pools,
    lambda thing: str(dig(thing, "spec", "distribution", "fullVersion", default="")),
    _tanzu_status,
    lambda thing: str(dig(thing, "status", "phase", default="")),
)
CLUSTER = Shape(
    CLUSTER_API,
    "cluster.cluster.x-k8s.io",
    _cluster_pools,
    lambda thing: str(dig(thing, "spec", "topology", "version", default="")).replace("---", "+"),
    _cluster_status,
    _cluster_phase,
    legacy,
)
SHAPES = (TANZU_CLUSTER, CLUSTER)
