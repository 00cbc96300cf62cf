"""Folder.CreateVM_Task, and making a machine from a specification for imports and clones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vms import add_vm
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap import tasks
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.journal import record
from bfinfra.sandbox.soap.placing import check_name, datastore_for, host_for
from bfinfra.sandbox.soap.vm_config import apply
from bfinfra.sandbox.soap.vm_rights import may_create

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed


@method("vim.Folder", "CreateVM_Task")
def create_vm(call: Call, this: Managed, args: Any) -> vim.Task:
    """A new machine. DuplicateName and what the specification breaks come at once; the machine comes with the
    task.
    """
    check_folder(this)
    may_create(call, this, args.pool, args.config)
    pool = call.inventory.get(args.pool)
    host = call.inventory.get(args.host) if args.host else None
    args.config.name = check_name(call.inventory, this, args.config.name)
    datastore_for(
        call.inventory,
        host_for(call.inventory, pool, host, args.config),
        args.config.files and args.config.files.vmPathName,
    )
    return tasks.start(
        call,
        this,
        "Folder.createVm",
        lambda: make(call, this, (pool, host, None), args.config).ref,
        lock=False,
    )


def check_folder(folder: Managed) -> None:
    """NotSupported where the folder holds no machines."""
    if "VirtualMachine" not in [
        each if isinstance(each, str) else each.__name__.rpartition(".")[2] for each in folder["childType"]
    ]:
        raise vmodl.fault.NotSupported(msg=f"The folder {folder.name} holds no virtual machines.")


def make(
    call: Call, folder: Managed, place: tuple[Managed, Managed | None, Managed | None], spec: Any
) -> Managed:
    """The machine, at once; `place`: pool, host and datastore, the latter two chosen where None. All faults
    of placing and of the specification; nothing is left behind then.
    """
    (pool, host, store), inventory = place, call.inventory
    spec.name = check_name(inventory, folder, spec.name)
    home = host_for(inventory, pool, host, spec)
    store = store or datastore_for(inventory, home, spec.files and spec.files.vmPathName)
    vm = add_vm(inventory, spec.name, folder, (pool, home, store))
    try:
        apply(inventory, vm, spec)
    except Exception:
        inventory.remove(vm)
        raise
    inventory.touch(folder, pool, home)
    record(
        call,
        vim.event.VmCreatedEvent,
        vm,
        f"Created virtual machine {vm.name} on {home.name}",
        template=False,
    )
    return vm
