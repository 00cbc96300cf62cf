"""VirtualMachine.RelocateVM_Task: a machine, on or off, goes to another pool, host or datastore. Source:
RelocateVM_Task, RelocateSpec and MigrationFault of the vSphere API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import disks
from bfinfra.sandbox.inventory.vms import datastore_url, environment_of
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap import tasks
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.importing import refuse_importing
from bfinfra.sandbox.soap.journal import record
from bfinfra.sandbox.soap.migrating import Place, check_migration
from bfinfra.sandbox.soap.placing import host_for
from bfinfra.sandbox.soap.vm_config import update_derived
from bfinfra.sandbox.soap.vm_pci import passthroughs

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

LACKING = (
    *("service", "folder", "transform", "deviceChange", "profile", "cryptoSpec"),
    *("tagSpecs", "vmPlacementPolicies"),
)
LACKING_OF_DISKS = ("diskBackingInfo", "profile", "backing", "filterSpec")
"""Parts of a specification that the sandbox doesn't have."""
PATHS = ("vmPathName", "snapshotDirectory", "suspendDirectory", "logDirectory")


@method("vim.VirtualMachine", "RelocateVM_Task")
def relocate(call: Call, this: Managed, args: Any) -> vim.Task:
    """Another pool, host or datastore in a task."""
    refuse_lacking(args.spec)
    refuse_importing(call.inventory, this)
    old, new = current(call.inventory, this), wanted(call.inventory, this, args.spec)
    may_relocate(call, this, old, new)
    return tasks.start(call, this, "VirtualMachine.relocate", lambda: relocated(call, this, new))


def refuse_lacking(spec: vim.vm.RelocateSpec) -> None:
    """NotSupported for what the sandbox can't do."""
    given = [name for name in LACKING if getattr(spec, name)]
    given += [name for each in spec.disk or [] for name in LACKING_OF_DISKS if getattr(each, name)]
    if given:
        raise vmodl.fault.NotSupported(msg=f"The sandbox relocates no machine with spec.{given[0]}.")


def current(inventory: Inventory, vm: Managed) -> Place:
    """Where the machine is."""
    home = inventory.get(vm["datastore"][0])
    return Place(
        inventory.get(vm["resourcePool"]) if vm["resourcePool"] else None,
        inventory.get(vm["runtime"].host),
        home,
        {each.key: inventory.get(each.backing.datastore or home.ref) for each in disks(vm)},
    )


def wanted(inventory: Inventory, vm: Managed, spec: vim.vm.RelocateSpec) -> Place:
    """Where it is to go. InvalidArgument for a disk that it hasn't, and for a host outside the pool's
    cluster; NoCompatibleHost where DRS finds none.
    """
    now = current(inventory, vm)
    home = inventory.get(spec.datastore) if spec.datastore else now.home
    located = {each.diskId: inventory.get(each.datastore) for each in spec.disk or []}
    if unknown := located.keys() - now.disks.keys():
        raise vmodl.fault.InvalidArgument(
            invalidProperty="spec.disk",
            msg=f"A specified parameter was not correct: spec.disk: {vm.name} has no disk {min(unknown)}",
        )
    stay = now.disks if spec.datastore is None else dict.fromkeys(now.disks, home)
    pool = inventory.get(spec.pool) if spec.pool and now.pool else now.pool
    place = Place(pool, now.host, home, {**stay, **located})
    host = inventory.get(spec.host) if spec.host else now.host
    if pool is not None and (spec.host or host.parent != pool["owner"]):
        cards = [vim.vm.device.VirtualDeviceSpec(device=each) for each in passthroughs(vm)]
        stores = [each.ref for each in place.stores().values()]
        host = host_for(
            inventory, pool, host if spec.host else None, vim.vm.ConfigSpec(deviceChange=cards), stores
        )
    return Place(pool, host, home, place.disks)


def may_relocate(call: Call, vm: Managed, old: Place, new: Place) -> None:
    """NoPermission where the caller may not move it so, beyond the method's own privilege."""
    if vm["runtime"].powerState == "poweredOn" and moves(old, new):
        call.need("Resource.HotMigrate", vm)
    if new.pool is not None and new.pool is not old.pool:
        call.need("Resource.AssignVMToPool", new.pool)
    for store in new.gaining(old).values():
        call.need("Datastore.AllocateSpace", store)


def moves(old: Place, new: Place) -> bool:
    """Return whether the machine changes its host or the datastores of its files."""
    return new.host is not old.host or bool(new.gaining(old))


def relocated(call: Call, vm: Managed, new: Place) -> None:
    """Move the machine. What vCenter refuses."""
    inventory = call.inventory
    inventory.get(vm.ref)
    old = current(inventory, vm)
    if not moves(old, new):
        _go(inventory, vm, old, new)
        return
    check_migration(inventory, vm, (old, new))
    _go(inventory, vm, old, new)
    running = vm["runtime"].powerState == "poweredOn"
    record(
        call,
        vim.event.VmMigratedEvent if running else vim.event.VmRelocatedEvent,
        vm,
        f"Migration of virtual machine {vm.name} from {old.host.name}, {old.home.name} to {new.host.name}, "
        f"{new.home.name} completed",
        template=vm["config"].template,
        sourceHost=vim.event.HostEventArgument(name=old.host.name, host=old.host.ref),
        sourceDatastore=vim.event.DatastoreEventArgument(name=old.home.name, datastore=old.home.ref),
    )


def _go(inventory: Inventory, vm: Managed, old: Place, new: Place) -> None:
    """Change what the machine says of its place."""
    vm["runtime"].host, vm["environmentBrowser"] = new.host.ref, environment_of(inventory, new.host)
    if new.pool is not None:
        vm["resourcePool"] = new.pool.ref
    if new.gaining(old):
        _carry_files(inventory, vm, old, new)
    pools = [each for each in (old.pool, new.pool) if each is not None]
    stores = {**old.stores(), **new.stores()}.values()
    inventory.touch(vm, old.host, new.host, *pools, *stores)


def _carry_files(inventory: Inventory, vm: Managed, old: Place, new: Place) -> None:
    """The configuration and the disks go, each to its datastore."""
    config = vm["config"]
    if new.home is not old.home:
        vm["datastore"], config.datastoreUrl = [new.home.ref], datastore_url(new.home)
        for name in PATHS:
            setattr(config.files, name, _path(getattr(config.files, name), new.home))
    for disk in disks(vm):
        store = new.disks[disk.key]
        if store is not old.disks[disk.key]:
            disk.backing.datastore = store.ref
            disk.backing.fileName = _path(disk.backing.fileName, store)
    update_derived(inventory, vm)


def _path(path: str, store: Managed) -> str:
    """The same path on another datastore."""
    return f"[{store.name}] {path.partition('] ')[2]}"
