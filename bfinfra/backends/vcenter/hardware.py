"""The ConfigSpec of a VM's desired hardware, for an import and for a reconfiguration; the RelocateSpec."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyVmomi import vim

from bfinfra.backends.vcenter import devices, properties, refs
from bfinfra.backends.vcenter.names import sent
from bfinfra.backends.vcenter.vm import Hardware, NewDisk, Relocation
from bfinfra.backends.words import safe
from bfinfra.model.errors import Busy, Missing

SHARES = vim.SharesInfo.Level.normal


def needed(wanted: Hardware) -> list[str]:
    """Return the properties of a VM that its `config_spec` is made from."""
    host = ["runtime.host"] if any(device.address for device in wanted.attach) else []
    present = (
        ["config.hardware.device"]
        if wanted.drop or wanted.nics or wanted.macs or wanted.grow or wanted.add_disks or wanted.destroy
        else []
    )
    return [*host, *present, *(["config.vAppConfig.property"] if wanted.properties else [])]


def config_spec(
    wanted: Hardware,
    content: vim.ServiceInstanceContent,
    host: object,
    present: Iterable[Any] | None,
    vapp: Iterable[Any] | None,
) -> Any:
    """The change of a VM on `host` that has the devices `present` and the vApp properties `vapp`."""
    spec = vim.vm.ConfigSpec()
    extend(spec, wanted, content, host)
    spec.deviceChange = [
        *_changes(wanted, content, {d.key: d for d in present or ()}),
        *(spec.deviceChange or ()),
    ]
    spec.vAppConfig = _properties(wanted.properties, vapp, refs.server(content))
    return spec


def extend(spec: Any, wanted: Hardware, content: vim.ServiceInstanceContent, host: object) -> None:
    """Add the desired hardware to the ConfigSpec of an import; its own devices and options are kept."""
    if wanted.name is not None:
        spec.name = sent(wanted.name)
    if wanted.cpus is not None:
        spec.numCPUs = wanted.cpus
    if wanted.memory is not None:
        spec.memoryMB = wanted.memory >> 20
    if wanted.reserve is not None:
        spec.memoryReservationLockedToMax = wanted.reserve
    if (
        wanted.reserve is not None and wanted.memory is not None
    ):  # some servers need the number as well, and erase properties that aren't sent
        spec.memoryAllocation = vim.ResourceAllocationInfo(
            reservation=wanted.memory >> 20 if wanted.reserve else 0,
            limit=-1,
            expandableReservation=False,
            shares=vim.SharesInfo(level=SHARES, shares=0),
        )
    if wanted.firmware is not None:
        spec.firmware = wanted.firmware
    if wanted.instance_uuid is not None:
        spec.instanceUuid = wanted.instance_uuid
    if wanted.annotation is not None:
        spec.annotation = wanted.annotation
    options = [vim.option.OptionValue(key=key, value=value) for key, value in sorted(wanted.extra.items())]
    spec.extraConfig = [*(o for o in spec.extraConfig or () if o.key not in wanted.extra), *options]
    system = _system_id(content, host) if any(device.address for device in wanted.attach) else ""
    added = [devices.add_pci(device, -200 - index, system) for index, device in enumerate(wanted.attach)]
    macs = iter(wanted.add_macs)
    added += [
        devices.add_nic(network_backing(content, network), -300 - index, mac=next(macs, ""))
        for index, network in enumerate(wanted.add_nics)
    ]
    added += [
        devices.add_nic(network_backing(content, group), -400 - index, rdma, next(macs, ""))
        for index, (group, rdma) in enumerate(wanted.add_rdma.items())
    ]
    spec.deviceChange = [*(spec.deviceChange or ()), *added]


def _system_id(content: vim.ServiceInstanceContent, host: object) -> str:
    """The id that vCenter has for the host in the backing of a fixed card. It is read when a card is
    attached, as there is no bulk read for it.

    It never changes, so a session reads it once for each host.
    """
    stub, moid = refs.stub(content), refs.moid(host)
    with stub.asking:
        if moid not in stub.systems:
            stub.systems[moid] = _asked_system_id(content, host)
        return str(stub.systems[moid])


def _asked_system_id(content: vim.ServiceInstanceContent, host: object) -> str:
    home = properties.one(content, host, ["parent"])["parent"]
    browser = (
        properties.one(content, home, ["environmentBrowser"])["environmentBrowser"]
        if home is not None
        else None
    )
    found = browser.QueryConfigTarget(host) if browser is not None else None
    cards = (
        [*(found.pciPassthrough or ()), *(found.sriov or ())] if found else ()
    )  # the only place of a card with SR-IOV
    system = next((str(card.systemId) for card in cards if card.systemId), "")
    if not system:  # it restarts, or its cards are no longer active
        raise Busy(
            "the host names no cards that could be attached",
            server=refs.server(content),
            why="its passthrough is not active at the moment",
        )
    return system


def _changes(
    wanted: Hardware, content: vim.ServiceInstanceContent, present: Mapping[int, object]
) -> list[Any]:
    changes = [devices.remove(_at(present, key, content)) for key in wanted.drop if key in present]
    changes += [
        devices.edit_nic(
            _at(present, key, content),
            network_backing(content, wanted.nics[key]) if key in wanted.nics else None,
            wanted.macs.get(key, ""),
        )
        for key in {**wanted.nics, **wanted.macs}
    ]
    changes += [devices.grow_disk(_at(present, key, content), size) for key, size in wanted.grow.items()]
    changes += [devices.destroy_disk(_at(present, key, content)) for key in wanted.destroy if key in present]
    return [*changes, *_disks(wanted.add_disks, content, present)]


def _disks(
    wanted: Sequence[NewDisk], content: vim.ServiceInstanceContent, present: Mapping[int, object]
) -> list[Any]:
    """New disks, after the controllers that they need."""
    keys = {d.busNumber: d.key for d in present.values() if isinstance(d, devices.Scsi)}
    buses = {each.address: int(each.address.removeprefix("scsi").partition(":")[0]) for each in wanted}
    new = {bus: -500 - bus for bus in sorted(set(buses.values()) - set(keys))}
    changes = [devices.add_scsi(bus, key) for bus, key in new.items()]
    for index, each in enumerate(wanted):
        store = refs.refer(content, vim.Datastore, each.datastore) if each.datastore else None
        name = properties.one(content, store, ["name"])["name"] if store is not None else ""
        changes.append(
            devices.add_disk(each, -600 - index, {**keys, **new}[buses[each.address]], store, name)
        )
    return changes


def _at(present: Mapping[int, object], key: int, content: vim.ServiceInstanceContent) -> Any:
    if key not in present:
        raise Missing(f"the device {key} is gone", server=refs.server(content), next="plan again")
    return present[key]


def network_backing(content: vim.ServiceInstanceContent, moid: str) -> Any:
    """The backing of an adapter for the network or distributed port group with this id."""
    card = vim.vm.device.VirtualEthernetCard
    if not moid.startswith("dvportgroup"):
        network = refs.refer(content, vim.Network, moid)
        name = properties.one(content, network, ["name"])["name"]
        return card.NetworkBackingInfo(network=network, deviceName=name)
    group = refs.refer(content, vim.dvs.DistributedVirtualPortgroup, moid)
    row = properties.one(content, group, ["key", "config.distributedVirtualSwitch"])
    switch = properties.one(content, row["config.distributedVirtualSwitch"], ["uuid"])
    port = vim.dvs.PortConnection(portgroupKey=row["key"], switchUuid=switch["uuid"])
    return card.DistributedVirtualPortBackingInfo(port=port)


def _properties(values: Mapping[str, str], vapp: Iterable[Any] | None, server: str) -> Any:
    if not values:
        return None
    known = {".".join(part for part in (p.classId, p.id, p.instanceId) if part): p for p in vapp or ()}
    if unknown := [key for key in values if key not in known]:
        raise Missing(
            f"the machine has no vApp property {safe(unknown[0])}",
            server=server,
            next="compare with: bfinfra ova inspect",
        )
    edits = []
    for key, value in sorted(values.items()):
        info = known[key]
        info.value = value
        edits.append(vim.vApp.PropertySpec(operation="edit", info=info))
    return vim.vApp.VmConfigSpec(property=edits)


def relocate_spec(to: Relocation, content: vim.ServiceInstanceContent) -> vim.vm.RelocateSpec:
    """The RelocateSpec of a move."""
    return vim.vm.RelocateSpec(
        pool=refs.refer(content, vim.ResourcePool, to.pool) if to.pool else None,
        host=refs.refer(content, vim.HostSystem, to.host) if to.host else None,
        datastore=refs.refer(content, vim.Datastore, to.datastore) if to.datastore else None,
        disk=[
            vim.vm.RelocateSpec.DiskLocator(diskId=key, datastore=refs.refer(content, vim.Datastore, store))
            for key, store in sorted(to.disks.items())
        ],
    )
