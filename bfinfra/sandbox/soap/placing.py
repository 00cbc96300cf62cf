"""Places a new machine: names, hosts, datastores."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import TYPE_CHECKING
from urllib.parse import unquote

from bfinfra.sandbox.inventory.computed import used_memory
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap.vm_pci import PCI

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

NAME_LIMIT = 80


def kept_name(name: str) -> str:
    """A name as vCenter keeps it: slashes of both kinds and `%` are escaped, but for a `%` that begins an
    escape. Source: ManagedEntity.name.
    """
    plain = re.sub(r"%(?![0-9A-Fa-f]{2})", "%25", name)
    return plain.replace("/", "%2f").replace("\\", "%5c")


def check_name(
    inventory: Inventory, folder: Managed | None, name: str | None, but: Managed | None = None
) -> str:
    """The name as it is kept. InvalidName for no name or one too long, DuplicateName where a sibling has it.

    Names are unique among the children of a folder, a pool or a switch's folder, as vSphere has it; the root
    folder is in none.
    """
    if not name or len(unquote(name)) > NAME_LIMIT:
        raise vim.fault.InvalidName(name=name or "", msg=f"The name '{name or ''}' is not valid.")
    name = kept_name(name)
    for each in inventory.children(folder) if folder else ():
        if each.name == name and each is not but:
            raise vim.fault.DuplicateName(
                name=name, object=each.ref, msg=f"The name '{name}' already exists."
            )
    return name


def host_for(
    inventory: Inventory,
    pool: Managed,
    host: Managed | None,
    spec: vim.vm.ConfigSpec,
    stores: Collection[object] = (),
) -> Managed:
    """The host asked for, or the one of the pool's cluster that fits, has these datastores and uses least
    memory. NoCompatibleHost, InvalidArgument, InvalidState.
    """
    owner = inventory.get(pool["owner"])
    if host is not None:
        if host.parent != owner.ref:
            raise vmodl.fault.InvalidArgument(
                invalidProperty="host",
                msg=f"A specified parameter was not correct: {host.name} is no host of {owner.name}",
            )
        check_host(host)
        return host
    wanted = {
        change.device.backing.id
        for change in spec.deviceChange or []
        if isinstance(change.device, PCI) and isinstance(change.device.backing, PCI.DeviceBackingInfo)
    }
    fitting = [
        each
        for each in inventory.children(owner)
        if each.is_a(vim.HostSystem)
        and usable(each)
        and all(store in each["datastore"] for store in stores)
        and wanted <= {device.id for device in each["hardware"].pciDevice}
    ]
    if not fitting:
        raise vim.fault.NoCompatibleHost(
            msg=f"No host of {owner.name} is compatible with the virtual machine."
        )
    return min(fitting, key=lambda each: used_memory(inventory, each))


def usable(host: Managed) -> bool:
    """Return whether machines can be placed there."""
    return host["runtime"].connectionState == "connected" and not host["runtime"].inMaintenanceMode


def check_host(host: Managed) -> None:
    """HostNotConnected or InvalidState where the host takes no machine."""
    if host["runtime"].connectionState != "connected":
        raise vmodl.fault.HostNotConnected(
            msg=f"Unable to communicate with the remote host {host.name}, since it is disconnected."
        )
    if host["runtime"].inMaintenanceMode:
        raise vim.fault.InvalidState(
            msg=f"The operation is not allowed in the current state: {host.name} is in maintenance mode."
        )


def datastore_for(inventory: Inventory, host: Managed, path: str | None) -> Managed:
    """The datastore of "[name] …", mounted by the host. InvalidDatastorePath, InvalidDatastore."""
    name = (path or "").strip()
    if not name.startswith("[") or "]" not in name:
        raise vim.fault.InvalidDatastorePath(datastorePath=name, msg=f"Invalid datastore path '{name}'.")
    store = inventory.datastore(name[1:].partition("]")[0], host)
    if store is None or store.ref not in host["datastore"]:
        raise vim.fault.InvalidDatastorePath(
            datastorePath=name, msg=f"The host {host.name} has no datastore '{name}'."
        )
    return store
