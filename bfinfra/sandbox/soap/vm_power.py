"""Power: on, off, reset, suspend, and what the guest does on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.sandbox.inventory import vgpus
from bfinfra.sandbox.inventory.computed import MIB, computed
from bfinfra.sandbox.inventory.guest import start_guest
from bfinfra.sandbox.inventory.hosts import now
from bfinfra.sandbox.inventory.vms import stopped_guest
from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.soap import tasks
from bfinfra.sandbox.soap.device_defaults import give_slots
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.importing import refuse_importing
from bfinfra.sandbox.soap.journal import record
from bfinfra.sandbox.soap.placing import check_host, usable
from bfinfra.sandbox.soap.vapp import check_configured
from bfinfra.sandbox.soap.vm_pci import claim, in_use, no_vgpus, passthroughs, release, vgpus_of

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

VM = "vim.VirtualMachine"
ALWAYS = (
    "UnmountToolsInstaller",
    "AnswerVM",
    "UpgradeVM_Task",
    "UpgradeTools_Task",
    "UpgradeToolsFromImage_Task",
    "ApplyEvcModeVM_Task",
    "StartRecording_Task",
    "StopRecording_Task",
    "StartReplaying_Task",
    "StopReplaying_Task",
    "TurnOffFaultToleranceForVM_Task",
    "MakePrimaryVM_Task",
    "TerminateFaultTolerantVM_Task",
    "DisableSecondaryVM_Task",
    "EnableSecondaryVM_Task",
    "CustomizeVM_Task",
    "ResetGuestInformation",
    "ExportVm",
)
RUNNING = ("Destroy_Task", "UnregisterVM", "MarkAsTemplate", "PowerOnVM_Task", "MarkAsVirtualMachine")
STOPPED = ("PowerOffVM_Task", "SuspendVM_Task", "ResetVM_Task", "MountToolsInstaller", "MarkAsVirtualMachine")
GUEST = ("RebootGuest", "StandbyGuest", "ShutdownGuest")


@computed(VM, "disabledMethod")
def _disabled(_: Inventory, vm: Managed) -> list[str]:
    """Return the methods that the machine refuses in its state. Running machines: as recorded of a vCenter
    8.0.1.
    """
    on = vm["runtime"].powerState == "poweredOn"
    tools = vm["guest"].toolsRunningStatus == "guestToolsRunning"
    return [*(RUNNING if on else STOPPED), *ALWAYS, *(() if on and tools else GUEST)]


def expect(vm: Managed, wanted: str, *states: str) -> None:
    """InvalidPowerState where the machine is in none of the states."""
    state = vm["runtime"].powerState
    if state not in states:
        raise vim.fault.InvalidPowerState(
            requestedState=wanted,
            existingState=state,
            msg=f"The attempted operation cannot be performed in the current state ({state}).",
        )


@method(VM, "PowerOnVM_Task")
def power_on(call: Call, this: Managed, _: object) -> vim.Task:
    """Start the machine."""
    refuse_importing(call.inventory, this)
    if this["config"].template:
        raise vim.fault.InvalidState(msg=f"{this.name} is a template")
    expect(this, "poweredOn", "poweredOff", "suspended")
    return tasks.start(call, this, "VirtualMachine.powerOn", lambda: boot(call, this))


def boot(call: Call, vm: Managed) -> None:
    """The machine runs; its guest comes up later. What the host refuses."""
    inventory, host = call.inventory, host_with_vgpus(call.inventory, vm)
    expect(vm, "poweredOn", "poweredOff", "suspended")
    check_host(host)
    check_configured(vm)
    check_memory(inventory, vm, host)
    claim(inventory, vm, host)
    vm["runtime"].host = host.ref
    vm["runtime"].powerState, vm["runtime"].bootTime = "poweredOn", now(inventory)
    connect(vm, connected=True)
    give_slots(vm["config"].hardware.device)
    inventory.touch(vm, host)
    record(
        call,
        vim.event.VmPoweredOnEvent,
        vm,
        f"{vm.name} on {host.name} in {inventory.path(vm)} is powered on",
        template=False,
    )
    start_guest(inventory, vm)


def host_with_vgpus(inventory: Inventory, vm: Managed) -> Managed:
    """The machine's host; if that has no vGPUs for it, another one of its cluster that has, where DRS places
    the machine. Raises the fault where none has.
    """
    own: Managed = inventory.get(vm["runtime"].host)
    wanted = vgpus_of(vm)
    if _has_room(inventory, own, vm, wanted):
        return own
    others = [
        each
        for each in inventory.children(inventory.get(own.parent))
        if each.is_a(vim.HostSystem)
        and usable(each)
        and all(store in each["datastore"] for store in vm["datastore"])
    ]
    found = next((each for each in others if _has_room(inventory, each, vm, wanted)), None)
    if found is None:
        raise no_vgpus([own, *others], wanted)
    return found


def _has_room(inventory: Inventory, host: Managed, vm: Managed, wanted: vgpus.Wanted) -> bool:
    return vgpus.room(host, wanted, in_use(inventory, host, vm) if wanted.groups else ()) is not None


def check_memory(inventory: Inventory, vm: Managed, host: Managed) -> None:
    """InsufficientMemoryResourcesFault where the host can't hold what the machines reserve."""
    wanted = vm["config"].memoryAllocation.reservation or 0
    reserved = sum(
        each["config"].memoryAllocation.reservation or 0
        for each in inventory.vms()
        if each is not vm and each["runtime"].host == host.ref and each["runtime"].powerState == "poweredOn"
    )
    free = host["hardware"].memorySize // MIB - reserved
    if wanted > free:
        raise vim.fault.InsufficientMemoryResourcesFault(
            unreserved=free * MIB,
            requested=wanted * MIB,
            msg=(
                f"The host does not have sufficient memory resources to satisfy the reservation: {wanted} "
                f"MB wanted, {free} MB free on {host.name}."
            ),
        )


def connect(vm: Managed, *, connected: bool) -> None:
    """Adapters that connect at power-on are connected while the machine runs."""
    for device in vm["config"].hardware.device:
        if device.connectable is not None:
            device.connectable.connected = connected and device.connectable.startConnected


@method(VM, "PowerOffVM_Task")
def power_off(call: Call, this: Managed, _: object) -> vim.Task:
    """Pull the plug."""
    expect(this, "poweredOff", "poweredOn", "suspended")
    return tasks.start(call, this, "VirtualMachine.powerOff", lambda: stop(call, this))


def stop(call: Call, vm: Managed) -> None:
    """The machine is off."""
    inventory = call.inventory
    expect(vm, "poweredOff", "poweredOn", "suspended")
    release(inventory, vm)
    vm["runtime"].powerState, vm["runtime"].bootTime = "poweredOff", None
    vm["guest"], vm["guestHeartbeatStatus"] = stopped_guest(), "gray"
    connect(vm, connected=False)
    inventory.touch(vm, inventory.get(vm["runtime"].host))
    record(
        call,
        vim.event.VmPoweredOffEvent,
        vm,
        f"{vm.name} on {inventory.get(vm['runtime'].host).name} is powered off",
        template=False,
    )
    inventory.powered(vm, on=False)


@method(VM, "ResetVM_Task")
def reset(call: Call, this: Managed, _: object) -> vim.Task:
    """Start again from the beginning."""
    expect(this, "poweredOn", "poweredOn")
    return tasks.start(call, this, "VirtualMachine.reset", lambda: restart(call, this))


def restart(call: Call, vm: Managed) -> None:
    """Restart the guest."""
    expect(vm, "poweredOn", "poweredOn")
    call.inventory.powered(vm, on=False)
    vm["guest"], vm["runtime"].bootTime = stopped_guest(), now(call.inventory)
    call.inventory.touch(vm)
    start_guest(call.inventory, vm)


@method(VM, "SuspendVM_Task")
def suspend(call: Call, this: Managed, _: object) -> vim.Task:
    """Suspend. A machine with passthrough devices can't be."""
    expect(this, "suspended", "poweredOn")
    return tasks.start(call, this, "VirtualMachine.suspend", lambda: suspended(call, this))


def suspended(call: Call, vm: Managed) -> None:
    """GenericVmConfigFault for a machine with passthrough devices."""
    if passthroughs(vm):
        why = "Cannot suspend a virtual machine with PCI passthrough devices."
        raise vim.fault.GenericVmConfigFault(reason=why, msg=why)
    vm["runtime"].powerState, vm["guest"] = "suspended", stopped_guest()
    call.inventory.touch(vm)
    call.inventory.powered(vm, on=False)


@method(VM, "ShutdownGuest")
def shut_down(call: Call, this: Managed, _: object) -> None:
    """Ask the guest to stop; the machine is off some time later. ToolsUnavailable where no Tools run."""
    need_tools(this)
    inventory = call.inventory

    def off() -> None:
        with inventory.lock:
            if inventory.objects.get(this.moid) is this and this["runtime"].powerState == "poweredOn":
                stop(call, this)

    inventory.clock.after(tasks.duration_of(inventory, "shutdown", tasks.duration_of(inventory)), off)


@method(VM, "RebootGuest")
def reboot(call: Call, this: Managed, _: object) -> None:
    """Ask the guest to start again."""
    need_tools(this)
    restart(call, this)


def need_tools(vm: Managed) -> None:
    """InvalidPowerState where the machine is off, ToolsUnavailable where its Tools don't run."""
    expect(vm, "poweredOn", "poweredOn")
    if vm["guest"].toolsRunningStatus != "guestToolsRunning":
        raise vim.fault.ToolsUnavailable(
            msg="Cannot complete operation because VMware Tools is not running in this virtual machine."
        )
