"""The part of a workload cluster or machine of any kind that the checks of a namespace read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from bfinfra.model.conflict import Spot
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Key


@dataclass(frozen=True)
class Pool:
    """Nodes that are alike. `role`: dotted field, "" for a machine itself; `count`: the most that there can
    be; `volumes`: bytes of the separate disks of each node.
    """

    role: str
    count: int
    vm_class: str
    storage_class: str
    volumes: int = 0


class NodeDemand(NamedTuple):
    """Nodes, or a machine, that are alike: `most` of them, each of `vm_class`; `least`: how many must run;
    `surge`: how many more come before old ones go; `rollout`: whether the site's file can say so.
    """

    spot: Spot
    namespace: str
    vm_class: str
    most: int
    least: int
    surge: int = 0
    rollout: bool = True


def demands(key: Key, namespace: str, pools: Iterable[Pool]) -> Iterator[NodeDemand]:
    """Yield what nodes demand whose number and replacement are the supervisor's: one more comes first."""
    for pool in pools:
        at = Spot(key, f"{pool.role}.vm_class")
        yield NodeDemand(at, namespace, pool.vm_class, pool.count, pool.count, 1, rollout=False)


def surge_of(surge: int | str, nodes: int) -> int:
    """Return how many new nodes may come before old ones go."""
    return surge if isinstance(surge, int) else -(-int(surge.rstrip("%")) * nodes // 100)


class InNamespace(Protocol):
    """A resource that is made of machines in a supervisor namespace, as a site writes it."""

    @property
    def namespace(self) -> str:
        """Its supervisor namespace."""

    @property
    def vm_classes(self) -> Mapping[str, str]:
        """Dotted field → every VM class that it names."""

    @property
    def storage(self) -> Mapping[str, str]:
        """Dotted field → every storage class that it names."""


class Sized(InNamespace, Protocol):
    """A workload cluster or a machine, as a site writes it."""

    def pools(self) -> tuple[Pool, ...]:
        """Its nodes, the control plane's first; or the machine, then its disks."""


class ClusterSpec(Sized, Protocol):
    """A workload cluster, as a site writes it."""

    @property
    def version(self) -> str:
        """Kubernetes version, in full or a prefix."""
