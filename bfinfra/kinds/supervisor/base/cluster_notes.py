"""Steps that write a note on a vSphere cluster: this site manages something of the cluster that has no place
for a mark itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bfinfra.model.records import dataclass
from bfinfra.model.rights import Use, holds
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.cluster_notes import ClusterNotes

RIGHTS = (holds("cluster", "Global.SetCustomField"), holds("definitions", "Global.ManageCustomFields"))
"""The privileges to write such a note."""


@dataclass(frozen=True, kw_only=True)
class OnCluster(Step):
    """A step about a note on a cluster. `cluster`: its name, `moid`: its id."""

    cluster: str
    moid: str


@dataclass(frozen=True, kw_only=True)
class Take(OnCluster):
    """note on {cluster} that its {what} is looked after by this site"""

    rights = RIGHTS
    what: str
    note: str


@dataclass(frozen=True, kw_only=True)
class Leave(OnCluster):
    """take the note about its {what} off {cluster}"""

    rights = RIGHTS
    uses = (Use.APPLY, Use.DESTROY)
    what: str


def run(step: Step, notes: ClusterNotes, attribute: str) -> None:
    """Runs one of the two."""
    match step:
        case Take(moid=moid, note=note):
            notes.set(moid, attribute, note)
        case Leave(moid=moid):
            notes.drop(moid, attribute)
        case _:
            raise AssertionError(step)
