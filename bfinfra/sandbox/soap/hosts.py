"""HostSystem: maintenance mode, reboot, connection."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.hosts import come_back, connect
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap import tasks
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.journal import record
from bfinfra.sandbox.soap.placing import usable
from bfinfra.sandbox.soap.vm_pci import passthroughs

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

HOST = "vim.HostSystem"
LOOK = 0.05  # seconds between two looks at what still runs; real ones, or a pace of 0 would never rest


@method(HOST, "EnterMaintenanceMode_Task")
def enter(call: Call, this: Managed, args: Any) -> vim.Task:
    """Machines that can move go to other hosts of the cluster; the task waits for the rest until `timeout`
    seconds (0: without end).
    """
    if this["runtime"].inMaintenanceMode:
        raise vim.fault.InvalidState(
            msg=f"The operation is not allowed in the current state: {this.name} is in maintenance mode."
        )
    need_connected(this)
    task = tasks.begin(call, this, "HostSystem.enterMaintenanceMode")
    deadline = time.monotonic() + args.timeout if args.timeout > 0 else None
    call.inventory.clock.after(
        tasks.duration_of(call.inventory), lambda: evacuate(call, this, task, deadline)
    )
    return task.ref


def evacuate(call: Call, host: Managed, task: Managed, deadline: float | None) -> None:
    """Move what can be moved; end the task, or look again later."""
    inventory = call.inventory
    with inventory.lock:
        if task["info"].state not in ("queued", "running") or inventory.objects.get(task.moid) is not task:
            return
        tasks.run(inventory, task)
        left = [vm for vm in running(inventory, host) if not moved(inventory, vm, host)]
        if not left:
            tasks.finish(inventory, task, lambda: in_maintenance(call, host), call.task_fault)
        elif deadline is not None and time.monotonic() >= deadline:
            names = ", ".join(vm.name for vm in left)
            tasks.finish(
                inventory,
                task,
                lambda: None,
                vim.fault.Timedout(
                    msg=f"The operation timed out: {names} still runs on {host.name} and can't be moved."
                ),
            )
        else:
            again = threading.Timer(LOOK, evacuate, (call, host, task, deadline))
            again.daemon = True
            again.start()


def running(inventory: Inventory, host: Managed) -> list[Managed]:
    """The host's machines that aren't off."""
    return [
        vm
        for vm in inventory.vms()
        if vm["runtime"].host == host.ref and vm["runtime"].powerState != "poweredOff"
    ]


def moved(inventory: Inventory, vm: Managed, host: Managed) -> bool:
    """Move a machine to another host of the cluster; False where passthrough devices hold it or no host has
    its datastore.
    """
    others = [
        each
        for each in inventory.children(inventory.get(host.parent))
        if each.is_a(vim.HostSystem) and each is not host and usable(each)
    ]
    fitting = [each for each in others if all(store in each["datastore"] for store in vm["datastore"])]
    if passthroughs(vm) or not fitting:
        return False
    vm["runtime"].host = fitting[0].ref
    inventory.touch(vm, host, fitting[0])
    return True


def in_maintenance(call: Call, host: Managed) -> None:
    """The host takes no machines from now on."""
    host["runtime"].inMaintenanceMode = True
    call.inventory.touch(host)
    record(
        call, vim.event.EnteredMaintenanceModeEvent, host, f"Host {host.name} has entered maintenance mode"
    )


@method(HOST, "ExitMaintenanceMode_Task")
def leave(call: Call, this: Managed, _: object) -> vim.Task:
    """Machines may come back. InvalidState where the host isn't in maintenance mode."""
    if not this["runtime"].inMaintenanceMode:
        raise vim.fault.InvalidState(
            msg=f"The operation is not allowed in the current state: {this.name} is not in maintenance mode."
        )
    need_connected(this)

    def out() -> None:
        this["runtime"].inMaintenanceMode = False
        call.inventory.touch(this)
        call.inventory.room_changed()
        record(
            call, vim.event.ExitMaintenanceModeEvent, this, f"Host {this.name} has exited maintenance mode"
        )

    return tasks.start(call, this, "HostSystem.exitMaintenanceMode", out)


def need_connected(host: Managed) -> None:
    """HostNotConnected where vCenter can't reach the host."""
    if host["runtime"].connectionState != "connected":
        raise vmodl.fault.HostNotConnected(
            msg=f"Unable to communicate with the remote host {host.name}, since it is disconnected."
        )


@method(HOST, "RebootHost_Task")
def reboot(call: Call, this: Managed, args: Any) -> vim.Task:
    """The host disconnects and reconnects after the world's `reboot` seconds, with the requested passthrough.
    InvalidState unless in maintenance or forced.
    """
    need_connected(this)
    if not args.force and not this["runtime"].inMaintenanceMode:
        raise vim.fault.InvalidState(
            msg=f"The operation is not allowed in the current state: {this.name} is not in maintenance mode."
        )
    return tasks.start(call, this, "HostSystem.reboot", lambda: go_down(call, this))


def go_down(call: Call, host: Managed) -> None:
    """Not responding until it is back; machines that still ran are off."""
    from bfinfra.sandbox.soap.vm_power import stop  # noqa: PLC0415 - power needs the hosts' checks

    inventory = call.inventory
    for vm in running(inventory, host):
        stop(call, vm)
    host["runtime"].powerState, host["runtime"].bootTime = "unknown", None
    connect(inventory, host, "notResponding")
    record(call, vim.event.HostConnectionLostEvent, host, f"Host {host.name} is not responding")
    inventory.clock.after(tasks.duration_of(inventory, "reboot", 20), lambda: come_back(inventory, host))


@method(HOST, "DisconnectHost_Task")
def disconnect(call: Call, this: Managed, _: object) -> vim.Task:
    """VCenter stops speaking to the host."""
    return tasks.start(
        call, this, "HostSystem.disconnect", lambda: set_connection(call, this, "disconnected")
    )


@method(HOST, "ReconnectHost_Task")
def reconnect(call: Call, this: Managed, _: object) -> vim.Task:
    """VCenter is connected to the host again."""
    return tasks.start(call, this, "HostSystem.reconnect", lambda: set_connection(call, this, "connected"))


def set_connection(call: Call, host: Managed, state: str) -> None:
    """Connected or disconnected, with its machines."""
    connect(call.inventory, host, state)
