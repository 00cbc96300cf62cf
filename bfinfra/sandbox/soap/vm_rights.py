"""The privileges that making and changing machines requires beyond the methods' own. Source:
Folder.CreateVM_Task, VirtualMachine.CloneVM_Task, ConfigSpec; vSphere Security.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.soap.dispatch import Call

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed

DEVICE = vim.vm.device
PRIVILEGES = {  # what a field of the specification asks for
    "name": "VirtualMachine.Config.Rename",
    "annotation": "VirtualMachine.Config.Annotation",
    "numCPUs": "VirtualMachine.Config.CPUCount",
    "numCoresPerSocket": "VirtualMachine.Config.CPUCount",
    "memoryMB": "VirtualMachine.Config.Memory",
    "extraConfig": "VirtualMachine.Config.AdvancedConfig",
    "cpuAllocation": "VirtualMachine.Config.Resource",
    "memoryAllocation": "VirtualMachine.Config.Resource",
    "memoryReservationLockedToMax": "VirtualMachine.Config.Resource",
    "firmware": "VirtualMachine.Config.Settings",
    "bootOptions": "VirtualMachine.Config.Settings",
    "guestId": "VirtualMachine.Config.Settings",
    "uuid": "VirtualMachine.Config.Settings",
    "instanceUuid": "VirtualMachine.Config.Settings",
    "vAppConfig": "VApp.ApplicationConfig",
    "managedBy": "VirtualMachine.Config.ManagedBy",
    "flags": "VirtualMachine.Config.Settings",
    "tools": "VirtualMachine.Config.Settings",
    "latencySensitivity": "VirtualMachine.Config.Settings",
}
PROVISIONING = {
    (False, False): "Clone",
    (False, True): "CreateTemplateFromVM",
    (True, False): "DeployTemplate",
    (True, True): "CloneTemplate",
}
"""By whether the source and the copy are templates."""


def may_create(call: Call, folder: Managed, pool: Any, spec: Any) -> None:
    """Return the privileges that a new machine requires besides the method's own, by the contents of its
    specification. Source: Folder.CreateVM_Task, ConfigSpec.
    """
    call.need("VirtualMachine.Inventory.Create", folder)
    call.need("Resource.AssignVMToPool", call.inventory.get(pool))
    if spec.extraConfig:
        call.need("VirtualMachine.Config.AdvancedConfig", folder)
    for change in spec.deviceChange or []:
        if isinstance(change.device, vim.vm.device.VirtualDisk):
            call.need(
                "VirtualMachine.Config.AddNewDisk"
                if change.fileOperation
                else "VirtualMachine.Config.AddExistingDisk",
                folder,
            )
    may_use_networks(call, spec)
    store = call.inventory.datastore(
        ((spec.files and spec.files.vmPathName) or "").partition("[")[2].partition("]")[0], folder
    )
    if store is not None:
        call.need("Datastore.AllocateSpace", store)


def may_use_networks(call: Call, spec: Any) -> None:
    """Raises NoPermission for an adapter on a network that the caller may not use."""
    for change in spec.deviceChange or []:
        if (
            isinstance(change.device, vim.vm.device.VirtualEthernetCard)
            and change.operation != "remove"
            and (network := network_of(call, change.device)) is not None
        ):
            call.need("Network.Assign", network)


def may_use_datastores(call: Call, spec: Any, home: Any) -> None:
    """NoPermission where a new disk goes to a datastore, `home` where its file's path names none, on which
    the caller may not take room.
    """
    for change in spec.deviceChange or []:
        if change.fileOperation == "create":
            named = (
                (getattr(change.device.backing, "fileName", None) or "").partition("[")[2].partition("]")[0]
            )
            at = call.inventory.get(home)
            call.need("Datastore.AllocateSpace", call.inventory.datastore(named, at) or at)


def network_of(call: Call, card: Any) -> Managed | None:
    """The network that an adapter's backing names."""
    port = getattr(card.backing, "port", None)
    if port is not None:
        return next(
            (each for each in call.inventory.networks() if each.props.get("key") == port.portgroupKey), None
        )
    named = getattr(card.backing, "network", None)
    return (
        call.inventory.get(named)
        if named is not None
        else call.inventory.named(vim.Network, getattr(card.backing, "deviceName", None) or "")
    )


def may_clone(call: Call, source: Managed, folder: Managed, spec: Any) -> None:
    """Return the privileges that a copy requires, by its source, its target, and the changes in its own
    specification.
    """
    call.need(
        f"VirtualMachine.Provisioning.{PROVISIONING[bool(source['config'].template), bool(spec.template)]}",
        source,
    )
    call.need("VirtualMachine.Inventory.CreateFromExisting", folder)
    call.need("VirtualMachine.Config.AddNewDisk", folder)
    if not spec.template and (pool := spec.location.pool or source["resourcePool"]) is not None:
        call.need("Resource.AssignVMToPool", call.inventory.get(pool))
    home = spec.location.datastore or source["datastore"][0]
    call.need("Datastore.AllocateSpace", call.inventory.get(home))
    if spec.config is not None:
        for privilege in privileges(spec.config):
            call.need(privilege, folder)
        may_use_networks(call, spec.config)
        may_use_datastores(call, spec.config, home)
    if spec.powerOn:
        call.need("VirtualMachine.Interact.PowerOn", folder)


def privileges(spec: Any) -> list[str]:
    """The privileges that the set parts of a specification need."""
    found = [privilege for name, privilege in PRIVILEGES.items() if getattr(spec, name) not in (None, [])]
    found += [device_privilege(each) for each in spec.deviceChange or []]
    return sorted(set(found)) or ["VirtualMachine.Config.Settings"]


def device_privilege(change: Any) -> str:
    """The privilege for one device change."""
    if isinstance(change.device, DEVICE.VirtualDisk):
        return {"add": "VirtualMachine.Config.AddNewDisk", "remove": "VirtualMachine.Config.RemoveDisk"}.get(
            change.operation, "VirtualMachine.Config.DiskExtend"
        )
    return (
        "VirtualMachine.Config.EditDevice"
        if change.operation == "edit"
        else "VirtualMachine.Config.AddRemoveDevice"
    )
