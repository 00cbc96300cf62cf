"""Machines that are being imported: nothing else may be done to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.sandbox.inventory.vmtypes import vim

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory


def refuse_importing(inventory: Inventory, vm: Managed) -> None:
    """TaskInProgress while an import still fills the machine's disks."""
    lease = inventory.objects.get(vm.hidden.get("lease", ""))
    if lease is not None and lease["state"] in ("initializing", "ready"):
        task = vim.Task(lease.hidden["task"])
        raise vim.fault.TaskInProgress(
            task=task, msg=f"Another task is already in progress: the import of {vm.name}."
        )
