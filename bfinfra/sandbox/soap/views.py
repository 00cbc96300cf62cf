"""ViewManager: container and list views."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import UNSTABLE, computed
from bfinfra.sandbox.inventory.vmtypes import field, moid, vim, vmodl
from bfinfra.sandbox.soap.collector import own
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.selection import kind_of

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

MANAGER = "vim.view.ViewManager"
UNSTABLE.add("viewList")


@method(MANAGER, "CreateContainerView", writes=False)
def container_view(call: Call, _: Managed, args: Any) -> Any:
    """A view of what is in a container. InvalidArgument where the object contains nothing."""
    container = call.inventory.get(args.container)
    if not container.is_a(vim.Folder, vim.Datacenter, vim.ComputeResource, vim.ResourcePool, vim.HostSystem):
        raise vmodl.fault.InvalidArgument(
            invalidProperty="container", msg=f"a {container.kind} is no container"
        )
    kinds = field(vim.view.ContainerView, "type").type(args.type or [])
    return own(
        call, vim.view.ContainerView, container=container.ref, type=kinds, recursive=args.recursive
    ).ref


@computed("vim.view.ContainerView", "view")
def _contained(inventory: Inventory, view: Managed) -> Any:
    kinds = tuple(kind_of(each) for each in view["type"])
    start = inventory.objects.get(moid(view["container"]))
    if start is None:
        return []
    found = descendants(inventory, start) if view["recursive"] else members(inventory, start, direct=True)
    return [each.ref for each in found if not kinds or each.is_a(*kinds)]


def descendants(inventory: Inventory, start: Managed) -> list[Managed]:
    """Everything below a container, each once."""
    found: dict[str, Managed] = {}
    pending = members(inventory, start, direct=True)
    while pending:
        at = pending.pop(0)
        if at.moid not in found:
            found[at.moid] = at
            pending += members(inventory, at, direct=False)
    return list(found.values())


def members(inventory: Inventory, container: Managed, *, direct: bool) -> list[Managed]:
    """Return the contents of a container; pools, hosts and clusters show their machines and stores only where
    the view begins there.
    """
    found = [each for each in inventory.children(container) if each.is_a(vim.ManagedEntity)]
    if container.is_a(vim.ComputeResource) and direct:
        found += [inventory.get(ref) for ref in [*container["datastore"], *container["network"]]]
        found += [
            vm
            for vm in inventory.vms()
            if vm.props.get("resourcePool") and inventory.get(vm["resourcePool"])["owner"] == container.ref
        ]
    elif container.is_a(vim.HostSystem) and direct:
        found += [vm for vm in inventory.vms() if vm["runtime"].host == container.ref]
    elif container.is_a(vim.ResourcePool):
        found += [vm for vm in inventory.vms() if vm.props.get("resourcePool") == container.ref]
    return found


@method(MANAGER, "CreateListView", writes=False)
def list_view(call: Call, _: Managed, args: Any) -> Any:
    """A view of the objects named."""
    return own(call, vim.view.ListView, view=existing(call, args.obj)).ref


def existing(call: Call, refs: Any) -> Any:
    """The references whose objects are there."""
    return field(vim.view.ListView, "view").type([ref for ref in refs if moid(ref) in call.inventory.objects])


@method("vim.view.ListView", "ModifyListView", writes=False)
def modify(call: Call, this: Managed, args: Any) -> Any:
    """Add and remove; what is not there comes back."""
    kept = [ref for ref in this["view"] if ref not in (args.remove or [])]
    this["view"] = existing(call, kept + [ref for ref in args.add or [] if ref not in kept])
    call.inventory.touch(this)
    return [ref for ref in args.add or [] if moid(ref) not in call.inventory.objects]


@method("vim.view.ListView", "ResetListView", writes=False)
def reset(call: Call, this: Managed, args: Any) -> Any:
    """Other objects in the same view."""
    this["view"] = existing(call, args.obj or [])
    call.inventory.touch(this)
    return [ref for ref in args.obj or [] if moid(ref) not in call.inventory.objects]


@method("vim.view.View", "DestroyView", writes=False)
def destroy(call: Call, this: Managed, _: object) -> None:
    """Forget the view."""
    call.inventory.remove(this)
