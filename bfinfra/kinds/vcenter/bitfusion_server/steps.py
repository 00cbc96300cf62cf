"""The step that makes a server. It carries references to secrets, never values."""

from __future__ import annotations

from bfinfra.kinds.vcenter.bitfusion_server.target import Target
from bfinfra.model.records import dataclass
from bfinfra.model.rights import holds
from bfinfra.model.step import Step


@dataclass(frozen=True, kw_only=True)
class Deploy(Step):
    """verify the OVA and import it as VM {name}"""

    rights = (
        holds("pool", "Resource.AssignVMToPool", "VApp.Import"),
        holds("networks", "Network.Assign"),
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
