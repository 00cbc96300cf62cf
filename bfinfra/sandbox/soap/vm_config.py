"""A ConfigSpec applied to a machine: what is set replaces, what is unset stays; a running machine takes
less.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.hosts import now
from bfinfra.sandbox.inventory.vms import GUESTS, change_version
from bfinfra.sandbox.inventory.vmtypes import fields, moid, support, vim, vmodl
from bfinfra.sandbox.soap.device_groups import changed_groups
from bfinfra.sandbox.soap.vapp import change_vapp
from bfinfra.sandbox.soap.vm_devices import change_devices

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

PLAIN = (
    "alternateGuestName",
    "annotation",
    "firmware",
    "managedBy",
    "nestedHVEnabled",
    "vPMCEnabled",
    "changeTrackingEnabled",
    "latencySensitivity",
    "swapPlacement",
    "guestAutoLockEnabled",
    "maxMksConnections",
    "messageBusTunnelEnabled",
    "npivTemporaryDisabled",
    "cpuAffinity",
    "memoryAffinity",
    "migrateEncryption",
    "createDate",
    "uuid",
    "instanceUuid",
    "locationId",
    "sevEnabled",
    "pmemFailoverEnabled",
    "vmxStatsCollectionEnabled",
    "fixedPassthruHotPlugEnabled",
)
MERGED = ("flags", "tools", "bootOptions", "cpuAllocation", "memoryAllocation")
COLD = (
    "firmware",
    "memoryHotAddEnabled",
    "cpuHotAddEnabled",
    "cpuHotRemoveEnabled",
    "nestedHVEnabled",
    "numCoresPerSocket",
    "vAppConfigRemoved",
    "uuid",
    "version",
)
HOT = ("memoryHotAddEnabled", "cpuHotAddEnabled", "cpuHotRemoveEnabled")


def apply(inventory: Inventory, vm: Managed, spec: object) -> None:
    """Change the machine by the specification; if it raises a fault, nothing is changed."""
    before, vm["config"] = vm["config"], copy.deepcopy(vm["config"])
    try:
        apply_to_copy(inventory, vm, spec)
    except Exception:
        vm["config"] = before
        raise
    update_derived(inventory, vm)


def apply_to_copy(inventory: Inventory, vm: Managed, spec: Any) -> None:
    """The same; a fault leaves it half done."""
    config, running = vm["config"], vm["runtime"].powerState == "poweredOn"
    check_version(config, spec)
    if running:
        check_running(config, spec)
    check_sizes(spec)
    devices, _ = change_devices(inventory, vm, spec.deviceChange or [])
    change_vapp(vm, spec)
    config.deviceGroups = changed_groups(config, spec, devices)
    config.hardware.device = devices
    for name in PLAIN:
        if getattr(spec, name) is not None:
            setattr(config, name, getattr(spec, name))
    for name in MERGED:
        setattr(config, name, merged(getattr(config, name), getattr(spec, name)))
    for name in HOT:
        if getattr(spec, name) is not None:
            setattr(config, name, getattr(spec, name))
    apply_sizes(config, spec)
    apply_guest(config, spec)
    config.extraConfig = extra(config.extraConfig, spec.extraConfig or [])


def check_version(config: Any, spec: Any) -> None:
    """ConcurrentAccess where the caller saw an older configuration."""
    if spec.changeVersion and spec.changeVersion != config.changeVersion:
        raise vim.fault.ConcurrentAccess(
            msg=(
                "The object or item referred to could not be changed because it was modified by another "
                "operation."
            )
        )


def check_running(config: Any, spec: Any) -> None:
    """Refuse what a running machine does not allow."""
    hardware = config.hardware
    if (
        spec.memoryMB is not None
        and spec.memoryMB != hardware.memoryMB
        and not (config.memoryHotAddEnabled and spec.memoryMB > hardware.memoryMB)
    ):
        raise vim.fault.MemoryHotPlugNotSupported(
            msg="Memory hot plug is not supported for this virtual machine."
        )
    if (
        spec.numCPUs is not None
        and spec.numCPUs != hardware.numCPU
        and not (config.cpuHotAddEnabled and spec.numCPUs > hardware.numCPU)
    ):
        raise vim.fault.CpuHotPlugNotSupported(msg="CPU hot plug is not supported for this virtual machine.")
    for name in COLD:
        old = getattr(config, name, None) if name != "numCoresPerSocket" else hardware.numCoresPerSocket
        if getattr(spec, name) is not None and getattr(spec, name) != old:
            raise vim.fault.InvalidPowerState(
                requestedState="poweredOff",
                existingState="poweredOn",
                msg=(
                    f"The attempted operation cannot be performed in the current state (Powered on): {name} "
                    "changes in a machine that is off, only."
                ),
            )


def check_sizes(spec: Any) -> None:
    """InvalidArgument for sizes that no machine can have."""
    if spec.memoryMB is not None and (spec.memoryMB < 4 or spec.memoryMB % 4):
        raise vmodl.fault.InvalidArgument(
            invalidProperty="configSpec.memoryMB",
            msg=f"A specified parameter was not correct: memoryMB {spec.memoryMB} is not a multiple of 4",
        )
    if spec.numCPUs is not None and spec.numCPUs < 1:
        raise vmodl.fault.InvalidArgument(
            invalidProperty="configSpec.numCPUs", msg="A specified parameter was not correct: numCPUs"
        )


def apply_sizes(config: Any, spec: Any) -> None:
    """CPUs, memory and the reservation that follows it when it is locked."""
    hardware = config.hardware
    hardware.numCPU = spec.numCPUs or hardware.numCPU
    hardware.memoryMB = spec.memoryMB or hardware.memoryMB
    config.hotPlugMemoryLimit = hardware.memoryMB
    hardware.numCoresPerSocket = spec.numCoresPerSocket or hardware.numCoresPerSocket
    if hardware.numCPU % (hardware.numCoresPerSocket or 1):
        raise vmodl.fault.InvalidArgument(
            invalidProperty="configSpec.numCPUs",
            msg="A specified parameter was not correct: numCPUs is no multiple of the cores per socket",
        )
    if spec.memoryReservationLockedToMax is not None:
        config.memoryReservationLockedToMax = spec.memoryReservationLockedToMax
    if config.memoryReservationLockedToMax:
        config.memoryAllocation.reservation = hardware.memoryMB
    if config.memoryAllocation.reservation > hardware.memoryMB:
        raise vmodl.fault.InvalidArgument(
            invalidProperty="configSpec.memoryAllocation.reservation",
            msg="A specified parameter was not correct: more memory reserved than the machine has",
        )


def apply_guest(config: Any, spec: Any) -> None:
    """Guest type and hardware version."""
    if spec.guestId:
        config.guestId, config.guestFullName = spec.guestId, GUESTS.get(spec.guestId, spec.guestId)
    config.version = spec.version or config.version


def merged(old: Any, new: Any) -> Any:
    """The fields that the new one sets, over the old one's."""
    if new is None or old is None:
        return old if new is None else new
    for info in fields(new):
        value = getattr(new, info.name)
        if value is not None and not (isinstance(value, list) and not value):
            setattr(old, info.name, value)
    return old


def extra(old: Any, changes: Any) -> Any:
    """ExtraConfig after the changes: an empty value removes the key."""
    found = {each.key: each for each in old}
    for each in changes:
        if each.value in (None, ""):
            found.pop(each.key, None)
        else:
            found[each.key] = vim.option.OptionValue(
                key=each.key, value=str(each.value) if isinstance(each.value, (int, float)) else each.value
            )
    return support.GetVmodlType("vim.option.OptionValue[]")(found.values())


def update_derived(inventory: Inventory, vm: Managed) -> None:
    """Update what follows from a changed configuration: networks, datastores, change version."""
    config = vm["config"]
    backings = [each.backing for each in config.hardware.device]
    networks = [ref for each in backings if (ref := network_of(inventory, each)) is not None]
    vm["network"] = list({moid(each): each for each in networks}.values())
    stores = [
        *vm["datastore"][:1],
        *(each.datastore for each in backings if getattr(each, "datastore", None)),
    ]
    vm["datastore"] = list({moid(each): each for each in stores}.values())
    config.modified, config.changeVersion = now(inventory), change_version(inventory)
    inventory.touch(vm)


def network_of(inventory: Inventory, backing: object) -> Any:
    """The network of a backing, or None."""
    if isinstance(backing, vim.vm.device.VirtualEthernetCard.DistributedVirtualPortBackingInfo):
        group = inventory.objects.get(backing.port.portgroupKey or "")
        return group.ref if group else None
    return getattr(backing, "network", None)
