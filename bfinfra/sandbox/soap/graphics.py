"""How a host shares its GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import computed
from bfinfra.sandbox.inventory.vmtypes import vmodl
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.hosts import need_connected

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

MANAGER = "vim.host.GraphicsManager"
TYPES = ("shared", "sharedDirect")


@computed(MANAGER, "graphicsConfig")
def _config(inventory: Inventory, this: Managed) -> Any:
    return inventory.objects[this.hidden["host"]]["config"].graphicsConfig


@method(MANAGER, "UpdateGraphicsConfig")
def update(call: Call, this: Managed, args: Any) -> None:
    """Set the type for the host's cards. InvalidArgument for one that there is not."""
    host = call.inventory.objects[this.hidden["host"]]
    call.need("Host.Config.Settings", host)
    need_connected(host)
    if args.config.hostDefaultGraphicsType not in TYPES:
        raise vmodl.fault.InvalidArgument(
            invalidProperty="config.hostDefaultGraphicsType",
            msg="A specified parameter was not correct: config.hostDefaultGraphicsType",
        )
    host["config"].graphicsConfig = args.config
    call.inventory.touch(host, this)
