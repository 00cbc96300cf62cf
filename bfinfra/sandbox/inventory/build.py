"""Makes managed objects from the world file: folders, datacenter, clusters, hosts, datastores, networks,
services.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory import permissions, services
from bfinfra.sandbox.inventory.hosts import add_host
from bfinfra.sandbox.inventory.vms import add_vm
from bfinfra.sandbox.inventory.vmtypes import vim

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory
    from bfinfra.sandbox.world import Beside, Datastore, Template
    from bfinfra.sandbox.world_hosts import Host

    Hosts = Mapping[str, Mapping[str, Host]]

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
    fill(inventory, datacenter, world, {name: each.hosts for name, each in world.clusters.items()})
    for each in world.beside:
        center = inventory.there(each.datacenter) or add_datacenter(inventory, root, each.datacenter)
        fill(inventory, center, each, each.clusters, each.folder)
    permissions.furnish(inventory)


def fill(inventory: Inventory, datacenter: Managed, given: Beside, hosts: Hosts, home: str = "") -> None:
    """Give a datacenter these networks, clusters, datastores and templates. `hosts`: of each cluster, by
    name; `home`: the folder for clusters and templates.
    """
    networks = [add_network(inventory, datacenter, name) for name in given.networks]
    clusters = {
        name: add_cluster(
            inventory, below(inventory, folder(inventory, datacenter, "host"), home), name, each, networks
        )
        for name, each in hosts.items()
    }
    if home or inventory.path(datacenter) != f"/{inventory.world.datacenter}":
        for each in clusters.values():
            each.hidden["beside"] = True
    stores = {
        name: add_datastore(inventory, datacenter, name, each, clusters)
        for name, each in given.datastores.items()
    }
    for cluster in clusters.values():
        finish_cluster(inventory, cluster, networks)
    machines = below(inventory, folder(inventory, datacenter, "vm"), home)
    for name, template in given.templates.items():
        on = clusters.get(template.cluster), stores.get(template.datastore)
        if on[0] is None or on[1] is None:
            what = f"no cluster {template.cluster} or no datastore {template.datastore}"
            raise ValueError(f"template {name}: there is {what}")
        add_template(inventory, machines, name, template, (on[0], on[1]))


def below(inventory: Inventory, at: Managed, path: str) -> Managed:
    """The folder at a path below another one, made if it is missing."""
    for name in filter(None, path.split("/")):
        there = (each for each in inventory.children(at) if each.name == name)
        at = next(there, None) or inventory.add(
            vim.Folder,
            inventory.new_id("group-x", 100),
            name=name,
            parent=at.ref,
            childType=at["childType"],
            value=[],
            **GREEN,
        )
    return at


def add_template(
    inventory: Inventory, home: Managed, name: str, template: Template, on: tuple[Managed, Managed]
) -> Managed:
    """A template in a folder. `on`: its cluster and its datastore."""
    cluster, store = on
    host = next(each for each in inventory.children(cluster) if each.is_a(vim.HostSystem))
    made = add_vm(inventory, name, home, (inventory.get(cluster["resourcePool"]), host, store))
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


def add_datacenter(inventory: Inventory, root: Managed, path: str) -> Managed:
    """A datacenter with its four folders, at a path below the root."""
    home, _, name = path.rpartition("/")
    root = below(inventory, root, home)
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
    inventory: Inventory, home: Managed, name: str, hosts: Mapping[str, Host], networks: list[Managed]
) -> Managed:
    """A cluster in a folder, with its root resource pool, environment browser and hosts."""
    moid = inventory.new_id("domain-c", 8)
    made = inventory.add(
        vim.ClusterComputeResource,
        moid,
        name=name,
        parent=home.ref,
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
    for host_name, host in hosts.items():
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


def add_datastore(
    inventory: Inventory,
    datacenter: Managed,
    name: str,
    datastore: Datastore,
    clusters: Mapping[str, Managed],
) -> Managed:
    """A VMFS datastore, mounted by its hosts. `clusters`: those whose hosts it may have."""
    moid, size = inventory.new_id("datastore-", 15), int(datastore.capacity)
    own = inventory.path(datacenter) == f"/{inventory.world.datacenter}"
    url = f"ds:///vmfs/volumes/{inventory.new_uuid(name if own else f'{inventory.path(datacenter)}/{name}')}/"
    hosts = mounting(inventory, datastore, clusters)
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


def mounting(inventory: Inventory, datastore: Datastore, clusters: Mapping[str, Managed]) -> list[Managed]:
    """The hosts that mount a datastore: those named, those of the clusters named, or all where neither is."""
    hosts = [
        (name, each)
        for name, cluster in clusters.items()
        for each in inventory.children(cluster)
        if each.is_a(vim.HostSystem)
    ]
    named = {*(datastore.hosts or ())}, {*(datastore.clusters or ())}
    return [each for name, each in hosts if not any(named) or each.name in named[0] or name in named[1]]


def finish_cluster(inventory: Inventory, cluster: Managed, networks: list[Managed]) -> None:
    """A cluster sees what one of its hosts sees."""
    hosts = [each for each in inventory.children(cluster) if each.is_a(vim.HostSystem)]
    cluster["datastore"] = [
        each.ref for each in inventory.datastores() if any(each.ref in host["datastore"] for host in hosts)
    ]
    cluster["network"] = [each.ref for each in networks]
    inventory.touch(cluster)
