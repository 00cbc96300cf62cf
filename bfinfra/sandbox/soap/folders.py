"""Folders: create, rename, destroy them, and move objects into them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.build import GREEN, add_datacenter
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap import tasks
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.placing import check_name
from bfinfra.sandbox.soap.vm_life import vanish

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed

FOLDER = "vim.Folder"
PREFIXES = {
    "VirtualMachine": "group-v",
    "ComputeResource": "group-h",
    "Datastore": "group-s",
    "Network": "group-n",
    "Datacenter": "group-d",
}


def child_types(folder: Managed) -> list[str]:
    """The wire names of what the folder may hold."""
    return [
        each if isinstance(each, str) else each.__name__.rpartition(".")[2] for each in folder["childType"]
    ]


@method(FOLDER, "CreateFolder")
def create(call: Call, this: Managed, args: Any) -> Any:
    """A folder for the same things. DuplicateName where a child has the name."""
    name = check_name(call.inventory, this, args.name)
    prefix = next((PREFIXES[each] for each in child_types(this) if each in PREFIXES), "group-d")
    made = call.inventory.add(
        vim.Folder,
        call.inventory.new_id(prefix, 100),
        name=name,
        parent=this.ref,
        childType=this["childType"],
        value=[],
        **GREEN,
    )
    call.inventory.touch(this)
    return made.ref


@method(FOLDER, "CreateDatacenter")
def create_datacenter(call: Call, this: Managed, args: Any) -> Any:
    """A datacenter with its four folders."""
    if "Datacenter" not in child_types(this):
        raise vmodl.fault.NotSupported(msg=f"The folder {this.name} holds no datacenters.")
    name = check_name(call.inventory, this, args.name)
    return add_datacenter(call.inventory, this, name).ref


@method(FOLDER, "MoveIntoFolder_Task")
def move_into(call: Call, this: Managed, args: Any) -> vim.Task:
    """Other entities come here."""
    moved = [call.inventory.get(ref) for ref in args.list]
    for each in moved:
        if each.is_a(vim.VirtualMachine):
            call.need("VirtualMachine.Inventory.Move", each, call.inventory.get(each.parent), this)
        check_fits(call, this, each)
    return tasks.start(call, this, "Folder.moveInto", lambda: move(call, this, moved), lock=False)


def check_fits(call: Call, folder: Managed, entity: Managed) -> None:
    """DuplicateName where a child has the name; NotSupported where the folder can't hold the entity."""
    if not any(issubclass(type(entity.ref), getattr(vim, each)) for each in child_types(folder)):
        raise vmodl.fault.NotSupported(msg=f"The folder {folder.name} can't hold a {entity.kind}.")
    if folder in call.inventory.ancestors(folder)[1:] or entity in call.inventory.ancestors(folder):
        raise vmodl.fault.InvalidArgument(
            invalidProperty="list", msg=f"{entity.name} can't be moved into itself"
        )
    check_name(call.inventory, folder, entity.name, entity)


def move(call: Call, folder: Managed, moved: list[Managed]) -> None:
    """Change the parents."""
    for each in moved:
        check_fits(call, folder, each)
        each["parent"] = folder.ref
    call.inventory.touch(folder, *moved)


@method(FOLDER, "Destroy_Task")
def destroy(call: Call, this: Managed, _: object) -> vim.Task:
    """Delete the folder and all below it. A running machine makes it fail."""
    call.need("Folder.Delete", this)
    if this.parent is None or call.inventory.get(this.parent).is_a(vim.Datacenter):
        raise vmodl.fault.NotSupported(msg=f"The folder {this.name} can't be destroyed.")
    return tasks.start(call, this, "Folder.destroy", lambda: clear(call, this))


def clear(call: Call, folder: Managed) -> None:
    """Destroy from the leaves up. Raises InvalidPowerState if a machine runs; then nothing below it is
    destroyed.
    """
    for each in call.inventory.children(folder):
        if each.is_a(vim.VirtualMachine):
            vanish(call, each)
        else:
            clear(call, each)
    call.inventory.remove(folder)
