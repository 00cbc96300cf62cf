"""SearchIndex: by inventory path, name, UUID, address."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.views import members

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed

INDEX = "vim.SearchIndex"


@method(INDEX, "FindByInventoryPath", writes=False)
def by_path(call: Call, _: Managed, args: Any) -> Any:
    """The entity at "Datacenter/vm/name"; None where there is none."""
    at = call.inventory.objects["group-d1"]
    for name in [unquote(each) for each in args.inventoryPath.strip("/").split("/") if each]:
        found = child(call, at, name)
        if found is None:
            return None
        at = found
    return at.ref


def child(call: Call, parent: Managed, name: str) -> Managed | None:
    """The child of this name."""
    return next(
        (each for each in members(call.inventory, parent, direct=False) if unquote(each.name) == name), None
    )


@method(INDEX, "FindChild", writes=False)
def find_child(call: Call, _: Managed, args: Any) -> Any:
    """The child of an entity by name."""
    found = child(call, call.inventory.get(args.entity), unquote(args.name))
    return found.ref if found else None


@method(INDEX, "FindByUuid", writes=False)
def by_uuid(call: Call, _: Managed, args: object) -> Any:
    """A machine by BIOS or instance UUID, or a host."""
    found = _by_uuid(call, args)
    return found[0] if found else None


@method(INDEX, "FindAllByUuid", writes=False)
def all_by_uuid(call: Call, _: Managed, args: object) -> Any:
    """All machines of a UUID."""
    return _by_uuid(call, args)


def _by_uuid(call: Call, args: Any) -> list[Any]:
    wanted = args.uuid.lower()
    if not args.vmSearch:
        return [each.ref for each in call.inventory.hosts() if each["hardware"].systemInfo.uuid == wanted]
    field = "instanceUuid" if args.instanceUuid else "uuid"
    return [
        each.ref for each in call.inventory.vms() if (getattr(each["config"], field) or "").lower() == wanted
    ]


@method(INDEX, "FindByDnsName", writes=False)
def by_dns_name(call: Call, _: Managed, args: Any) -> Any:
    """A machine by its guest's host name, or a host by its name."""
    found = (
        [each for each in call.inventory.vms() if each["guest"].hostName == args.dnsName]
        if args.vmSearch
        else [each for each in call.inventory.hosts() if each.name == args.dnsName]
    )
    return found[0].ref if found else None


@method(INDEX, "FindByIp", writes=False)
def by_ip(call: Call, _: Managed, args: Any) -> Any:
    """A machine by its guest's address."""
    found = [each for each in call.inventory.vms() if each["guest"].ipAddress == args.ip]
    return found[0].ref if found and args.vmSearch else None


@method(INDEX, "FindByDatastorePath", writes=False)
def by_datastore_path(call: Call, _: Managed, args: Any) -> Any:
    """A machine by "[store] folder/name.vmx"."""
    found = [
        each for each in call.inventory.of(vim.VirtualMachine) if each["config"].files.vmPathName == args.path
    ]
    return found[0].ref if found else None
