"""The inventory: managed objects by id, one lock, one counter of changes."""

from __future__ import annotations

import threading
import uuid
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.managed import Managed
from bfinfra.sandbox.inventory.vmtypes import moid as moid_of
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl, wsdl_type

if TYPE_CHECKING:
    from bfinfra.sandbox.clock import Clock
    from bfinfra.sandbox.world_hosts import Cluster

PowerHook = Callable[[Managed, bool], None]


class Inventory:
    """All managed objects of one vCenter. Hold `lock` while reading several or changing any; `touch` says
    what changed.
    """

    def __init__(self, world: Any, clock: Clock) -> None:
        self.world, self.clock = world, clock
        self.lock = threading.Condition(threading.RLock())
        self.version, self.moment = 1, 0
        self.objects: dict[str, Managed] = {}
        self.counters: dict[str, int] = defaultdict(int)
        self.events: list[Any] = []
        self.certificate: Callable[[str], str] | None = (
            None  # a host's certificate as PEM, where there are any
        )
        self._power_hooks: list[PowerHook] = []
        self.room_hooks: list[Callable[[], None]] = []
        """Called soon after GPUs became free, or hosts began to give them."""
        self._remembered: tuple[int, dict[str, Any]] = (0, {})

    def add(self, kind: Any, moid: str, hidden: dict[str, Any] | None = None, **props: Any) -> Managed:
        """A new object under this id."""
        managed = Managed(kind(moid), props, hidden)
        self.objects[moid] = managed
        self.touch(managed)
        return managed

    def new_id(self, prefix: str, start: int = 1) -> str:
        """The next id with this prefix: the same calls give the same ids."""
        self.counters[prefix] = max(self.counters[prefix] + 1, start)
        return f"{prefix}{self.counters[prefix]}"

    def new_uuid(self, name: str) -> str:
        """A UUID that is the same in each run of the same world."""
        return str(uuid.uuid5(uuid.UUID(self.world.vcenter.instance_uuid), name))

    def remove(self, managed: Managed) -> None:
        """Remove the object, without a check of privileges."""
        self.objects.pop(managed.moid, None)
        self.touch(managed)

    def touch(self, *changed: Managed) -> None:
        """Report that these objects changed: drops caches, wakes waiting collectors."""
        with self.lock:
            self.version += 1
            for managed in changed:
                managed.version = self.version
            self.lock.notify_all()

    def get(self, ref: object) -> Managed:
        """The object of a reference. Raises ManagedObjectNotFound if it no longer exists."""
        found = self.objects.get(moid_of(ref))
        if found is None:
            raise vmodl.fault.ManagedObjectNotFound(
                obj=ref,
                msg=(
                    f"The object '{type(ref).__name__}:{moid_of(ref)}' has already been deleted or has not "
                    "been completely created"
                ),
            )
        return found

    def of(self, *types: object) -> list[Managed]:
        """All objects of these types, in the order of their making."""
        return [managed for managed in self.objects.values() if managed.is_a(*types)]

    def children(self, managed: Managed) -> list[Managed]:
        """The objects whose parent it is."""
        index: dict[str, list[Managed]] = self.remembered("children", self._by_parent)
        return index.get(managed.moid, [])

    def _by_parent(self) -> dict[str, list[Managed]]:
        index: dict[str, list[Managed]] = defaultdict(list)
        for each in self.objects.values():
            if each.parent is not None:
                index[moid_of(each.parent)].append(each)
        return index

    def remembered(self, name: str, make: Callable[[], Any]) -> Any:
        """Return the result of `make`, computed once for each state of the inventory."""
        if self._remembered[0] != self.version:
            self._remembered = (self.version, {})
        found = self._remembered[1]
        if name not in found:
            found[name] = make()
        return found[name]

    def parent(self, managed: Managed) -> Managed | None:
        """The object's parent, or None."""
        return self.objects.get(moid_of(managed.parent)) if managed.parent is not None else None

    def ancestors(self, managed: Managed) -> list[Managed]:
        """The object, its parent, and so on to the root."""
        chain, at = [], self.objects.get(managed.moid)
        while at is not None:
            chain.append(at)
            at = self.parent(at)
        return chain

    def path(self, managed: Managed) -> str:
        """The inventory path: "/Singapore/vm/bf-01"; "/" for the root."""
        return "/" + "/".join(each.name for each in reversed(self.ancestors(managed)[:-1]))

    def named(self, kind: object, name: str) -> Managed | None:
        """The first object of the type with this name."""
        return next((managed for managed in self.of(kind) if managed.name == name), None)

    def there(self, path: str) -> Managed | None:
        """What is at an inventory path without the slash in front."""
        return next((each for each in self.of(vim.ManagedEntity) if self.path(each) == f"/{path}"), None)

    def datastore(self, name: str, near: Managed) -> Managed | None:
        """The datastore of this name in the datacenter of an object."""
        center = next((each for each in self.ancestors(near) if each.is_a(vim.Datacenter)), None)
        found = (each for each in self.datastores() if each.name == name and center in self.ancestors(each))
        return next(found, None)

    def given(self, cluster: Managed) -> Cluster | None:
        """What the world file says of a cluster; None for those of other teams."""
        found: Cluster | None = self.world.clusters.get(cluster.name)
        return None if cluster.hidden.get("beside") else found

    def clusters(self) -> list[Managed]:
        """Clusters."""
        return self.of(vim.ClusterComputeResource)

    def hosts(self) -> list[Managed]:
        """ESXi hosts."""
        return self.of(vim.HostSystem)

    def datastores(self) -> list[Managed]:
        """Datastores."""
        return self.of(vim.Datastore)

    def networks(self) -> list[Managed]:
        """Networks and distributed port groups."""
        return self.of(vim.Network)

    def datacenters(self) -> list[Managed]:
        """Datacenters."""
        return self.of(vim.Datacenter)

    def folders(self) -> list[Managed]:
        """Folders."""
        return self.of(vim.Folder)

    def resource_pools(self) -> list[Managed]:
        """Resource pools, the roots of clusters included."""
        return self.of(vim.ResourcePool)

    def vms(self) -> list[Managed]:
        """Virtual machines and templates."""
        return self.of(vim.VirtualMachine)

    def on_power(self, hook: PowerHook) -> None:
        """Call `hook(vm, on)` after a virtual machine is up (its guest has booted) and when it goes off."""
        self._power_hooks.append(hook)

    def powered(self, vm: Managed, *, on: bool) -> None:
        """Call the power hooks."""
        for hook in self._power_hooks:
            hook(vm, on)

    def room_changed(self) -> None:
        """Call the hooks for GPUs, in the clock's thread: they enter clusters."""
        for hook in self.room_hooks:
            self.clock.after(0, hook)

    def lookup(self, kind: str, moid: str) -> Managed | None:
        """The object of this wire type and id, or None."""
        found = self.objects.get(moid)
        return found if found is not None and found.is_a(wsdl_type(kind)) else None
