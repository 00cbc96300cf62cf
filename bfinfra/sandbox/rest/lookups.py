"""Lists of the inventory: names to ids. Source: com.vmware.vcenter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import moid, vim
from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.routes import Call, route

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory import Managed

LIMITS = {
    "vm": 4000,
    "host": 2500,
    "cluster": 1000,
    "datastore": 2500,
    "network": 1000,
    "folder": 1000,
    "resource-pool": 1000,
    "datacenter": 1000,
}
STATES = {"poweredOn": "POWERED_ON", "poweredOff": "POWERED_OFF", "suspended": "SUSPENDED"}
CONNECTIONS = {"connected": "CONNECTED", "disconnected": "DISCONNECTED", "notResponding": "NOT_RESPONDING"}
FOLDERS = {"vm": "VIRTUAL_MACHINE", "host": "HOST", "datastore": "DATASTORE", "network": "NETWORK"}


@route("GET", "/vcenter/datacenter")
def datacenters(call: Call) -> Any:
    """Datacenters."""
    return [
        {"datacenter": each.moid, "name": each.name}
        for each in _wanted(call, "datacenter", call.inventory.datacenters())
    ]


@route("GET", "/vcenter/cluster")
def clusters(call: Call) -> Any:
    """Clusters."""
    return [
        {
            "cluster": each.moid,
            "name": each.name,
            "ha_enabled": bool(each["configurationEx"].dasConfig.enabled),
            "drs_enabled": bool(each["configurationEx"].drsConfig.enabled),
        }
        for each in _wanted(call, "cluster", call.inventory.clusters())
    ]


@route("GET", "/vcenter/cluster/{cluster}")
def cluster(call: Call, cluster: str) -> Any:
    """One cluster."""
    found = _one(call.inventory.clusters(), "cluster", cluster)
    return {"name": found.name, "resource_pool": moid(found["resourcePool"])}


@route("GET", "/vcenter/host")
def hosts(call: Call) -> Any:
    """Hosts."""
    found = [
        {
            "host": each.moid,
            "name": each.name,
            "connection_state": CONNECTIONS[each["runtime"].connectionState],
            "power_state": STATES.get(each["runtime"].powerState, "POWERED_OFF"),
            "host_uuid": each["hardware"].systemInfo.uuid,
        }
        for each in _wanted(call, "host", call.inventory.hosts())
    ]
    return [
        each
        for each in found
        if each["connection_state"] in call.query.get("connection_states", CONNECTIONS.values())
    ]


@route("GET", "/vcenter/datastore")
def datastores(call: Call) -> Any:
    """Datastores; `free_space` and `capacity` in bytes."""
    found = []
    for each in _wanted(call, "datastore", call.inventory.datastores()):
        capacity = int(each.hidden["capacity"])
        found.append(
            {
                "datastore": each.moid,
                "name": each.name,
                "type": "VMFS",
                "free_space": int(each["info"].freeSpace),
                "capacity": capacity,
            }
        )
    return found


@route("GET", "/vcenter/datastore/{datastore}")
def datastore(call: Call, datastore: str) -> Any:
    """One datastore."""
    found = _one(call.inventory.datastores(), "datastore", datastore)
    return {
        "name": found.name,
        "type": "VMFS",
        "accessible": True,
        "free_space": int(found["info"].freeSpace),
        "multiple_host_access": len(found["host"]) > 1,
        "thin_provisioning_supported": True,
    }


@route("GET", "/vcenter/network")
def networks(call: Call) -> Any:
    """Networks."""
    kinds = {
        "Network": "STANDARD_PORTGROUP",
        "DistributedVirtualPortgroup": "DISTRIBUTED_PORTGROUP",
        "OpaqueNetwork": "OPAQUE_NETWORK",
    }
    found = [
        {"network": each.moid, "name": each.name, "type": kinds[each.kind]}
        for each in _wanted(call, "network", call.inventory.networks())
    ]
    return [each for each in found if each["type"] in call.query.get("types", kinds.values())]


@route("GET", "/vcenter/folder")
def folders(call: Call) -> Any:
    """Folders."""
    found = [
        {"folder": each.moid, "name": each.name, "type": _folder_type(each)}
        for each in _wanted(call, "folder", call.inventory.folders())
    ]
    return [each for each in found if each["type"] in call.query.get("type", [each["type"]])]


@route("GET", "/vcenter/resource-pool")
def resource_pools(call: Call) -> Any:
    """Resource pools."""
    return [
        {"resource_pool": each.moid, "name": each.name}
        for each in _wanted(call, "resource-pool", call.inventory.resource_pools())
    ]


@route("GET", "/vcenter/vm")
def vms(call: Call) -> Any:
    """Virtual machines."""
    found = []
    for each in _wanted(call, "vm", [vm for vm in call.inventory.vms() if not vm["config"].template]):
        hardware = each["config"].hardware
        found.append(
            {
                "vm": each.moid,
                "name": each.name,
                "power_state": STATES[each["runtime"].powerState],
                "cpu_count": int(hardware.numCPU),
                "memory_size_MiB": int(hardware.memoryMB),
            }
        )
    return [each for each in found if each["power_state"] in call.query.get("power_states", STATES.values())]


def _wanted(call: Call, kind: str, found: list[Managed]) -> list[Managed]:
    """Those that the query's filters let through. Raises Refused (UNSUPPORTED) for a filter that isn't known,
    or too many objects.
    """
    plural = f"{kind.replace('-', '_')}s"
    known = {
        plural,
        "names",
        "folders",
        "datacenters",
        "clusters",
        "hosts",
        "resource_pools",
        "parent_folders",
        "parent_resource_pools",
    }
    if unknown := sorted(set(call.query) - known - {"types", "type", "power_states", "connection_states"}):
        raise Refused("INVALID_ARGUMENT", f"unknown filter {', '.join(unknown)}")
    with call.inventory.lock:
        kept = [each for each in found if _passes(call, each, plural)]
    if len(kept) > LIMITS[kind]:
        raise Refused("UNSUPPORTED", f"more than {LIMITS[kind]} results: give a filter")
    return kept


def _passes(call: Call, each: Managed, plural: str) -> bool:
    query = call.query
    above = {managed.moid for managed in call.inventory.ancestors(each)}
    if each.is_a(vim.VirtualMachine):
        for place in (each["runtime"].host, each.props.get("resourcePool")):
            above |= (
                {managed.moid for managed in call.inventory.ancestors(call.inventory.get(place))}
                if place
                else set()
            )
    if each.is_a(vim.ResourcePool):
        above.add(moid(each["owner"]))
    parents = {
        name
        for name in (
            "folders",
            "datacenters",
            "clusters",
            "hosts",
            "resource_pools",
            "parent_folders",
            "parent_resource_pools",
        )
        if name != plural
    }
    return (
        each.moid in query.get(plural, [each.moid])
        and each.name in query.get("names", [each.name])
        and all(above & set(query[name]) for name in parents if name in query)
    )


def _one(found: list[Managed], what: str, moid: str) -> Managed:
    for each in found:
        if each.moid == moid:
            return each
    raise missing(f"The {what}", moid)


def _folder_type(folder: Managed) -> str:
    names = {each.__name__.rpartition(".")[2] for each in folder["childType"]}
    for word, kind in (
        ("VirtualMachine", "vm"),
        ("ComputeResource", "host"),
        ("Datastore", "datastore"),
        ("Network", "network"),
    ):
        if word in names:
            return FOLDERS[kind]
    return "DATACENTER"
