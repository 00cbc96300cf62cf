"""The software that is installed on a host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.inventory.vmtypes import vim
from bfinfra.sandbox.soap.dispatch import Call, method
from bfinfra.sandbox.soap.hosts import need_connected

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory.managed import Managed


@method("vim.host.ImageConfigManager", "fetchSoftwarePackages", writes=False)
def packages(call: Call, this: Managed, _: object) -> Any:
    """The host's VIBs."""
    host = call.inventory.objects[this.hidden["host"]]
    call.need("Host.Config.Image", host)
    need_connected(host)
    return [
        vim.host.SoftwarePackage(
            name=name,
            version=version,
            type="bootbank",
            vendor="VMW",
            acceptanceLevel="vmware_certified",
            summary=name,
            description=name,
            referenceURL=[],
            depends=[],
            conflicts=[],
            replaces=[],
            provides=[],
            maintenanceModeRequired=True,
            hardwarePlatformsRequired=[],
            capability=vim.host.SoftwarePackage.Capability(
                liveInstallAllowed=False, liveRemoveAllowed=False, statelessReady=True, overlay=False
            ),
            tag=[],
            payload=[],
        )
        for name, version in this.hidden["vibs"].items()
    ]
