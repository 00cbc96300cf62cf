"""Makes managed objects from the world file: folders, datacenter, clusters, hosts, datastores, networks,
services.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory import permissions, services
from bfinfra.sandbox.inventory.hosts import add_host
from bfinfra.sandbox.inventory.vms import add_vm
from bfinfra.sandbox.inventory.vmtypes import vim

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

GREEN: dict[str, Any] = {"overallStatus": "green", "configStatus": "green"}
CHILD_TYPES = {
    "vm": ["Folder", "VirtualMachine", "VirtualApp"],
    "host": ["Folder", "ComputeResource"],
    "datastore": ["Folder", "Datastore", "StoragePod"],
    "network": ["Folder", "Network", "DistributedVirtualSwitch"],
}
PREFIX = {"vm": "group-v", "host": "group-h", "datastore": "group-s", "network": "group-n"}


def build(inventory: Inventory) -> None:
    """Fill an empty inventory from the world file."""
    world = inventory.world
    root = inventory.add(
        vim.Folder, "group-d1", name="Datacenters", childType=types("Folder", "Datacenter"), **GREEN
    )
    services.add_services(inventory, root)
    datacenter = add_datacenter(inventory, root, world.datacenter)
    networks = [add_network(inventory, datacenter, name) for name in world.networks]
    for name, cluster in world.clusters.items():
        add_cluster(inventory, datacenter, name, cluster, networks)
    for name, datastore in world.datastores.items():
        add_datastore(inventory, datacenter, name, datastore)
    for cluster in inventory.clusters():
        finish_cluster(inventory, cluster, networks)
    for name, template in world.templates.items():
        add_template(inventory, datacenter, name, template)
    permissions.furnish(inventory)


def add_template(inventory: Inventory, datacenter: Managed, name: str, template: Any) -> Managed:
    """A template in the datacenter's own folder."""
    cluster, store = (
        inventory.named(vim.ClusterComputeResource, template.cluster),
        inventory.named(vim.Datastore, template.datastore),
    )
    if cluster is None or store is None:
        raise ValueError(
            f"template {name}: there is no cluster {template.cluster} or no datastore {template.datastore}"
        )
    host = next(each for each in inventory.children(cluster) if each.is_a(vim.HostSystem))
    made = add_vm(
        inventory,
        name,
        folder(inventory, datacenter, "vm"),
        (inventory.get(cluster["resourcePool"]), host, store),
    )
    network = host["network"][0] if host["network"] else None
    backing = (
        vim.vm.device.VirtualEthernetCard.NetworkBackingInfo(
            network=network, deviceName=inventory.get(network).name
        )
        if network
        else None
    )
    card = vim.vm.device.VirtualVmxnet3(
        key=4000,
        backing=backing,
        macAddress="00:50:56:00:02:00",
        addressType="generated",
        controllerKey=100,
        unitNumber=7,
    )
    made["config"].hardware.device = [*made["config"].hardware.device, card]
    made["config"].template, made["config"].guestId, made["resourcePool"], made["network"] = (
        True,
        template.guest,
        None,
        [network] if network else [],
    )
    return made


def types(*names: str) -> Any:
    """Wire names of types as an array of types."""
    return vim.Folder._GetPropertyInfo("childType").type([getattr(vim, name) for name in names])  # noqa: SLF001 - pyVmomi's public name


def add_datacenter(inventory: Inventory, root: Managed, name: str) -> Managed:
    """A datacenter with its four folders."""
    datacenter = inventory.add(
        vim.Datacenter, inventory.new_id("datacenter-", 2), name=name, parent=root.ref, **GREEN
    )
    for each, prefix in PREFIX.items():
        folder = inventory.add(
            vim.Folder,
            inventory.new_id(prefix, 3),
            name=each,
            parent=datacenter.ref,
            childType=types(*CHILD_TYPES[each]),
            **GREEN,
        )
        datacenter[f"{each}Folder"] = folder.ref
    datacenter["datastore"], datacenter["network"] = [], []
    datacenter["configuration"] = vim.Datacenter.ConfigInfo(defaultHardwareVersionKey="vmx-21")
    return datacenter


def folder(inventory: Inventory, datacenter: Managed, which: str) -> Managed:
    """One of the four folders of a datacenter."""
    return inventory.get(datacenter[f"{which}Folder"])


def add_network(inventory: Inventory, datacenter: Managed, name: str) -> Managed:
    """A standard network."""
    network = inventory.add(
        vim.Network,
        inventory.new_id("network-", 11),
        name=name,
        parent=folder(inventory, datacenter, "network").ref,
        value=[],
        **GREEN,
    )
    datacenter["network"] = [*datacenter["network"], network.ref]
    return network


def add_cluster(
    inventory: Inventory, datacenter: Managed, name: str, cluster: Any, networks: list[Managed]
) -> Managed:
    """A cluster with its root resource pool, environment browser and hosts."""
    moid = inventory.new_id("domain-c", 8)
    made = inventory.add(
        vim.ClusterComputeResource,
        moid,
        name=name,
        parent=folder(inventory, datacenter, "host").ref,
        value=[],
        **GREEN,
        configurationEx=vim.cluster.ConfigInfoEx(
            dasConfig=vim.cluster.DasConfigInfo(enabled=False),
            drsConfig=vim.cluster.DrsConfigInfo(
                enabled=True, defaultVmBehavior="fullyAutomated", vmotionRate=3
            ),
        ),
        configuration=vim.cluster.ConfigInfo(
            dasConfig=vim.cluster.DasConfigInfo(enabled=False),
            drsConfig=vim.cluster.DrsConfigInfo(
                enabled=True, defaultVmBehavior="fullyAutomated", vmotionRate=3
            ),
        ),
    )
    pool = add_pool(inventory, made.ref, made.ref, "Resources", (allocation(), allocation()))
    browser = inventory.add(vim.EnvironmentBrowser, f"envbrowser-{moid}", {"owner": moid})
    made["resourcePool"], made["environmentBrowser"] = pool.ref, browser.ref
    for host_name, host in cluster.hosts.items():
        add_host(inventory, made, host_name, host, networks)
    return made


def allocation(reservation: int = 0, limit: int = -1) -> Any:
    """A resource allocation with normal shares."""
    return vim.ResourceAllocationInfo(
        reservation=reservation,
        limit=limit,
        expandableReservation=True,
        shares=vim.SharesInfo(level="normal", shares=4000),
    )


def add_pool(
    inventory: Inventory, parent: object, owner: object, name: str, limits: tuple[object, object]
) -> Managed:
    """A resource pool; `limits` are its allocations of CPU and of memory."""
    pool = inventory.add(
        vim.ResourcePool,
        inventory.new_id("resgroup-", 9),
        name=name,
        parent=parent,
        owner=owner,
        value=[],
        **GREEN,
    )
    pool["config"] = vim.ResourceConfigSpec(
        entity=pool.ref, changeVersion="1", cpuAllocation=limits[0], memoryAllocation=limits[1]
    )
    return pool


def add_datastore(inventory: Inventory, datacenter: Managed, name: str, datastore: Any) -> Managed:
    """A VMFS datastore, mounted by its hosts."""
    moid, size = inventory.new_id("datastore-", 15), int(datastore.capacity)
    url = f"ds:///vmfs/volumes/{inventory.new_uuid(name)}/"
    hosts = mounting(inventory, datastore)
    browser = inventory.add(
        vim.host.DatastoreBrowser,
        f"datastoreBrowser-{moid}",
        {"datastore": moid},
        datastore=[vim.Datastore(moid)],
        supportedType=[],
    )
    made = inventory.add(
        vim.Datastore,
        moid,
        {"capacity": size, "files": {}},
        name=name,
        parent=folder(inventory, datacenter, "datastore").ref,
        value=[],
        browser=browser.ref,
        **GREEN,
        info=vim.host.VmfsDatastoreInfo(
            name=name,
            url=url,
            freeSpace=size,
            maxFileSize=64 << 40,
            maxMemoryFileSize=64 << 40,
            maxPhysicalRDMFileSize=64 << 40,
            maxVirtualRDMFileSize=64 << 40,
        ),
        capability=vim.Datastore.Capability(
            directoryHierarchySupported=True,
            rawDiskMappingsSupported=True,
            perFileThinProvisioningSupported=True,
            storageIORMSupported=True,
        ),
        host=[
            vim.Datastore.HostMount(
                key=host.ref,
                mountInfo=vim.host.MountInfo(path=url, accessMode="readWrite", mounted=True, accessible=True),
            )
            for host in hosts
        ],
    )
    datacenter["datastore"] = [*datacenter["datastore"], made.ref]
    for host in hosts:
        host["datastore"] = [*host["datastore"], made.ref]
    return made


def mounting(inventory: Inventory, datastore: Any) -> list[Managed]:
    """The hosts that mount a datastore: those named, those of the clusters named, or all where neither is."""
    hosts, clusters = set(datastore.hosts or ()), set(datastore.clusters or ())
    named = [
        host for host in inventory.hosts() if host.name in hosts or _cluster_name(inventory, host) in clusters
    ]
    return named if hosts or clusters else inventory.hosts()


def _cluster_name(inventory: Inventory, host: Managed) -> str:
    return inventory.get(host.parent).name


def finish_cluster(inventory: Inventory, cluster: Managed, networks: list[Managed]) -> None:
    """A cluster sees what one of its hosts sees."""
    hosts = [each for each in inventory.children(cluster) if each.is_a(vim.HostSystem)]
    cluster["datastore"] = [
        each.ref for each in inventory.datastores() if any(each.ref in host["datastore"] for host in hosts)
    ]
    cluster["network"] = [each.ref for each in networks]
    inventory.touch(cluster)
