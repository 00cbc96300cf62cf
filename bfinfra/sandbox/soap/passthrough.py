"""HostPciPassthruSystem: which devices are to be passed through. It holds after the next reboot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import computed
from bfinfra.sandbox.inventory.vmtypes import vim, vmodl
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.hosts import need_connected
from bfinfra.sandbox.soap.journal import record
from bfinfra.sandbox.soap.vm_pci import users

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

SYSTEM = "vim.host.PciPassthruSystem"


@computed(SYSTEM, "pciPassthruInfo")
def _info(inventory: Inventory, system: Managed) -> Any:
    return inventory.objects[system.hidden["host"]]["config"].pciPassthruInfo


@method(SYSTEM, "UpdatePassthruConfig")
def update(call: Call, this: Managed, args: Any) -> None:
    """Set what is to be passed through. InvalidArgument for an unknown device, HostConfigFault for one that
    can't be or is in use.
    """
    host = call.inventory.objects[this.hidden["host"]]
    need_connected(host)
    known = {each.id: each for each in host["config"].pciPassthruInfo}
    for each in args.config:
        if each.id not in known:
            raise vmodl.fault.InvalidArgument(
                invalidProperty="config.id",
                msg=f"A specified parameter was not correct: {host.name} has no PCI device {each.id}",
            )
        if each.passthruEnabled and not known[each.id].passthruCapable:
            raise vim.fault.HostConfigFailed(
                failure=[vmodl.MethodFault(msg="not capable")],
                msg=f"The PCI device {each.id} of {host.name} is not capable of passthrough.",
            )
        if not each.passthruEnabled and each.id in users(call.inventory, host):
            raise vim.fault.HostConfigFailed(
                failure=[vmodl.MethodFault(msg="in use")],
                msg=f"The PCI device {each.id} of {host.name} is in use.",
            )
    for each in args.config:
        known[each.id].passthruEnabled = each.passthruEnabled
    host.hidden["reboot_required"] = any(
        each.passthruEnabled != each.passthruActive for each in known.values()
    )
    call.inventory.touch(host, this)
    record(
        call,
        vim.event.EventEx,
        host,
        f"The PCI passthrough of {host.name} was changed",
        eventTypeId="esx.audit.net.passthru.change",
        severity="info",
        message="",
        arguments=[],
    )


@method(SYSTEM, "Refresh", writes=False)
def refresh(call: Call, this: Managed, _: object) -> None:
    """Nothing is stale here."""
    need_connected(call.inventory.objects[this.hidden["host"]])
