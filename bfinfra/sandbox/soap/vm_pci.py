"""Passthrough devices: what a host offers, which machine uses it, and what a power-on requires."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory import vgpus
from bfinfra.sandbox.inventory.hosts import unsigned
from bfinfra.sandbox.inventory.vmtypes import vim

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

PCI = vim.vm.device.VirtualPCIPassthrough


def passthroughs(vm: Managed) -> list[Any]:
    """The machine's PCI passthrough devices."""
    return [each for each in vm["config"].hardware.device if isinstance(each, PCI)]


def offered(host: Managed, *, active: bool = True) -> list[Any]:
    """The host's PCI devices that are passed through (or, not `active`, all)."""
    on = {each.id for each in host["config"].pciPassthruInfo if each.passthruActive or not active}
    return [each for each in host["hardware"].pciDevice if each.id in on]


def device_id(backing: object) -> str:
    """The address of a fixed backing or of an assigned dynamic one; "" where none is."""
    return str(
        (backing.assignedId if isinstance(backing, PCI.DynamicBackingInfo) else getattr(backing, "id", ""))
        or ""
    )


def check_pci(inventory: Inventory, vm: Managed, device: Any, others: list[Any], index: int) -> None:
    """InvalidDeviceSpec where the host has no such device, or the machine has it twice."""
    backing, host = device.backing, inventory.get(vm["runtime"].host)
    why = None
    if isinstance(backing, PCI.DynamicBackingInfo):
        backing.assignedId = None
        if not backing.allowedDevice:
            why = "a dynamic backing needs the devices that it allows"
    elif isinstance(backing, PCI.DeviceBackingInfo):
        why = fixed(inventory, host, backing, others)
    elif not isinstance(backing, PCI.VmiopBackingInfo):
        why = "the device has no backing"
    if why:
        raise vim.fault.InvalidDeviceSpec(
            deviceIndex=index,
            property="virtualDeviceSpec.device.backing",
            msg=f"Invalid configuration for device '{index}': {why}.",
        )


def fixed(inventory: Inventory, host: Managed, backing: Any, others: list[Any]) -> str | None:
    """Give a fixed backing the numbers of the real device, and return what is wrong with it."""
    if not backing.id and backing.useAutoDetect:
        return None
    real = next((each for each in host["hardware"].pciDevice if each.id == backing.id), None)
    if real is None:
        return f"the host {host.name} has no PCI device {backing.id}"
    if unsigned(backing.vendorId) not in (0, unsigned(real.vendorId)) or int(
        backing.deviceId or "0", 16
    ) not in (0, unsigned(real.deviceId)):
        return f"the PCI device {backing.id} of {host.name} is another than the one described"
    if backing.systemId and backing.systemId not in ("BYPASS", system_id(inventory, host)):
        return f"the system id {backing.systemId} is not that of {host.name}"
    if any(isinstance(each, PCI) and device_id(each.backing) == backing.id for each in others):
        return f"the machine has the PCI device {backing.id} already"
    return None


def system_id(inventory: Inventory, host: Managed) -> str:
    """The id by which a backing names the host."""
    return inventory.new_uuid(f"system {host.name}")


def users(inventory: Inventory, host: Managed, but: Managed | None = None) -> dict[str, Managed]:
    """The running machines of a host by the PCI address that each holds."""
    found = {}
    for vm in inventory.vms():
        if (
            vm is not but
            and vm["runtime"].host == host.ref
            and vm["runtime"].powerState in ("poweredOn", "suspended")
        ):
            found.update(
                {device_id(each.backing): vm for each in passthroughs(vm) if device_id(each.backing)}
            )
    return found


def claim(inventory: Inventory, vm: Managed, host: Managed) -> None:
    """Give a machine that powers on its devices, on a host. GenericVmConfigFault where one is in use, off, or
    memory isn't reserved; InsufficientGraphicsResourcesFault where no card has room for its vGPUs.
    """
    wanted = passthroughs(vm)
    if not wanted:
        return
    config = vm["config"]
    size = config.hardware.memoryMB
    if config.memoryAllocation.reservation < size:
        raise refused(
            f"Invalid memory setting: memory reservation (sched.mem.min) should be equal to memsize({size})."
        )
    shared = vgpus_of(vm)
    busy, free = in_use(inventory, host, vm), {each.id: each for each in offered(host)}
    found = vgpus.room(host, shared, busy)
    if found is None:
        raise no_vgpus([host], shared)
    busy |= dict.fromkeys((card for card, profile in found if not profile), vm.name)
    for device in wanted:
        if device.deviceGroupInfo is not None:
            continue
        if isinstance(device.backing, PCI.DeviceBackingInfo):
            hold(device.backing.id, busy, free)
            busy[device.backing.id] = vm.name
        elif isinstance(device.backing, PCI.DynamicBackingInfo):
            device.backing.assignedId = choose(device.backing, busy, free)
            busy[device.backing.assignedId] = vm.name
    if found:
        vgpus.hold(inventory, host, vm.moid, found)


def in_use(inventory: Inventory, host: Managed, but: Managed) -> dict[str, str]:
    """Who holds a whole card of a host, by its address: machines, and nodes of workload clusters."""
    nodes = {
        card.id: holder.rpartition("/")[2]
        for card in offered(host)
        for holder in vgpus.holders(host, card.id)
    }
    return nodes | {card: vm.name for card, vm in users(inventory, host, but).items()}


def vgpus_of(vm: Managed) -> vgpus.Wanted:
    """The machine's vGPUs, alone and in device groups with what else is in them."""
    alone = [each for each in passthroughs(vm) if each.deviceGroupInfo is None]
    profiles = [each.backing.vgpu for each in alone if isinstance(each.backing, PCI.VmiopBackingInfo)]
    listed = vm["config"].deviceGroups.deviceGroup if vm["config"].deviceGroups else ()
    groups = [vgpus.Group(each.deviceGroupName, parts_of(vm, each.groupInstanceKey)) for each in listed]
    return vgpus.Wanted(tuple(map(str, profiles)), groups=tuple(groups))


def parts_of(vm: Managed, group: int) -> tuple[str, ...]:
    """The parts of a device group, in their order."""
    places = [(each.deviceGroupInfo, each.backing) for each in passthroughs(vm) if each.deviceGroupInfo]
    own = sorted((at.sequenceId, _part(backing)) for at, backing in places if at.groupInstanceKey == group)
    return tuple(part for _, part in own)


def _part(backing: object) -> str:
    """The profile of a vGPU; the model of a network card."""
    if isinstance(backing, PCI.VmiopBackingInfo):
        return str(backing.vgpu)
    allowed = getattr(backing, "allowedDevice", None) or ()
    return vgpus.nic_of(frozenset((unsigned(each.vendorId), unsigned(each.deviceId)) for each in allowed))


def no_vgpus(hosts: list[Managed], wanted: vgpus.Wanted) -> vim.fault.VimFault:
    """The fault of a power-on for which no host has vGPUs."""
    why = vgpus.why_not(hosts, wanted)
    if why == vgpus.FULL:
        return vim.fault.InsufficientGraphicsResourcesFault(msg=why)
    return refused(why)


def hold(address: str, busy: dict[str, str], free: dict[str, Any]) -> None:
    """Check that a fixed device can be had."""
    if address not in free:
        raise refused(
            f"Module 'DevicePowerOn' power on failed. Device {address} is not a passthrough device."
        )
    if address in busy:
        raise refused(
            f"Module 'DevicePowerOn' power on failed. Device {address} is already in use by {busy[address]}."
        )


def choose(backing: Any, busy: dict[str, str], free: dict[str, Any]) -> str:
    """A free device of those that a dynamic backing allows."""
    allowed = {(unsigned(each.vendorId), unsigned(each.deviceId)) for each in backing.allowedDevice}
    for address, each in free.items():
        if address not in busy and (unsigned(each.vendorId), unsigned(each.deviceId)) in allowed:
            return address
    raise refused(
        "Insufficient resources. No host in the cluster has a free PCI device that the virtual machine "
        "allows."
    )


def release(inventory: Inventory, vm: Managed) -> None:
    """A machine that is off holds no dynamic device, and no vGPU."""
    for device in passthroughs(vm):
        if isinstance(device.backing, PCI.DynamicBackingInfo):
            device.backing.assignedId = None
    vgpus.let_go(inventory, vm.moid)


def refused(why: str) -> Any:
    """Return ESXi's answer when a power-on fails because of the configuration."""
    return vim.fault.GenericVmConfigFault(reason=why, msg=why)
