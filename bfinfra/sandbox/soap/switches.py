"""Distributed switches and their port groups: made, renamed, removed; adapters connect by the group's key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.build import GREEN
from bfinfra.sandbox.inventory.computed import computed, referring
from bfinfra.sandbox.inventory.hosts import now
from bfinfra.sandbox.inventory.vmtypes import moid, vim
from bfinfra.sandbox.soap import tasks
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.placing import check_name

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

SWITCH, GROUP = "vim.DistributedVirtualSwitch", "vim.dvs.DistributedVirtualPortgroup"


@method("vim.Folder", "CreateDVS_Task")
def create_switch(call: Call, this: Managed, args: Any) -> Any:
    """A switch with the hosts that its specification names. DuplicateName."""
    check_name(call.inventory, this, args.spec.configSpec.name)
    return tasks.start(call, this, "Folder.createDistributedVirtualSwitch", lambda: made_switch(call, this, args.spec.configSpec).ref, lock=False)


def made_switch(call: Call, folder: Managed, spec: Any) -> Managed:
    """The switch."""
    inventory = call.inventory
    check_name(inventory, folder, spec.name)
    ident = inventory.new_id("dvs-", 20)
    uuid, version = inventory.new_uuid(ident), vim.dvs.ProductSpec(name="DVS", vendor="VMware, Inc.", version="8.0.3")
    config = vim.dvs.VmwareDistributedVirtualSwitch.ConfigInfo(
        uuid=uuid, name=spec.name, maxPorts=2147483647, configVersion="1", productInfo=version, createTime=now(inventory), contact=vim.DistributedVirtualSwitch.ContactInfo(),
        uplinkPortPolicy=vim.DistributedVirtualSwitch.UplinkPortPolicy(), defaultPortConfig=vim.dvs.VmwareDistributedVirtualSwitch.VmwarePortConfigPolicy(),
        maxMtu=getattr(spec, "maxMtu", None) or 1500, linkDiscoveryProtocolConfig=vim.host.LinkDiscoveryProtocolConfig(protocol="cdp", operation="listen"),
    )
    return inventory.add(
        vim.dvs.VmwareDistributedVirtualSwitch, ident, {"hosts": [moid(each.host) for each in spec.host or []]}, name=spec.name, parent=folder.ref, value=[],
        uuid=uuid, config=config, capability=vim.DistributedVirtualSwitch.Capability(), **GREEN,
    )


@computed(SWITCH, "portgroup")
def _groups(inventory: Inventory, switch: Managed) -> Any:
    return [each.ref for each in inventory.of(vim.dvs.DistributedVirtualPortgroup) if each["config"].distributedVirtualSwitch == switch.ref]


@computed(SWITCH, "summary")
def _summary(inventory: Inventory, switch: Managed) -> Any:
    hosts = [inventory.objects[each].ref for each in switch.hidden["hosts"] if each in inventory.objects]
    return vim.DistributedVirtualSwitch.Summary(name=switch.name, uuid=switch["uuid"], numPorts=0, hostMember=hosts, numHosts=len(hosts))


@method(SWITCH, "AddDVPortgroup_Task")
def add_groups(call: Call, this: Managed, args: Any) -> Any:
    """Port groups."""
    for each in args.spec:
        check_name(call.inventory, call.inventory.get(this.parent), each.name)
    return tasks.start(call, this, "DistributedVirtualSwitch.addPortgroups", lambda: [make_group(call, this, each) for each in args.spec] and None)


@method(SWITCH, "CreateDVPortgroup_Task")
def add_group(call: Call, this: Managed, args: Any) -> Any:
    """One port group; the task gives its reference."""
    check_name(call.inventory, call.inventory.get(this.parent), args.spec.name)
    return tasks.start(call, this, "DistributedVirtualSwitch.addPortgroup", lambda: make_group(call, this, args.spec).ref)


def make_group(call: Call, switch: Managed, spec: Any) -> Managed:
    """A port group that the switch's hosts (all, where it names none) offer."""
    inventory = call.inventory
    check_name(inventory, inventory.get(switch.parent), spec.name)
    key = inventory.new_id("dvportgroup-", 30)
    config = vim.dvs.DistributedVirtualPortgroup.ConfigInfo(
        key=key, name=spec.name, numPorts=spec.numPorts or 8, type=spec.type or "earlyBinding", distributedVirtualSwitch=switch.ref, configVersion="1",
        policy=spec.policy or vim.dvs.DistributedVirtualPortgroup.PortgroupPolicy(), defaultPortConfig=spec.defaultPortConfig, description=spec.description,
    )
    group = inventory.add(vim.dvs.DistributedVirtualPortgroup, key, name=spec.name, parent=switch.parent, value=[], key=key, config=config, portKeys=[], **GREEN)
    for host in inventory.hosts():
        if host.moid in switch.hidden["hosts"] or not switch.hidden["hosts"]:
            offer(inventory, host, group)
    inventory.touch(switch)
    return group


def offer(inventory: Inventory, host: Managed, group: Managed) -> None:
    """The host and its cluster have the network."""
    cluster = inventory.get(host.parent)
    for each in (host, cluster):
        if group.ref not in each["network"]:
            each["network"] = [*each["network"], group.ref]
            inventory.touch(each)


@method(GROUP, "ReconfigureDVPortgroup_Task")
def reconfigure(call: Call, this: Managed, args: Any) -> Any:
    """Name, ports, policy. ConcurrentAccess for a stale `configVersion`."""
    config, spec = this["config"], args.spec
    if spec.configVersion and spec.configVersion != config.configVersion:
        raise vim.fault.ConcurrentAccess(msg="The port group was modified by another operation.")
    if spec.name and spec.name != this.name:
        check_name(call.inventory, call.inventory.get(this.parent), spec.name, this)

    def change() -> None:
        for name in ("name", "numPorts", "policy", "defaultPortConfig", "description"):
            if getattr(spec, name) is not None:
                setattr(config, name, getattr(spec, name))
        this["name"], config.configVersion = config.name, str(int(config.configVersion) + 1)
        call.inventory.touch(this)

    return tasks.start(call, this, "DistributedVirtualPortgroup.reconfigure", change)


@method(GROUP, "Destroy_Task")
def destroy_group(call: Call, this: Managed, _: Any) -> Any:
    """Remove a port group. ResourceInUse while machines are on it."""
    call.need("DVPortgroup.Delete", this)
    return tasks.start(call, this, "DistributedVirtualPortgroup.destroy", lambda: gone(call, this))


def gone(call: Call, group: Managed) -> None:
    """Nobody offers it any more."""
    if referring(call.inventory, group, vim.VirtualMachine, "network"):
        raise vim.fault.ResourceInUse(type=type(group.ref), name=group.name, msg=f"The resource '{group.name}' is in use.")
    for each in call.inventory.of(vim.HostSystem, vim.ComputeResource):
        each["network"] = [ref for ref in each["network"] if ref != group.ref]
    call.inventory.remove(group)


@method(SWITCH, "Destroy_Task")
def destroy_switch(call: Call, this: Managed, _: Any) -> Any:
    """Remove a switch with its port groups."""
    call.need("DVSwitch.Delete", this)

    def clear() -> None:
        for ref in _groups(call.inventory, this):
            gone(call, call.inventory.get(ref))
        call.inventory.remove(this)

    return tasks.start(call, this, "DistributedVirtualSwitch.destroy", clear)
