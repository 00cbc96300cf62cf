"""The GPUs of a supervisor's machines: nodes of its clusters, and machines of the VM Service, on the hosts of
its vSphere cluster.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bfinfra.sandbox.inventory import vgpus
from bfinfra.sandbox.kubernetes.nvidia import Gpus
from bfinfra.sandbox.soap.placing import usable
from bfinfra.sandbox.soap.vm_pci import users

if TYPE_CHECKING:
    from bfinfra.sandbox.inventory import Inventory, Managed


class MachineGpus:
    """Of one supervisor. `wanted`: the GPUs of a VM class."""

    def __init__(self, inventory: Inventory, cluster: str, wanted: Callable[[str], vgpus.Wanted]) -> None:
        self._inventory, self._name, self._wanted = inventory, cluster, wanted

    def power_on(self, holder: str, vm_class: str) -> str:
        """Give a machine the GPUs of its class. Returns why it can't have them, or ""."""
        return vgpus.place(self._inventory, self._hosts(), self._busy, holder, self._wanted(vm_class))

    def power_off(self, holder: str) -> None:
        """Take them back."""
        vgpus.let_go(self._inventory, holder)

    def devices(self, holder: str) -> Gpus:
        """The GPUs that a machine holds. No driver is in the images of nodes."""
        held = vgpus.of(self._inventory, holder)
        if not held.names:
            return Gpus(driver="")
        return Gpus(
            len(held.names),
            product=held.names[0].replace(" ", "-"),
            vgpu=held.vgpu,
            driver="",
            host_driver=held.host_driver,
            memory=held.memory[0],
        )

    def _hosts(self) -> list[Managed]:
        return [
            host
            for host in self._inventory.hosts()
            if (home := self._inventory.parent(host)) and home.name == self._name and usable(host)
        ]

    def _busy(self, host: Managed) -> list[str]:
        return list(users(self._inventory, host))
