"""The steps of a VM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bfinfra.backends.vcenter.vm import Clone, Deployment, Hardware
from bfinfra.model.compare import Unknown
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Use, holds
from bfinfra.model.secret import Secret
from bfinfra.model.step import Disruption, Step, Versioned


@dataclass(frozen=True, kw_only=True)
class _OfMachine(Versioned):
    name: str
    moid: str


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
            "machines",
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
class Discard(_OfMachine):
    """remove the half-deployed {name}, once what works on it has ended"""

    rights = (holds("deployed", "VirtualMachine.Interact.PowerOff", "VirtualMachine.Inventory.Delete"),)


@dataclass(frozen=True, kw_only=True)
class Start(_OfMachine):
    """power on {name}"""

    rights = (holds("machines", "VirtualMachine.Interact.PowerOn"),)


@dataclass(frozen=True, kw_only=True)
class Stop(_OfMachine):
    """shut down {name}"""

    rights = (holds("machines", "VirtualMachine.Interact.PowerOff"),)
    disruption = Disruption.POWER_CYCLE
    why = "what changes can only change while it is off, or the site says power: off"


@dataclass(frozen=True, kw_only=True)
class Reconfigure(_OfMachine):
    """reconfigure {name}"""

    rights = (
        holds(
            "machines",
            *(
                f"VirtualMachine.Config.{part}"
                for part in (
                    "AdvancedConfig",
                    "CPUCount",
                    "Memory",
                    "Resource",
                    "AddRemoveDevice",
                    "EditDevice",
                    "DiskExtend",
                )
            ),
        ),
        holds("networks", "Network.Assign"),
        holds("disks", "VirtualMachine.Config.AddNewDisk"),
        holds("stores", "Datastore.AllocateSpace"),
        holds("vapps", "VApp.ApplicationConfig"),
    )

    hardware: Hardware | Unknown
    properties: Mapping[str, str | Secret] = field(default_factory=dict)
    keep: Mapping[str, str] = field(default_factory=dict)
    """Digests of secret properties that are not written again."""


@dataclass(frozen=True, kw_only=True)
class DeleteDisks(_OfMachine):
    """delete disks of {name} with what is on them"""

    destructive = True
    rights = (holds("disks", "VirtualMachine.Config.RemoveDisk"),)

    disks: tuple[str, ...]
    keys: tuple[int, ...]

    def title(self) -> str:
        """The title, with the places of the disks."""
        return f"delete {' and '.join(self.disks)} of {self.name} with what is on it"


@dataclass(frozen=True, kw_only=True)
class Delete(_OfMachine):
    """delete {name} with its disks"""

    destructive = True
    rights = (holds("machines", "VirtualMachine.Interact.PowerOff", "VirtualMachine.Inventory.Delete"),)
    uses = (Use.DESTROY,)
