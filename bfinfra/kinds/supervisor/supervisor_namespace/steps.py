"""The steps of a namespace."""

from __future__ import annotations

from bfinfra.backends.kubernetes.contents import LISTED, LISTED_ON_SUPERVISORS
from bfinfra.backends.vcenter.namespaces import Settings
from bfinfra.model.records import dataclass
from bfinfra.model.rights import API, Use, holds, may
from bfinfra.model.step import Disruption, Step

CONFIGURE = holds("cluster", "Namespaces.Configure")
CATALOG = holds("policies", "StorageProfile.View")


@dataclass(frozen=True, kw_only=True)
class Create(Step):
    """create namespace {name} on {cluster}"""

    rights = (CONFIGURE,)

    name: str
    cluster: str
    settings: Settings


@dataclass(frozen=True, kw_only=True)
class Update(Step):
    """update namespace {name}"""

    rights = (CONFIGURE,)

    name: str
    settings: Settings


@dataclass(frozen=True, kw_only=True)
class Delete(Step):
    """delete namespace {name} and all that is in it"""

    destructive = True
    rights = (CONFIGURE, CATALOG, may("list", f"{LISTED} {LISTED_ON_SUPERVISORS}", API))
    uses = (Use.DESTROY,)
    name: str


@dataclass(frozen=True, kw_only=True)
class Move(Delete):
    """delete namespace {name} and all that is in it, to make it anew on another cluster"""

    disruption = Disruption.REPLACE
    why = "a namespace can't move to another cluster"
    waits_ready = True
