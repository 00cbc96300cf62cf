"""The inventory as JSON: exact for a restart, normalised for comparing two worlds."""

from __future__ import annotations

import functools
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any
from xml.parsers.expat import ParserCreate

from pyVmomi import SoapAdapter

from bfinfra.sandbox.inventory.guest import leased
from bfinfra.sandbox.inventory.managed import Managed
from bfinfra.sandbox.inventory.vmtypes import field, fields, moid, support, typed, vim, wsdl_type

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.store import Inventory

PASSING = (vim.Task, vim.HttpNfcLease, vim.view.View, vim.HistoryCollector)
GENERATED = frozenset(
    {
        "uuid",
        "instanceUuid",
        "locationId",
        "changeVersion",
        "changeId",
        "macAddress",
        "bootTime",
        "createDate",
        "modified",
        "connectionState",
        "recentTask",
        "childEntity",
        "moid",
        "url",
        "freeSpace",
        "uptime",
        "uptimeSeconds",
        "diskObjectId",
        "configVersion",
        "createTime",
    }
)
DUMPED = {
    "VirtualMachine": ("config", "runtime", "guest", "resourcePool", "datastore", "network", "value"),
    "HostSystem": ("config", "runtime", "datastore", "network", "value"),
    "ResourcePool": ("config", "owner"),
    "Folder": ("childType",),
    "Datastore": ("info", "value"),
    "ClusterComputeResource": ("configurationEx",),
    "VmwareDistributedVirtualSwitch": ("config",),
    "DistributedVirtualPortgroup": ("config",),
}
NOTE = vim.CustomFieldsManager.StringValue  # pyVmomi looks a type up each time it is named
GROUP_KEY = re.compile(r"dvportgroup-\d+")  # keys of port groups are their ids
PLAIN = frozenset((str, int, bool, float, type(None)))
UNORDERED = (support.ManagedObject, NOTE)
"""Lists of these are sets: their order is that in which they came."""
NEWEST = support.newestVersions.Get("vim")
ANY = support.Object(name="v", type=object, version=NEWEST, flags=support.F_OPTIONAL)


def lasts(managed: Managed) -> bool:
    """Return whether the object survives a restart of vCenter."""
    return not managed.is_a(*PASSING) and "session" not in managed.hidden


def written(managed: Managed) -> dict[str, Any]:
    """The object as JSON values; property values as pyVmomi's XML."""
    kinds = {name: field(type(managed.ref), name).type for name in managed.props}
    props = {
        name: SoapAdapter.SerializeToStr(typed(value, kinds[name]), ANY, NEWEST)
        for name, value in managed.props.items()
        if value is not None
    }
    return {"kind": managed.kind, "moid": managed.moid, "props": props, "hidden": managed.hidden}


def read(data: dict[str, Any]) -> Managed:
    """The object of `written`."""
    return Managed(
        wsdl_type(data["kind"])(data["moid"]),
        {name: parsed(xml) for name, xml in data["props"].items()},
        data["hidden"],
    )


def parsed(xml: str) -> Any:
    """One value from pyVmomi's XML."""
    parser = ParserCreate(namespace_separator=SoapAdapter.NS_SEP)
    reader = SoapAdapter.SoapDeserializer()
    reader.Deserialize(parser, object)
    parser.Parse(xml)
    return reader.GetResult()


def dump(inventory: Inventory) -> dict[str, Any]:
    """Objects by inventory path."""
    found: dict[str, Any] = {}
    for managed in inventory.objects.values():
        if managed.is_a(vim.ManagedEntity):
            values = {
                name: plain(inventory, managed.props.get(name)) for name in DUMPED.get(managed.kind, ())
            }
            if guest := values.get("guest"):
                values["guest"] = _without(guest, {str(each.ip) for each in leased(inventory, managed)})
            values["files"] = sorted(managed.hidden.get("files", ()))
            found[f"{managed.kind} {inventory.path(managed)}"] = {
                name: value for name, value in values.items() if value not in (None, [], {})
            }
    return dict(sorted(found.items()))


def _without(value: object, given: set[str]) -> Any:
    """Leaves out addresses by DHCP: they depend on the machine's id, and so on the order of creation."""
    if isinstance(value, dict):
        return {name: _without(each, given) for name, each in value.items()}
    if isinstance(value, list):
        return [_without(each, given) for each in value]
    return "by DHCP" if value in given else value


def plain(inventory: Inventory, value: object) -> Any:
    """A property value without generated ids and times."""
    if type(value) in PLAIN:  # most are: asked first
        return _plain(inventory, value)
    if isinstance(value, support.ManagedObject):
        target = inventory.objects.get(moid(value))
        return f"{target.kind} {inventory.path(target)}" if target else "gone"
    if isinstance(value, support.DataObject):
        noted = isinstance(value, NOTE)
        return _note(inventory, value.key, value.value) if noted else _fields(inventory, value)
    if isinstance(value, list):
        shown = [plain(inventory, each) for each in value]
        return sorted(shown, key=str) if value and isinstance(value[0], UNORDERED) else shown
    if isinstance(value, type):
        return str(support.GetWsdlName(value))
    return _plain(inventory, value)


def _note(inventory: Inventory, key: int, text: object) -> dict[str, str]:
    defined = inventory.objects["CustomFieldsManager"]["field"]
    return {"note": next((each.name for each in defined if each.key == key), "gone"), "value": str(text)}


def _fields(inventory: Inventory, value: object) -> dict[str, object]:
    kind: type = type(value)
    found: dict[str, object] = {"_": kind.__name__}
    for name in _dumped(kind):
        each = plain(inventory, getattr(value, name))
        if each is not None and each != []:
            found[name] = each
    return found


@functools.cache
def _dumped(kind: type) -> tuple[str, ...]:
    return tuple(info.name for info in fields(kind) if info.name not in GENERATED)


def _plain(inventory: Inventory, value: Any) -> Any:
    if isinstance(value, int | float) or value is None:
        return value
    if isinstance(value, datetime):
        return None
    group = inventory.objects.get(value) if GROUP_KEY.fullmatch(str(value)) else None
    return inventory.path(group) if group else str(value)
