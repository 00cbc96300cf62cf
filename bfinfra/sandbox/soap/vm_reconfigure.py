"""VirtualMachine.ReconfigVM_Task: the rights that each part asks for, then the change in a task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.soap import tasks
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.importing import refuse_importing
from bfinfra.sandbox.soap.journal import record
from bfinfra.sandbox.soap.placing import check_name
from bfinfra.sandbox.soap.vm_config import apply, check_version
from bfinfra.sandbox.soap.vm_rights import may_use_datastores, may_use_networks, privileges

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed


@method("vim.VirtualMachine", "ReconfigVM_Task")
def reconfigure(call: Call, this: Managed, args: Any) -> vim.Task:
    """Change the configuration in a task."""
    spec = args.spec
    for privilege in privileges(spec):
        call.need(privilege, this)
    may_use_networks(call, spec)
    may_use_datastores(call, spec, this["datastore"][0])
    check_version(this["config"], spec)
    refuse_importing(call.inventory, this)
    return tasks.start(call, this, "VirtualMachine.reconfigure", lambda: change(call, this, spec))


def change(call: Call, vm: Managed, spec: Any) -> None:
    """Apply the specification, the name first."""
    call.inventory.get(vm.ref)
    if spec.name and spec.name != vm.name:
        parent = call.inventory.get(vm.parent)
        spec.name = check_name(call.inventory, parent, spec.name, vm)
    apply(call.inventory, vm, spec)
    if spec.name:
        vm["name"] = vm["config"].name = spec.name
        call.inventory.touch(vm)
    record(
        call,
        vim.event.VmReconfiguredEvent,
        vm,
        f"Reconfigured {vm.name} on {call.inventory.get(vm['runtime'].host).name}",
        template=False,
        configSpec=_reported(spec),
    )


def _reported(spec: Any) -> Any:
    """Return the part of a reconfiguration that its event shows: sizes, and of everything else only its name,
    because options and properties may hold secrets.
    """
    reported = vim.vm.ConfigSpec(
        numCPUs=spec.numCPUs,
        memoryMB=spec.memoryMB,
        firmware=spec.firmware,
        memoryReservationLockedToMax=spec.memoryReservationLockedToMax,
    )
    reported.deviceChange = [
        vim.vm.device.VirtualDeviceSpec(operation=each.operation, device=each.device)
        for each in spec.deviceChange
    ]
    reported.extraConfig = [vim.option.OptionValue(key=each.key, value="") for each in spec.extraConfig]
    return reported
