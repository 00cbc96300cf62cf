"""The rest of a machine's life: destroy, unregister, rename, template, clone, annotate."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.hosts import now
from bfinfra.sandbox.inventory.vms import change_version
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap import tasks
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.importing import refuse_importing
from bfinfra.sandbox.soap.journal import record
from bfinfra.sandbox.soap.placing import check_name
from bfinfra.sandbox.soap.vm_config import apply, update_derived
from bfinfra.sandbox.soap.vm_power import boot
from bfinfra.sandbox.soap.vm_rights import may_clone

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

VM = "vim.VirtualMachine"


def refuse_running(vm: Managed) -> None:
    """InvalidPowerState where the machine isn't off."""
    state = vm["runtime"].powerState
    if state != "poweredOff":
        raise vim.fault.InvalidPowerState(
            requestedState="poweredOff",
            existingState=state,
            msg=f"The attempted operation cannot be performed in the current state ({state}).",
        )


@method(VM, "Destroy_Task")
def destroy(call: Call, this: Managed, _: object) -> vim.Task:
    """Delete a machine that is off, with its disks."""
    call.need("VirtualMachine.Inventory.Delete", this)
    refuse_importing(call.inventory, this)
    refuse_running(this)
    return tasks.start(call, this, "VirtualMachine.destroy", lambda: vanish(call, this))


@method(VM, "UnregisterVM")
def unregister(call: Call, this: Managed, _: object) -> None:
    """Take a machine that is off out of the inventory."""
    refuse_importing(call.inventory, this)
    refuse_running(this)
    tasks.refuse_busy(call.inventory, this)
    vanish(call, this)


def vanish(call: Call, vm: Managed) -> None:
    """Remove the machine."""
    inventory = call.inventory
    refuse_running(vm)
    record(
        call,
        vim.event.VmRemovedEvent,
        vm,
        f"Removed {vm.name} on {inventory.get(vm['runtime'].host).name}",
        template=vm["config"].template,
    )
    inventory.remove(vm)


RENAMING = (
    (vim.VirtualMachine, "VirtualMachine.Config.Rename"),
    (vim.Folder, "Folder.Rename"),
    (vim.Datacenter, "Datacenter.Rename"),
    (vim.ResourcePool, "Resource.RenamePool"),
    (vim.Datastore, "Datastore.Rename"),
    (vim.ComputeResource, "Host.Inventory.RenameCluster"),
    (vim.DistributedVirtualSwitch, "DVSwitch.Modify"),
    (vim.dvs.DistributedVirtualPortgroup, "DVPortgroup.Modify"),
)
"""What a new name wants, by the type of the object. Source: ManagedEntity.Rename_Task."""

CONFIGURED = (vim.VirtualMachine, vim.DistributedVirtualSwitch, vim.dvs.DistributedVirtualPortgroup)
"""Those whose configuration has their name, and a version."""


def count_version(inventory: Inventory, entity: Managed) -> None:
    """Give a changed configuration another version."""
    config = entity["config"]
    if entity.is_a(vim.VirtualMachine):
        config.changeVersion = change_version(inventory)
    else:
        config.configVersion = str(int(config.configVersion) + 1)


@method("vim.ManagedEntity", "Rename_Task")
def rename(call: Call, this: Managed, args: Any) -> vim.Task:
    """Another name. DuplicateName where a sibling has it."""
    call.need(next((right for kind, right in RENAMING if this.is_a(kind)), "System.Modify"), this)
    name = check_name(call.inventory, _above(call, this), args.newName, this)
    return tasks.start(call, this, f"{this.kind}.rename", lambda: renamed(call, this, name))


def _above(call: Call, entity: Managed) -> Managed | None:
    return call.inventory.get(entity.parent) if entity.parent else None


def renamed(call: Call, entity: Managed, name: str) -> None:
    """Set the name in every property that has it."""
    check_name(call.inventory, _above(call, entity), name, entity)
    entity["name"] = name
    if entity.is_a(*CONFIGURED):
        entity["config"].name = name
        count_version(call.inventory, entity)
    call.inventory.touch(entity)


@method(VM, "MarkAsTemplate")
def mark_as_template(call: Call, this: Managed, _: object) -> None:
    """A template has no resource pool."""
    refuse_importing(call.inventory, this)
    refuse_running(this)
    this["config"].template, this["resourcePool"] = True, None
    count_version(call.inventory, this)
    call.inventory.touch(this)


@method(VM, "MarkAsVirtualMachine")
def mark_as_machine(call: Call, this: Managed, args: Any) -> None:
    """A machine again, in a pool and on a host."""
    if not this["config"].template:
        raise vim.fault.InvalidState(msg=f"{this.name} is no template")
    this["config"].template, this["resourcePool"] = False, args.pool
    count_version(call.inventory, this)
    if args.host is not None:
        this["runtime"].host = args.host
    call.inventory.touch(this)


@method(VM, "CloneVM_Task")
def clone(call: Call, this: Managed, args: Any) -> vim.Task:
    """A copy with the same devices but passthrough ones; `spec.config` is applied to it."""
    refuse_importing(call.inventory, this)
    folder = call.inventory.get(args.folder)
    may_clone(call, this, folder, args.spec)
    name = check_name(call.inventory, folder, args.name)
    return tasks.start(
        call, this, "VirtualMachine.clone", lambda: cloned(call, this, folder, name, args.spec).ref
    )


def cloned(call: Call, source: Managed, folder: Managed, name: str, spec: Any) -> Managed:
    """Make the copy. What placing and the configuration refuse."""
    from bfinfra.sandbox.soap.vm_create import make  # noqa: PLC0415 - making needs this module's checks

    inventory, where = call.inventory, spec.location
    pool = inventory.get(where.pool or source["resourcePool"] or _refuse_pool())
    host = inventory.get(where.host) if where.host else None
    store = inventory.get(where.datastore or source["datastore"][0])
    copy_of = make(call, folder, (pool, host, store), vim.vm.ConfigSpec(name=name))
    old, new = source["config"], copy_of["config"]
    kept = {
        each: getattr(new, each)
        for each in ("name", "uuid", "instanceUuid", "files", "createDate", "changeVersion")
    }
    copy_of["config"] = copy.deepcopy(old)
    for field, value in kept.items():
        setattr(copy_of["config"], field, value)
    copy_of["config"].template, copy_of["config"].modified = bool(spec.template), now(inventory)
    copy_of["config"].hardware.device = [
        each
        for each in copy_of["config"].hardware.device
        if not isinstance(each, vim.vm.device.VirtualPCIPassthrough)
    ]
    copy_of.hidden["passwords"] = dict(source.hidden.get("passwords", {}))
    finish_clone(call, copy_of, spec)
    return copy_of


def finish_clone(call: Call, vm: Managed, spec: Any) -> None:
    """Apply the clone's own configuration; start it where asked."""
    try:
        apply(call.inventory, vm, spec.config or vim.vm.ConfigSpec())
    except Exception:
        call.inventory.remove(vm)
        raise
    update_derived(call.inventory, vm)
    if spec.powerOn:
        boot(call, vm)


def _refuse_pool() -> Any:
    raise vmodl.fault.InvalidArgument(
        invalidProperty="spec.location.pool",
        msg="A specified parameter was not correct: a template's clone needs a pool",
    )
