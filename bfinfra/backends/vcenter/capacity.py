"""The capacity of clusters: the sum of their running hosts, and their largest host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pyVmomi import vim

from bfinfra.backends.vcenter import properties, refs
from bfinfra.backends.vcenter.properties import Row
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.model.records import dataclass

MIB = 2**20
PATHS = {
    vim.ClusterComputeResource: ["summary.effectiveCpu", "summary.effectiveMemory"],
    vim.HostSystem: [
        "parent",
        "summary.hardware.cpuMhz",
        "summary.hardware.numCpuThreads",
        "summary.hardware.memorySize",
    ],
}


@dataclass(frozen=True, slots=True)
class Capacity:
    """A cluster's capacity for VMs: `cpu` in MHz, `memory` in bytes; `core`: MHz of a core of its slowest
    host; `threads`, `host_memory`: the most logical CPUs and bytes that one host has, 0 if not known.
    """

    cpu: int
    memory: int
    core: int
    threads: int = 0
    host_memory: int = 0


class Capacities:
    """Reads them. Raises RemoteError."""

    def __init__(self, session: SoapSession) -> None:
        self._session = session

    def read(self) -> Mapping[str, Capacity]:
        """Cluster's id → capacity, in one bulk read."""
        rows = self._session.read(
            lambda content: properties.below(content, content.rootFolder, PATHS, properties.whole)
        )
        hosts: dict[str, list[Row]] = {}
        for row in rows:
            if isinstance(row.ref, vim.HostSystem):
                hosts.setdefault(refs.moid(row["parent"]), []).append(row)
        return {
            row.moid: Capacity(
                row["summary.effectiveCpu"] or 0,
                (row["summary.effectiveMemory"] or 0) * MIB,
                min(filter(None, _each(own, "cpuMhz")), default=0),
                max(_each(own, "numCpuThreads"), default=0),
                max(_each(own, "memorySize"), default=0),
            )
            for row in rows
            if isinstance(row.ref, vim.ClusterComputeResource)
            for own in [hosts.get(row.moid, [])]
        }


def _each(hosts: Iterable[Row], name: str) -> Iterator[int]:
    return (int(row[f"summary.hardware.{name}"] or 0) for row in hosts)
