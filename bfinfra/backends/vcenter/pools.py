"""Resource pools: one bulk read, and one small method for each write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyVmomi import vim

from bfinfra.backends.vcenter import attributes, properties, refs
from bfinfra.backends.vcenter.names import sent
from bfinfra.backends.vcenter.places import Allocation, ResourcePool
from bfinfra.backends.vcenter.properties import Row
from bfinfra.backends.vcenter.session import SoapSession
from bfinfra.backends.vcenter.tasks import Tasks

POOL = vim.ResourcePool
PATHS: Mapping[type[Any], Sequence[str]] = {
    POOL: [
        "name",
        "parent",
        "owner",
        "vm",
        "config.cpuAllocation",
        "config.memoryAllocation",
        "config.changeVersion",
        "customValue",
    ]
}
UNLIMITED = -1


class ResourcePools:
    """The resource pools of one vCenter, each with a note in a custom attribute. Raises RemoteError."""

    def __init__(self, session: SoapSession, tasks: Tasks, defined: attributes.Defined | None = None) -> None:
        self._session = session
        self._tasks = tasks
        self._defined = defined
        self._notes = attributes.LastOne()

    def read(self, attribute: str) -> tuple[ResourcePool, ...]:
        """Every pool but clusters' own and vApps, with its note in this attribute."""

        def read(content: vim.ServiceInstanceContent) -> tuple[ResourcePool, ...]:
            keys = attributes.keys(content, attribute, self._defined)
            rows = properties.below(content, content.rootFolder, PATHS, properties.whole)
            return tuple(
                _pool(row, keys)
                for row in rows
                if isinstance(row["parent"], POOL) and not isinstance(row.ref, vim.VirtualApp)
            )

        return self._session.read(read)

    def create(self, parent: str, name: str, cpu: Allocation, memory: Allocation) -> str:
        """Make a pool below the one with this id; returns its id. Raises Exists if the name is taken
        there.
        """

        def create(content: vim.ServiceInstanceContent) -> str:
            spec = vim.ResourceConfigSpec(cpuAllocation=_sent(cpu), memoryAllocation=_sent(memory))
            made = refs.refer(content, POOL, parent).CreateResourcePool(sent(name), spec)
            properties.renew(content, POOL)
            return refs.moid(made)

        return self._session.write(create)

    def update(
        self,
        moid: str,
        name: str,
        sizes: tuple[Allocation, Allocation],
        writes: Callable[[str], bool],
        *,
        version: str = "",
    ) -> None:
        """Set its name, and of processor and memory what `writes` says, by their names in a site. vCenter
        keeps the others. Raises Exists if the name is taken there, Conflict if the configuration is no longer
        of this version; "": whatever it is.
        """
        cpu, memory = sizes

        def update(content: vim.ServiceInstanceContent) -> None:
            spec = vim.ResourceConfigSpec(
                changeVersion=version or None,
                cpuAllocation=_sent(cpu, lambda each: writes(f"cpu.{each}")),
                memoryAllocation=_sent(memory, lambda each: writes(f"memory.{each}")),
            )
            refs.refer(content, POOL, moid).UpdateConfig(sent(name), spec)

        self._session.write(update)

    def rename(self, moid: str, name: str) -> None:
        """Set its name only. Raises Exists if it is taken there."""
        self._session.write(lambda content: refs.refer(content, POOL, moid).UpdateConfig(sent(name), None))

    def move(self, moid: str, parent: str) -> None:
        """Move it with its contents below another pool of the same cluster."""
        self._session.write(
            lambda content: refs.refer(content, POOL, parent).MoveIntoResourcePool(
                [refs.refer(content, POOL, moid)]
            )
        )

    def note(self, moid: str, attribute: str, text: str) -> None:
        """Write a note; the attribute is defined for resource pools if it isn't yet."""
        self._session.write(
            lambda content: attributes.write(content, refs.refer(content, POOL, moid), attribute, text)
        )

    def forget(self, moid: str, attribute: str) -> None:
        """Empty a note; the last one removes the attribute's definition."""

        def empty(last: bool) -> Callable[[Any], None]:
            return lambda content: attributes.drop(
                content, refs.refer(content, POOL, moid), attribute, last=last
            )

        self._notes.drop(
            moid,
            lambda: {each.moid: (each.moid, each.note) for each in self.read(attribute)},
            lambda last: self._session.write(empty(last)),
        )

    def remove(self, moid: str) -> None:
        """Delete it; its machines move to its parent."""
        self._tasks.run(
            lambda content: refs.refer(content, POOL, moid).Destroy_Task(), f"removing resource pool {moid}"
        )


def _pool(row: Row, keys: Sequence[int]) -> ResourcePool:
    notes = (str(each.value) for each in row["customValue"] or () if each.key in keys and each.value)
    return ResourcePool(
        moid=row.moid,
        name=row.name,
        ref=row.ref,
        owner=refs.moid(row["owner"]),
        parent=refs.moid(row["parent"]),
        cpu=_read(row["config.cpuAllocation"]),
        memory=_read(row["config.memoryAllocation"]),
        vms=tuple(refs.moid(each) for each in row["vm"] or ()),
        note=next(notes, ""),
        version=row["config.changeVersion"] or "",
    )


def _read(found: Any) -> Allocation:
    limit = UNLIMITED if found.limit is None else int(found.limit)
    return Allocation(
        reservation=int(found.reservation or 0),
        limit=None if limit == UNLIMITED else limit,
        shares=int(found.shares.shares) if found.shares.level == "custom" else str(found.shares.level),
        expandable=bool(found.expandableReservation),
    )


def _sent(wanted: Allocation, writes: Callable[[str], bool] = lambda _: True) -> Any:
    custom = isinstance(wanted.shares, int)
    shares = vim.SharesInfo(
        level="custom" if custom else wanted.shares, shares=wanted.shares if custom else 0
    )
    limit = UNLIMITED if wanted.limit is None else wanted.limit
    return vim.ResourceAllocationInfo(
        reservation=wanted.reservation if writes("reservation") else None,
        limit=limit if writes("limit") else None,
        expandableReservation=wanted.expandable if writes("expandable") else None,
        shares=shares if writes("shares") else None,
    )
