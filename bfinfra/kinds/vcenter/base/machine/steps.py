"""The steps of a virtual machine that exists. They carry references to secrets, never values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bfinfra.backends.vcenter.vm import Hardware, Relocation
from bfinfra.model.compare import Unknown
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Use, holds
from bfinfra.model.secret import Secret
from bfinfra.model.step import Disruption, Step, Versioned

OFF = "VirtualMachine.Interact.PowerOff"
GONE = "VirtualMachine.Inventory.Delete"


@dataclass(frozen=True, kw_only=True)
class OnMachine(Versioned):
    """A step on one VM; `moid`: "" for the one that the step before makes."""

    name: str
    moid: str


@dataclass(frozen=True, kw_only=True)
class Discard(OnMachine):
    """remove the half-made VM {name}, once what works on it has ended"""

    rights = (holds("half_made", OFF, GONE),)


@dataclass(frozen=True, kw_only=True)
class Stop(OnMachine):
    """shut down {name}"""

    rights = (holds("folder", OFF),)
    disruption = Disruption.POWER_CYCLE
    why = "what changes can change only while the VM is off, or the site wants it off"

    back: bool = True
    """Whether it is started again if a step after this one is refused."""

    @property
    def way_back(self) -> Step | None:
        """Power on, unless the site wants it off."""
        return Start(name=self.name, moid=self.moid) if self.back else None


@dataclass(frozen=True, kw_only=True)
class Write(OnMachine):
    """reconfigure VM {name}"""

    rights = (
        holds(
            "folder",
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
                    "Rename",
                )
            ),
        ),
        holds("firmware", "VirtualMachine.Config.Settings"),
        holds("networks", "Network.Assign"),
        holds("disks", "VirtualMachine.Config.AddNewDisk"),
        holds("stores", "Datastore.AllocateSpace"),
        holds("vapps", "VApp.ApplicationConfig"),
    )

    hardware: Hardware | Unknown
    properties: Mapping[str, str | Secret] = field(default_factory=dict)
    """Only the properties that change."""
    keep: Mapping[str, str] = field(default_factory=dict)
    """Digests of secret properties that are not written again."""


@dataclass(frozen=True, kw_only=True)
class Move(OnMachine):
    """move VM {name} to its folder and resource pool"""

    rights = (
        holds("pool", "Resource.AssignVMToPool"),
        holds("folder", "VirtualMachine.Inventory.Move", "Resource.AssignVMToPool"),
    )

    folder: str
    """Its id; "" for the one that it is in. So is `pool`."""
    pool: str | Unknown


@dataclass(frozen=True, kw_only=True)
class Relocate(OnMachine):
    """relocate VM {name} to {where}"""

    rights = (
        holds("migrated", "Resource.HotMigrate", "Resource.ColdMigrate"),
        holds("pool", "Resource.AssignVMToPool"),
        holds("datastore", "Datastore.AllocateSpace"),
    )

    where: str
    """The host, cluster and datastores, in the site's words."""
    to: Relocation | Unknown
    """Unknown while this site has still to make the pool of another cluster."""


@dataclass(frozen=True, kw_only=True)
class Start(OnMachine):
    """power on {name}"""

    rights = (holds("folder", "VirtualMachine.Interact.PowerOn"),)


@dataclass(frozen=True, kw_only=True)
class Note(OnMachine):
    """note on VM {name} what was applied"""

    rights = (holds("folder", "VirtualMachine.Config.AdvancedConfig"),)

    extra: Mapping[str, str]
    """Keys and values of the notes."""


@dataclass(frozen=True, kw_only=True)
class Delete(OnMachine):
    """shut down VM {name} and delete it with its disks"""

    destructive = True
    rights = (holds("folder", OFF, GONE),)
    uses = (Use.DESTROY,)

    importing: bool = False
    """Whether a killed run left it half-made, perhaps with an import still open."""


@dataclass(frozen=True, kw_only=True)
class Replace(Delete):
    """shut down VM {name} and delete it with its disks, to make it anew"""

    disruption = Disruption.REPLACE
    why = "what it is made from can't change in place"
