"""The inventory as the world file describes it: built, saved, restored, reset."""

from __future__ import annotations

from collections import defaultdict
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory import permissions, saved
from bfinfra.sandbox.inventory.build import build
from bfinfra.sandbox.inventory.guest import start_guest
from bfinfra.sandbox.inventory.hosts import come_back
from bfinfra.sandbox.inventory.store import Inventory

if TYPE_CHECKING:
    from bfinfra.sandbox.clock import Clock


class BuiltInventory(Inventory):
    """The inventory at the start, as the world file describes it."""

    def __init__(self, world: Any, clock: Clock) -> None:
        super().__init__(world, clock)
        self._build()

    def save(self) -> dict[str, Any]:
        """Everything that survives a restart, as JSON values; tasks, leases and what belongs to sessions
        doesn't.
        """
        with self.lock:
            return {
                "counters": dict(self.counters),
                "objects": [saved.written(each) for each in self.objects.values() if saved.lasts(each)],
            }

    def restore(self, data: dict[str, Any]) -> None:
        """The inventory as it was saved. What was on its way arrives: hosts come back from a reboot, guests
        finish booting.
        """
        with self.lock:
            self.objects = {managed.moid: managed for managed in map(saved.read, data["objects"])}
            self.counters = defaultdict(int, data["counters"])
            if "permissions" not in self.objects[permissions.MANAGER].hidden:  # saved before there were any
                permissions.furnish(self)
            self.touch(*self.objects.values())
            for host in self.hosts():
                if host["runtime"].connectionState == "notResponding":
                    come_back(self, host)
            on = [vm for vm in self.vms() if vm["runtime"].powerState == "poweredOn"]
            up = [vm for vm in on if vm["guest"].guestState == "running"]
            for vm in on:
                if vm not in up:
                    start_guest(self, vm)
        for vm in up:
            self.powered(vm, on=True)

    def reset(self) -> None:
        """The inventory as the world describes it."""
        with self.lock:
            for vm in self.vms():
                if vm["runtime"].powerState == "poweredOn":
                    self.powered(vm, on=False)
            if self._unchanged():  # a tenth of the work, and what was serialised for clients still holds
                self.objects = {moid: managed for moid, (managed, _, _) in self._new.items()}
                self.counters, self.events = self._counted.copy(), []
                self.touch()
            else:
                self.objects, self.counters, self.events = {}, defaultdict(int), []
                self._build()

    def _build(self) -> None:
        build(self)
        self.touch(*self.objects.values())
        self._counted = self.counters.copy()
        self._new = {
            moid: (managed, managed.version, deepcopy(managed.hidden))
            for moid, managed in self.objects.items()
        }

    def _unchanged(self) -> bool:
        """Whether all that was built is there as it was built; others may have come."""
        return all(
            self.objects.get(moid) is managed
            and managed.hidden == hidden
            and (managed.version == version or managed.kind == "SessionManager")  # each login touches it
            for moid, (managed, version, hidden) in self._new.items()
        )

    def dump(self) -> dict[str, Any]:
        """Return the inventory by path, without generated ids and times: equal inventories dump equal."""
        with self.lock:
            return saved.dump(self)
