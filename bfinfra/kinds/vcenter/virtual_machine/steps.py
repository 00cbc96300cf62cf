"""The steps of a VM that only this kind has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bfinfra.backends.vcenter.vm import Clone, Deployment, Hardware
from bfinfra.kinds.vcenter.base.machine.steps import OnMachine
from bfinfra.model.compare import Unknown
from bfinfra.model.records import dataclass
from bfinfra.model.rights import holds
from bfinfra.model.secret import Secret
from bfinfra.model.step import Step


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """The id of an OVF item to create a VM from, and the hardware to set right after."""

    item: str
    deployment: Deployment
    hardware: Hardware
    properties: Mapping[str, str | Secret] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Make(Step):
    """make {name} from {source}"""

    rights = (
        holds("cloned", "VirtualMachine.Provisioning.Clone"),
        holds(
            "folder",
            "VirtualMachine.Provisioning.DeployTemplate",
            "VirtualMachine.Inventory.CreateFromExisting",
            "VirtualMachine.Config.AdvancedConfig",
            "VirtualMachine.Config.AddNewDisk",
            "VirtualMachine.Config.AddRemoveDevice",
            "VirtualMachine.Config.CPUCount",
            "VirtualMachine.Config.Memory",
            "VirtualMachine.Config.Resource",
            "VirtualMachine.Config.Settings",
            "VirtualMachine.Config.DiskExtend",
        ),
        holds("pool", "Resource.AssignVMToPool"),
        holds("datastore", "Datastore.AllocateSpace"),
        holds("networks", "Network.Assign"),
        holds("deployed", "VirtualMachine.Inventory.Create"),
        holds("imported", "VApp.Import"),
        holds("vapps", "VApp.ApplicationConfig"),
    )

    name: str
    source: str
    how: Clone | Deployed | Unknown

    @property
    def exclusive(self) -> bool:
        """True for a clone, which fails if the name is taken. Not verified for a deployment from a
        library.
        """
        return not isinstance(self.how, Deployed)


@dataclass(frozen=True, kw_only=True)
class DeleteDisks(OnMachine):
    """delete disks of {name} with what is on them"""

    destructive = True
    rights = (holds("disks", "VirtualMachine.Config.RemoveDisk"),)

    disks: tuple[str, ...]
    keys: tuple[int, ...]

    def title(self) -> str:
        """The title, with the places of the disks."""
        return f"delete {' and '.join(self.disks)} of {self.name} with what is on it"
