"""What prevents a machine from going to another host or datastore. Source: the faults of RelocateVM_Task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bfinfra.sandbox.inventory.computed import disks
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap.placing import check_host
from bfinfra.sandbox.soap.vm_config import network_of
from bfinfra.sandbox.soap.vm_devices import check_room
from bfinfra.sandbox.soap.vm_pci import PCI, fixed, passthroughs
from bfinfra.sandbox.soap.vm_power import check_memory

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

CARD = vim.vm.device.VirtualEthernetCard


@dataclass(frozen=True)
class Place:
    """Where a machine is or goes. `home`: the datastore of its configuration; `disks`: disk key →
    datastore; `pool`: None for a template.
    """

    pool: Managed | None
    host: Managed
    home: Managed
    disks: dict[int, Managed]

    def stores(self) -> dict[str, Managed]:
        """Its datastores by id."""
        return {each.moid: each for each in (self.home, *self.disks.values())}

    def gaining(self, old: Place) -> dict[str, Managed]:
        """The datastores, by id, to which files come from the old place."""
        home = [self.home] if self.home is not old.home else []
        return {
            each.moid: each
            for each in (*home, *(store for key, store in self.disks.items() if store is not old.disks[key]))
        }


def check_migration(inventory: Inventory, vm: Managed, way: tuple[Place, Place]) -> None:
    """Raise the fault of what prevents it. `way`: where it is and where it goes."""
    old, new = way
    state = vm["runtime"].connectionState
    if state != "connected":
        raise vim.fault.InvalidState(
            msg=f"The operation is not allowed in the current state: {vm.name} is {state}."
        )
    check_host(new.host)
    _check_datacenter(inventory, old.host, new.host)
    _check_stores(vm, old, new)
    if new.host is not old.host:
        _check_networks(inventory, vm, new.host)
        _check_devices(inventory, vm, new.host)
    _check_space(inventory, vm, old, new)


def _check_datacenter(inventory: Inventory, old: Managed, new: Managed) -> None:
    """InvalidArgument: into another datacenter it needs a folder there, which the sandbox can't give it."""
    centers = [
        [each for each in inventory.ancestors(host) if each.is_a(vim.Datacenter)] for host in (old, new)
    ]
    if centers[0] != centers[1]:
        raise vmodl.fault.InvalidArgument(
            invalidProperty="spec.folder",
            msg="A specified parameter was not correct: spec.folder: the host is in another datacenter",
        )


def _check_stores(vm: Managed, old: Place, new: Place) -> None:
    """InaccessibleDatastore for a datastore to go to that the host lacks; CannotAccessVmConfig and
    CannotAccessVmDisk for one to stay on.
    """
    mounted = new.host["datastore"]
    for store in new.gaining(old).values():
        if store.ref not in mounted:
            raise _inaccessible(store, new.host)
    if new.home.ref not in mounted:
        reason = _inaccessible(new.home, new.host)
        raise vim.fault.CannotAccessVmConfig(
            reason=reason, msg=f"Unable to access the virtual machine configuration: {reason.msg}"
        )
    for disk in disks(vm):
        store = new.disks[disk.key]
        if store.ref not in mounted:
            fault = _inaccessible(store, new.host)
            raise vim.fault.CannotAccessVmDisk(
                device=disk.deviceInfo.label,
                backing=disk.backing.fileName,
                connected=True,
                fault=fault,
                msg=f"Virtual disk '{disk.deviceInfo.label}' is not accessible on the host: {fault.msg}",
            )


def _inaccessible(store: Managed, host: Managed) -> vim.fault.InaccessibleDatastore:
    why = f"The datastore '{store.name}' is not accessible on the host {host.name}."
    return vim.fault.InaccessibleDatastore(datastore=store.ref, name=store.name, detail=why, msg=why)


def _check_networks(inventory: Inventory, vm: Managed, host: Managed) -> None:
    """CannotAccessNetwork where the host lacks the network of an adapter that is, or will be, connected."""
    for card in vm["config"].hardware.device:
        network = network_of(inventory, card.backing) if isinstance(card, CARD) else None
        if (
            network is None
            or network in host["network"]
            or not (card.connectable.connected or card.connectable.startConnected)
        ):
            continue
        label, name = card.deviceInfo.label, inventory.get(network).name
        raise vim.fault.CannotAccessNetwork(
            device=label,
            backing=name,
            connected=True,
            network=network,
            msg=f"Currently connected network interface '{label}' uses network '{name}', which is not "
            f"accessible on {host.name}.",
        )


def _check_devices(inventory: Inventory, vm: Managed, host: Managed) -> None:
    """A running machine goes without passthrough devices only, and where its reservation fits; one that is
    off takes a fixed device along to a host that has it.
    """
    if vm["runtime"].powerState != "poweredOn":
        for each in passthroughs(vm):
            backing = each.backing
            if isinstance(backing, PCI.DeviceBackingInfo) and (why := fixed(inventory, host, backing, [])):
                label = each.deviceInfo.label
                raise vim.fault.CannotAccessVmDevice(
                    device=label,
                    backing=backing.id or "",
                    connected=True,
                    msg=f"Device '{label}' uses backing '{backing.id}', which is not accessible: {why}.",
                )
        return
    held = (*passthroughs(vm), *(each for each in vm["config"].hardware.device if _is_rdma(each)))
    for each in held:
        label = each.deviceInfo.label
        why = f"The virtual machine is running and has the device '{label}', which can't be migrated."
        raise vim.fault.DisallowedMigrationDeviceAttached(
            fault=vim.fault.DeviceNotSupported(device=label, msg=why), msg=why
        )
    check_memory(inventory, vm, host)


def _is_rdma(device: object) -> bool:
    return isinstance(device, vim.vm.device.VirtualVmxnet3Vrdma)


def _check_space(inventory: Inventory, vm: Managed, old: Place, new: Place) -> None:
    """NoDiskSpace where the disks that come to a datastore don't fit."""
    coming: dict[str, int] = {}
    for disk in disks(vm):
        store = new.disks[disk.key]
        if store is not old.disks[disk.key]:
            coming[store.moid] = coming.get(store.moid, 0) + (disk.capacityInBytes or 0)
            check_room(inventory, store, disk.backing.fileName, coming[store.moid])
