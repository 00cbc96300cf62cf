"""Distributed switches and their port groups: made, renamed, removed; adapters connect by the group's key."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.build import GREEN
from bfinfra.sandbox.inventory.computed import computed, referring
from bfinfra.sandbox.inventory.hosts import now
from bfinfra.sandbox.inventory.vmtypes import moid, vim, vmodl
from bfinfra.sandbox.soap import tasks
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.placing import check_name
from bfinfra.sandbox.soap.port_settings import configured, defaults, group_policy, switch_settings

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

GroupSpec = vim.dvs.DistributedVirtualPortgroup.ConfigSpec
SWITCH, GROUP = "vim.DistributedVirtualSwitch", "vim.dvs.DistributedVirtualPortgroup"


@method("vim.Folder", "CreateDVS_Task")
def create_switch(call: Call, this: Managed, args: Any) -> vim.Task:
    """A switch with the hosts that its specification names. DuplicateName."""
    may_change_hosts(call, this, args.spec.configSpec.host)
    args.spec.configSpec.name = check_name(call.inventory, this, args.spec.configSpec.name)
    return tasks.start(
        call,
        this,
        "Folder.createDistributedVirtualSwitch",
        lambda: made_switch(call, this, args.spec.configSpec, args.spec.productInfo).ref,
        lock=False,
    )


def may_change_hosts(call: Call, on: Managed, members: Any) -> None:
    """NoPermission where hosts come, go or change NICs, and the caller may not. Source:
    DistributedVirtualSwitch.ReconfigureDvs_Task.
    """
    for each in members or []:
        call.need("DVSwitch.HostOp", on)
        call.need("Host.Config.Network", call.inventory.get(each.host))


def made_switch(call: Call, folder: Managed, spec: Any, product: Any = None) -> Managed:
    """The switch, and its port group for NICs."""
    inventory = call.inventory
    spec.name = check_name(inventory, folder, spec.name)
    ident = inventory.new_id("dvs-", 20)
    uuid, version = (
        inventory.new_uuid(ident),
        vim.dvs.ProductSpec(
            name="DVS",
            vendor="VMware, Inc.",
            version=getattr(product, "version", None) or "8.0.3",
            build="24022515",
            forwardingClass="cswitch",
        ),
    )
    uplinks = spec.uplinkPortPolicy or vim.DistributedVirtualSwitch.NameArrayUplinkPortPolicy(
        uplinkPortName=["Uplink 1"]
    )
    settings = configured(defaults(list(uplinks.uplinkPortName), inherited=False), spec.defaultPortConfig)
    config = vim.dvs.VmwareDistributedVirtualSwitch.ConfigInfo(
        uuid=uuid,
        name=spec.name,
        maxPorts=2147483647,
        configVersion="1",
        productInfo=version,
        createTime=now(inventory),
        contact=vim.DistributedVirtualSwitch.ContactInfo(),
        uplinkPortPolicy=uplinks,
        description=spec.description or None,
        defaultPortConfig=settings,
        **switch_settings(),
        maxMtu=getattr(spec, "maxMtu", None) or 1500,
        linkDiscoveryProtocolConfig=vim.host.LinkDiscoveryProtocolConfig(protocol="cdp", operation="listen"),
    )
    made = inventory.add(
        vim.dvs.VmwareDistributedVirtualSwitch,
        ident,
        {"hosts": []},
        name=spec.name,
        parent=folder.ref,
        value=[],
        uuid=uuid,
        config=config,
        capability=vim.DistributedVirtualSwitch.Capability(),
        **GREEN,
    )
    group = make_group(
        call, made, GroupSpec(name=f"{spec.name}-DVUplinks-{ident.rpartition('-')[2]}", numPorts=0)
    )
    group["config"].uplink, config.uplinkPortgroup = True, [group.ref]
    try:
        change_members(call, made, spec.host or [])
    except vmodl.MethodFault:
        gone(call, group)
        inventory.remove(made)
        raise
    return made


def change_members(call: Call, switch: Managed, specs: Any) -> None:
    """Hosts join, leave, or give other NICs. AlreadyExists, NotFound, ResourceInUse where a NIC is another
    switch's.
    """
    inventory, config = call.inventory, switch["config"]
    for each in specs:
        host, known = inventory.get(each.host), moid(each.host) in switch.hidden["hosts"]
        if (each.operation == "add") == known:
            fault = vim.fault.AlreadyExists if known else vim.fault.NotFound
            raise fault(
                msg=f"The host {host.name} is {'already' if known else 'not'} on the switch {switch.name}."
            )
        wanted = {spec.pnicDevice for spec in getattr(each.backing, "pnicSpec", None) or []}
        check_nics(inventory, switch, host, wanted)
    for each in specs:
        host = inventory.get(each.host)
        others = [member for member in config.host or [] if member.config.host != each.host]
        if each.operation == "remove":
            switch.hidden["hosts"].remove(host.moid)
            config.host = others
        else:
            switch.hidden["hosts"] = sorted({*switch.hidden["hosts"], host.moid})
            config.host = [*others, _member(switch, each)]
        for group in _groups(inventory, switch):
            offer(inventory, host, inventory.get(group), there=each.operation != "remove")
    inventory.touch(switch)


def _member(switch: Managed, spec: Any) -> Any:
    """A host on the switch; each of its NICs is on a port of the uplinks' group: the one that it names, or
    the next.
    """
    config, backing = switch["config"], spec.backing or vim.dvs.HostMember.PnicBacking()
    taken = max(
        (
            int(key)
            for each in config.host or []
            if each.config.host != spec.host
            for key in each.uplinkPortKey
        ),
        default=0,
    )
    named = {nic.uplinkPortKey for nic in backing.pnicSpec or []}
    free = (number for number in itertools.count(taken + 1) if str(number) not in named)
    for nic in backing.pnicSpec or []:
        nic.uplinkPortKey = nic.uplinkPortKey or str(next(free))
        nic.uplinkPortgroupKey, nic.connectionCookie = moid(config.uplinkPortgroup[0]), int(nic.uplinkPortKey)
    return vim.dvs.HostMember(
        config=vim.dvs.HostMember.ConfigInfo(
            host=spec.host,
            maxProxySwitchPorts=512,
            backing=backing,
            ensEnabled=False,
            ensInterruptEnabled=False,
        ),
        runtimeState=vim.dvs.HostMember.RuntimeState(currentMaxProxySwitchPorts=9216),
        uplinkPortKey=[nic.uplinkPortKey for nic in backing.pnicSpec or []],
        status="up",
    )


def check_nics(inventory: Inventory, switch: Managed, host: Managed, wanted: set[str]) -> None:
    """ResourceInUse where another switch has one of the host's NICs; PlatformConfigFault where the host has
    none of that name.
    """
    there = {nic.device for nic in host["config"].network.pnic}
    if missing := wanted - there:
        raise vim.fault.PlatformConfigFault(
            text=f"{host.name} has no NIC {min(missing)}", msg="An error occurred during host configuration."
        )
    for other in inventory.of(vim.DistributedVirtualSwitch):
        for member in other["config"].host or [] if other is not switch else []:
            taken = {spec.pnicDevice for spec in member.config.backing.pnicSpec or []} & wanted
            if member.config.host == host.ref and taken:
                raise vim.fault.ResourceInUse(name=min(taken), msg=f"The resource '{min(taken)}' is in use.")


@method(SWITCH, "ReconfigureDvs_Task")
def reconfigure_switch(call: Call, this: Managed, args: Any) -> vim.Task:
    """Name, description, frames, uplinks, hosts. ConcurrentAccess for a stale `configVersion`."""
    config, spec = this["config"], args.spec
    may_change_hosts(call, this, spec.host)
    if spec.defaultPortConfig is not None:
        call.need("DVSwitch.PortSetting", this)
    call.need("DVSwitch.Modify", this)
    if spec.configVersion and spec.configVersion != config.configVersion:
        raise vim.fault.ConcurrentAccess(msg="The switch was modified by another operation.")
    if spec.name and spec.name != this.name:
        spec.name = check_name(call.inventory, call.inventory.get(this.parent), spec.name, this)

    def change() -> None:
        change_members(call, this, spec.host or [])
        for name in ("name", "description", "uplinkPortPolicy", "maxMtu"):
            if getattr(spec, name, None) is not None:
                setattr(
                    config, name, getattr(spec, name) if name != "description" else spec.description or None
                )
        config.defaultPortConfig = configured(config.defaultPortConfig, spec.defaultPortConfig)
        this["name"], config.configVersion = config.name, str(int(config.configVersion) + 1)
        call.inventory.touch(this)

    return tasks.start(call, this, "DistributedVirtualSwitch.reconfigure", change)


@computed(SWITCH, "portgroup")
def _groups(inventory: Inventory, switch: Managed) -> Any:
    return [
        each.ref
        for each in inventory.of(vim.dvs.DistributedVirtualPortgroup)
        if each["config"].distributedVirtualSwitch == switch.ref
    ]


@computed(SWITCH, "summary")
def _summary(inventory: Inventory, switch: Managed) -> Any:
    hosts = [inventory.objects[each].ref for each in switch.hidden["hosts"] if each in inventory.objects]
    groups = [inventory.get(ref) for ref in _groups(inventory, switch)]
    machines = {
        moid(ref): ref for each in groups for ref in referring(inventory, each, vim.VirtualMachine, "network")
    }
    return vim.DistributedVirtualSwitch.Summary(
        name=switch.name,
        uuid=switch["uuid"],
        numPorts=sum(each["config"].numPorts for each in groups),
        productInfo=switch["config"].productInfo,
        contact=switch["config"].contact,
        hostMember=hosts,
        vm=list(machines.values()),
        portgroupName=[each.name for each in groups],
        numHosts=len(hosts),
    )


@method(SWITCH, "AddDVPortgroup_Task")
def add_groups(call: Call, this: Managed, args: Any) -> vim.Task:
    """Port groups."""
    for each in args.spec:
        each.name = check_name(call.inventory, call.inventory.get(this.parent), each.name)
    return tasks.start(
        call,
        this,
        "DistributedVirtualSwitch.addPortgroups",
        lambda: [make_group(call, this, each) for each in args.spec] and None,
    )


@method(SWITCH, "CreateDVPortgroup_Task")
def add_group(call: Call, this: Managed, args: Any) -> vim.Task:
    """One port group; the task gives its reference."""
    args.spec.name = check_name(call.inventory, call.inventory.get(this.parent), args.spec.name)
    return tasks.start(
        call, this, "DistributedVirtualSwitch.addPortgroup", lambda: make_group(call, this, args.spec).ref
    )


def make_group(call: Call, switch: Managed, spec: Any) -> Managed:
    """A port group that the switch's hosts offer."""
    inventory = call.inventory
    spec.name = check_name(inventory, inventory.get(switch.parent), spec.name)
    key = inventory.new_id("dvportgroup-", 30)
    config = vim.dvs.DistributedVirtualPortgroup.ConfigInfo(
        key=key,
        name=spec.name,
        numPorts=spec.numPorts or 8,
        type=spec.type or "earlyBinding",
        distributedVirtualSwitch=switch.ref,
        configVersion="1",
        policy=configured(group_policy(), spec.policy),
        defaultPortConfig=configured(defaults([], inherited=True), spec.defaultPortConfig),
        description=spec.description or None,
        backingType=spec.backingType or "standard",
        autoExpand=True if spec.autoExpand is None else spec.autoExpand,
        uplink=False,
    )
    group = inventory.add(
        vim.dvs.DistributedVirtualPortgroup,
        key,
        name=spec.name,
        parent=switch.parent,
        value=[],
        key=key,
        config=config,
        portKeys=[],
        **GREEN,
    )
    for host in inventory.hosts():
        if host.moid in switch.hidden["hosts"]:
            offer(inventory, host, group)
    inventory.touch(switch)
    return group


def offer(inventory: Inventory, host: Managed, group: Managed, *, there: bool = True) -> None:
    """The host has the network, or has it no more; its cluster has what one of its hosts has."""
    cluster = inventory.get(host.parent)
    host["network"] = [ref for ref in host["network"] if ref != group.ref] + ([group.ref] if there else [])
    some = any(
        group.ref in each["network"] for each in inventory.children(cluster) if each.is_a(vim.HostSystem)
    )
    cluster["network"] = [ref for ref in cluster["network"] if ref != group.ref] + (
        [group.ref] if some else []
    )
    inventory.touch(host, cluster)


@method(GROUP, "ReconfigureDVPortgroup_Task")
def reconfigure(call: Call, this: Managed, args: Any) -> vim.Task:
    """Name, ports, binding, policy. ConcurrentAccess for a stale `configVersion`."""
    call.need("DVPortgroup.Modify", this)
    config, spec = this["config"], args.spec
    if spec.configVersion and spec.configVersion != config.configVersion:
        raise vim.fault.ConcurrentAccess(msg="The port group was modified by another operation.")
    if spec.name and spec.name != this.name:
        spec.name = check_name(call.inventory, call.inventory.get(this.parent), spec.name, this)

    def change() -> None:
        for name in ("name", "numPorts", "description", "type", "autoExpand"):
            if getattr(spec, name) is not None:
                setattr(
                    config, name, getattr(spec, name) if name != "description" else spec.description or None
                )
        config.policy, config.defaultPortConfig = (
            configured(config.policy, spec.policy),
            configured(config.defaultPortConfig, spec.defaultPortConfig),
        )
        this["name"], config.configVersion = config.name, str(int(config.configVersion) + 1)
        call.inventory.touch(this)

    return tasks.start(call, this, "DistributedVirtualPortgroup.reconfigure", change)


@method(GROUP, "Destroy_Task")
def destroy_group(call: Call, this: Managed, _: object) -> vim.Task:
    """Remove a port group. ResourceInUse while machines are on it."""
    call.need("DVPortgroup.Delete", this)
    return tasks.start(call, this, "DistributedVirtualPortgroup.destroy", lambda: gone(call, this))


def gone(call: Call, group: Managed) -> None:
    """Remove a port group from the hosts that offer it. Raises ResourceInUse."""
    adapters = [
        nic
        for host in call.inventory.hosts()
        for nic in host["config"].network.vnic
        if nic.spec.distributedVirtualPort and nic.spec.distributedVirtualPort.portgroupKey == group["key"]
    ]
    if adapters or referring(call.inventory, group, vim.VirtualMachine, "network"):
        raise vim.fault.ResourceInUse(
            type=type(group.ref), name=group.name, msg=f"The resource '{group.name}' is in use."
        )
    for each in call.inventory.of(vim.HostSystem, vim.ComputeResource):
        each["network"] = [ref for ref in each["network"] if ref != group.ref]
    call.inventory.remove(group)


@method(SWITCH, "Destroy_Task")
def destroy_switch(call: Call, this: Managed, _: object) -> vim.Task:
    """Remove a switch with its port groups."""
    call.need("DVSwitch.Delete", this)

    def clear() -> None:
        for ref in _groups(call.inventory, this):
            gone(call, call.inventory.get(ref))
        call.inventory.remove(this)

    return tasks.start(call, this, "DistributedVirtualSwitch.destroy", clear)
