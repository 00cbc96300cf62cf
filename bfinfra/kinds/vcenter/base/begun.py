"""What a site began on a host and has to end: maintenance mode, with or without a restart. It stands in a
custom attribute of its own, so that no note about what was applied overwrites it, whichever run writes that.
"""

from __future__ import annotations

from bfinfra.backends.vcenter.esxi import Lease
from bfinfra.model.mark import Mark
from bfinfra.model.readiness import Readiness, waiting
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Use, holds
from bfinfra.model.step import Step

ATTRIBUTE = "bfinfra.maintenance."
"""How the custom attributes' names begin; the kind follows."""
LEASE = (holds("leases", "Global.ManageCustomFields", "Global.SetCustomField"),)
"""The privileges to hold a cluster's lease, on the root folder."""


@dataclass(frozen=True)
class Begun:
    """`mark`: the resource that began it; `boot`: the host's start before; `stay`: the host was in
    maintenance mode before, and stays in it.
    """

    mark: Mark
    boot: str
    stay: bool = False

    def encode(self) -> str:
        """One line of text."""
        return f"{self.mark.pending.encode()} {self.word}"

    @property
    def word(self) -> str:
        """`from:BOOT`, or `from:BOOT:stay`."""
        return f"from:{self.boot}" + (":stay" if self.stay else "")

    @classmethod
    def decode(cls, text: str) -> Begun | None:
        """What a line of text says, or None if it has no mark."""
        mark = Mark.decode(text)
        word = next((each for each in text.split() if each.startswith("from:")), None)
        return cls.noted(mark, word) if mark and word else None

    @classmethod
    def noted(cls, mark: Mark, word: str) -> Begun:
        """The same from its word, `from:BOOT` or `from:BOOT:stay`, as notes had it before."""
        return cls(mark, word.removesuffix(":stay").removeprefix("from:"), word.endswith(":stay"))


@dataclass(frozen=True, kw_only=True)
class Wait(Step):
    """wait for {holder}, which restarts hosts of {cluster}"""

    rights = ()
    uses = (Use.APPLY, Use.DESTROY)
    waits_ready = True
    cluster: str
    holder: str
    """Who has the cluster's lease, and since when."""
    key: int
    """The lease's own."""


def wait_for(lease: Lease | None, cluster: str) -> list[Step]:
    """Wait for another run that holds the cluster's lease, if there is one."""
    return [Wait(cluster=cluster, holder=str(lease), key=lease.key)] if lease else []


def held(lease: Lease, cluster: str) -> Readiness:
    """What is waited for until the other run gives the cluster's lease back."""
    return waiting(f"{lease} restarts hosts of {cluster}")
