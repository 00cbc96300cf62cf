"""Resource pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.build import add_pool
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap import tasks
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.placing import check_name
from bfinfra.sandbox.soap.vm_config import merged

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed

POOL = "vim.ResourcePool"


@method(POOL, "CreateResourcePool")
def create(call: Call, this: Managed, args: Any) -> Any:
    """A pool below this one. DuplicateName, InvalidName, InvalidArgument."""
    call.need("Resource.CreatePool", this)
    name = check_name(call.inventory, this, args.name)
    check_allocation(args.spec)
    made = add_pool(
        call.inventory, this.ref, this["owner"], name, (args.spec.cpuAllocation, args.spec.memoryAllocation)
    )
    call.inventory.touch(this)
    return made.ref


def check_allocation(spec: object) -> None:
    """InvalidArgument where a part is missing or negative."""
    for name in ("cpuAllocation", "memoryAllocation"):
        part = getattr(spec, name)
        if part is None or (part.reservation or 0) < 0 or (part.limit is not None and part.limit < -1):
            raise vmodl.fault.InvalidArgument(
                invalidProperty=f"spec.{name}", msg=f"A specified parameter was not correct: spec.{name}"
            )


@method(POOL, "UpdateConfig")
def update(call: Call, this: Managed, args: Any) -> None:
    """Another name, other limits."""
    if args.name and args.name != this.name:
        refuse_root(call, this)
        call.need("Resource.RenamePool", this)
        this["name"] = check_name(call.inventory, call.inventory.get(this.parent), args.name, this)
    if args.config is not None:
        call.need("Resource.EditPool", this)
        config = this["config"]
        if args.config.changeVersion and args.config.changeVersion != config.changeVersion:
            raise vim.fault.ConcurrentAccess(msg="The resource pool was modified by another operation.")
        check_allocation(args.config)
        config.cpuAllocation = merged(config.cpuAllocation, args.config.cpuAllocation)
        config.memoryAllocation = merged(config.memoryAllocation, args.config.memoryAllocation)
        config.changeVersion = str(int(config.changeVersion) + 1)
    call.inventory.touch(this)


def refuse_root(call: Call, pool: Managed) -> None:
    """NotSupported for a cluster's root pool."""
    if not call.inventory.get(pool.parent).is_a(vim.ResourcePool):
        raise vmodl.fault.NotSupported(msg="A cluster's root resource pool can't be renamed or destroyed.")


@method(POOL, "Destroy_Task")
def destroy(call: Call, this: Managed, _: object) -> vim.Task:
    """Delete a pool; its machines and pools go to its parent."""
    call.need("Resource.DeletePool", this)
    refuse_root(call, this)
    return tasks.start(call, this, "ResourcePool.destroy", lambda: dissolve(call, this))


def dissolve(call: Call, pool: Managed) -> None:
    """Hand everything to the parent."""
    inventory = call.inventory
    for each in inventory.children(pool):
        each["parent"] = pool.parent
    for vm in inventory.vms():
        if vm.props.get("resourcePool") == pool.ref:
            vm["resourcePool"] = pool.parent
            inventory.touch(vm)
    inventory.remove(pool)


@method(POOL, "DestroyChildren")
def destroy_children(call: Call, this: Managed, _: object) -> None:
    """Delete the pools below; their machines come here."""
    for each in list(call.inventory.children(this)):
        if each.is_a(vim.ResourcePool):
            destroy_children(call, each, None)
            dissolve(call, each)


@method(POOL, "MoveIntoResourcePool")
def move_into(call: Call, this: Managed, args: Any) -> None:
    """Machines and pools of the same cluster come here. InvalidArgument for others; then none has moved."""
    coming = [call.inventory.get(ref) for ref in args.list]
    for each in coming:
        check_belongs(call, this, each)
    for each in coming:
        if each.is_a(vim.VirtualMachine):
            call.need("Resource.AssignVMToPool", this, each)
            call.need("VirtualMachine.Inventory.Move", each)
            each["resourcePool"] = this.ref
        else:
            call.need("Resource.MovePool", this, each)
            check_name(call.inventory, this, each.name, each)
            each["parent"] = this.ref
        call.inventory.touch(each, this)


def check_belongs(call: Call, pool: Managed, entity: Managed) -> None:
    """InvalidArgument for a machine or pool of another cluster, and for a pool that holds this one."""
    machine = entity.is_a(vim.VirtualMachine)
    owner = call.inventory.get(entity["runtime"].host).parent if machine else entity["owner"]
    if owner != pool["owner"] or entity in call.inventory.ancestors(pool):
        raise vmodl.fault.InvalidArgument(
            invalidProperty="list",
            msg=f"A specified parameter was not correct: {entity.name} can't come into the pool {pool.name}",
        )
