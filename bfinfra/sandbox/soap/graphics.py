"""Sharing of a host's GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.computed import computed
from bfinfra.sandbox.inventory.hosts import offer_vgpus
from bfinfra.sandbox.inventory.vmtypes import vmodl
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.hosts import need_connected

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed
    from bfinfra.sandbox.inventory.store import Inventory

MANAGER = "vim.host.GraphicsManager"
TYPES = ("shared", "sharedDirect")
PLACEMENTS = ("performance", "consolidation")
MODES = (None, "sameSize", "mixedSize")


@computed(MANAGER, "graphicsConfig")
def _config(inventory: Inventory, this: Managed) -> Any:
    return inventory.objects[this.hidden["host"]]["config"].graphicsConfig


@method(MANAGER, "UpdateGraphicsConfig")
def update(call: Call, this: Managed, args: Any) -> None:
    """Set how the host shares its cards. InvalidArgument for a word or a card that there is not."""
    host = call.inventory.objects[this.hidden["host"]]
    call.need("Host.Config.Settings", host)
    need_connected(host)
    config, cards = args.config, args.config.deviceType or ()
    have = {each.deviceId for each in host["config"].graphicsConfig.deviceType or ()}
    wrong = {
        "hostDefaultGraphicsType": config.hostDefaultGraphicsType not in TYPES,
        "sharedPassthruAssignmentPolicy": config.sharedPassthruAssignmentPolicy not in PLACEMENTS,
        "deviceType": any(
            each.deviceId not in have or each.graphicsType not in TYPES or each.vgpuMode not in MODES
            for each in cards
        ),
    }
    for name in (name for name, is_so in wrong.items() if is_so):
        raise vmodl.fault.InvalidArgument(
            invalidProperty=f"config.{name}", msg=f"A specified parameter was not correct: config.{name}"
        )
    host["config"].graphicsConfig = args.config
    offer_vgpus(call.inventory, host)
    call.inventory.touch(host, this)
    call.inventory.room_changed()
