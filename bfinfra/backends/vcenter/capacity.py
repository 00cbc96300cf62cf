"""The capacity of clusters: the sum of their running hosts."""

from __future__ import annotations

from collections.abc import Mapping

from pyVmomi import vim

from bfinfra.backends.vcenter import properties, refs
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.model.records import dataclass

MIB = 2**20
PATHS = {
    vim.ClusterComputeResource: ["summary.effectiveCpu", "summary.effectiveMemory"],
    vim.HostSystem: ["parent", "summary.hardware.cpuMhz"],
}


@dataclass(frozen=True, slots=True)
class Capacity:
    """A cluster's capacity for VMs: `cpu` in MHz, `memory` in bytes; `core`: MHz of a core of its slowest
    host.
    """

    cpu: int
    memory: int
    core: int


class Capacities:
    """Reads them. Raises RemoteError."""

    def __init__(self, session: SoapSession) -> None:
        self._session = session

    def read(self) -> Mapping[str, Capacity]:
        """Cluster's id → capacity, in one bulk read."""
        rows = self._session.read(
            lambda content: properties.below(content, content.rootFolder, PATHS, properties.whole)
        )
        clock: dict[str, int] = {}
        for row in rows:
            if isinstance(row.ref, vim.HostSystem) and (found := row["summary.hardware.cpuMhz"]):
                home = refs.moid(row["parent"])
                clock[home] = min(found, clock.get(home, found))
        return {
            row.moid: Capacity(
                row["summary.effectiveCpu"] or 0,
                (row["summary.effectiveMemory"] or 0) * MIB,
                clock.get(row.moid, 0),
            )
            for row in rows
            if isinstance(row.ref, vim.ClusterComputeResource)
        }
