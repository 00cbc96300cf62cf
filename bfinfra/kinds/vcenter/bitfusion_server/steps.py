"""The steps of a server. They carry references to secrets, never values."""

from __future__ import annotations

from collections.abc import Mapping

from bfinfra.backends.vcenter.vm import Attach
from bfinfra.kinds.vcenter.bitfusion_server.target import Target
from bfinfra.model.compare import Unknown
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Use, holds
from bfinfra.model.secret import Secret
from bfinfra.model.step import Disruption, Step, Versioned

PLACED = (holds("pool", "Resource.AssignVMToPool"), holds("networks", "Network.Assign"))
OFF = (holds("folder", "VirtualMachine.Interact.PowerOff"),)
GONE = (*OFF, holds("folder", "VirtualMachine.Inventory.Delete"))


@dataclass(frozen=True, kw_only=True)
class Deploy(Step):
    """verify the OVA and import it as VM {name}"""

    rights = (
        *PLACED,
        holds("pool", "VApp.Import"),
        holds("datastore", "Datastore.AllocateSpace"),
        holds(
            "folder",
            "VApp.Import",
            "VirtualMachine.Inventory.Create",
            "VirtualMachine.Config.AddNewDisk",
            "VirtualMachine.Config.AdvancedConfig",
        ),
        holds(
            "library",
            "ContentLibrary.CreateLocalLibrary",
            "ContentLibrary.AddLibraryItem",
            "ContentLibrary.UpdateLibraryItem",
            "ContentLibrary.UpdateSession",
        ),
    )

    name: str
    target: Target
    mark: str

    @property
    def exclusive(self) -> bool:
        """True for an import, which fails if the folder has a VM of that name, or if the OVA or a place has
        changed. Not verified for a deployment from a library.
        """
        return self.target.library is None


@dataclass(frozen=True, kw_only=True)
class _OnMachine(Versioned):
    name: str
    moid: str


@dataclass(frozen=True, kw_only=True)
class Discard(_OnMachine):
    """remove the half-imported VM {name}, once what works on it has ended"""

    rights = GONE


@dataclass(frozen=True, kw_only=True)
class Stop(_OnMachine):
    """shut down {name}"""

    rights = OFF
    disruption = Disruption.POWER_CYCLE
    why = "hardware and properties change only while the VM is off"


@dataclass(frozen=True, kw_only=True)
class Configure(_OnMachine):
    """reconfigure VM {name}"""

    rights = (
        holds("networks", "Network.Assign"),
        holds(
            "folder",
            *(
                f"VirtualMachine.Config.{part}"
                for part in (
                    "CPUCount",
                    "Memory",
                    "Resource",
                    "Settings",
                    "AdvancedConfig",
                    "AddRemoveDevice",
                    "EditDevice",
                    "DiskExtend",
                )
            ),
            "VApp.ApplicationConfig",
        ),
    )

    cpus: int | None = None
    memory: int | None = None
    reserve: bool | None = None
    firmware: str | None = None
    extra: Mapping[str, str]
    attach: tuple[Attach, ...] = ()
    drop: tuple[int, ...] = ()
    nics: Mapping[int, str | Unknown]
    add_nics: tuple[str | Unknown, ...] = ()
    grow: Mapping[int, int]
    properties: Mapping[str, str | Secret]
    """Only the properties that change."""
    keep: Mapping[str, str]
    """Digests of the secrets that don't change."""


@dataclass(frozen=True, kw_only=True)
class Move(_OnMachine):
    """move VM {name} to its folder and resource pool"""

    rights = (
        holds("pool", "Resource.AssignVMToPool"),
        holds("folder", "VirtualMachine.Inventory.Move", "Resource.AssignVMToPool"),
    )

    folder: str
    pool: str | Unknown


@dataclass(frozen=True, kw_only=True)
class PowerOn(_OnMachine):
    """power on {name}"""

    rights = (holds("folder", "VirtualMachine.Interact.PowerOn"),)


@dataclass(frozen=True, kw_only=True)
class Commit(_OnMachine):
    """note on VM {name} what was applied"""

    rights = (holds("folder", "VirtualMachine.Config.AdvancedConfig"),)

    mark: str
    release: str
    """The appliance's identity; an adopted VM has no note of it yet."""


@dataclass(frozen=True, kw_only=True)
class Delete(_OnMachine):
    """shut down VM {name} and delete it with its disks"""

    destructive = True
    rights = GONE
    uses = (Use.DESTROY,)

    importing: bool = False
    """Whether a killed run left it half-imported, perhaps with an import still open."""


@dataclass(frozen=True, kw_only=True)
class Replace(Delete):
    """shut down VM {name} and delete it with its disks, to make it anew"""

    disruption = Disruption.REPLACE
    why = "the appliance, its host and its datastore can't change in place"
