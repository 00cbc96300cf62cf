"""The state of a cluster's image, and the steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from bfinfra.backends.vcenter.esxi import Lease
from bfinfra.backends.vcenter.host_images import Depot
from bfinfra.kinds.vcenter.base import begun, host_setting
from bfinfra.kinds.vcenter.base.begun import LEASE, Begun
from bfinfra.model.records import dataclass
from bfinfra.model.resource import Spec
from bfinfra.model.rights import Use, holds
from bfinfra.model.step import Disruption, Step

NOTED = (holds("clusters", "Global.SetCustomField"), holds("definitions", "Global.ManageCustomFields"))
WRITE = holds(
    "clusters",
    "VcIntegrity.lifecycleSoftwareSpecification.Read",
    "VcIntegrity.lifecycleSoftwareSpecification.Write",
)
REMEDIATE = holds(
    "clusters",
    "VcIntegrity.lifecycleSoftwareRemediation.Read",
    "VcIntegrity.lifecycleSoftwareRemediation.Write",
)
BEGUN = f"{begun.ATTRIBUTE}host_image"
"""The custom attribute of a host that holds what the site began on it."""
MAINTENANCE = (
    holds("remediated", "Host.Config.Maintenance", "Global.SetCustomField"),
    holds("definitions", "Global.ManageCustomFields"),
    *LEASE,
)
IMPORT = holds("depots", "VcIntegrity.lifecycleSettings.Read", "VcIntegrity.lifecycleSettings.Write")
DROP = holds("depots", "VcIntegrity.lifecycleDepots.Delete")


@dataclass(frozen=True)
class OnHost:
    """A host. `cluster`: the id of its cluster; `components`: name → version; `status` and `why`: of the last
    scan, "" if it was never scanned; `begun`: what the site began on it and has not ended.
    """

    name: str
    moid: str
    cluster: str
    components: Mapping[str, str] = field(default_factory=dict)
    status: str = ""
    why: tuple[str, ...] = ()
    maintenance: bool = False
    begun: Begun | None = None
    lost: str = ""
    """Why it is as vCenter last saw it."""


@dataclass(frozen=True, kw_only=True)
class State(host_setting.State):
    """The components of the image, as settings of the cluster, and the hosts. `imaged`: whether the cluster
    has an image; `depots`: vCenter's offline depots; `lease`: another run's, of the cluster.
    """

    imaged: bool = True
    hosts: tuple[OnHost, ...] = ()
    depots: tuple[Depot, ...] = ()
    lease: Lease | None = None

    def last_known(self) -> str:
        """Return why what its hosts run are last known values; "" if they are current."""
        return "; ".join(each.lost for each in self.hosts if each.lost)

    def out_of_service(self, spec: Spec | None) -> str:
        """Return which of its hosts are in maintenance mode."""
        names = ", ".join(each.name for each in self.hosts if each.maintenance)
        return f"has {names} in maintenance mode" if names else ""

    @property
    def components(self) -> Mapping[str, str]:
        """Component → version in the image, of those that the site names or has noted."""
        return {each.key: each.now for each in self.settings if each.now}


@dataclass(frozen=True, kw_only=True)
class OfCluster(Step):
    """A step that changes a cluster's image. `cluster`: the cluster's name, `moid`: its id."""

    cluster: str
    moid: str


@dataclass(frozen=True, kw_only=True)
class Import(OfCluster):
    """let vCenter import the depot {url}"""

    rights = (IMPORT, *NOTED)
    url: str
    description: str
    notes: Mapping[str, str]
    """Component → the note about it, without which a destroy would not find the depot."""


@dataclass(frozen=True, kw_only=True)
class SetImage(OfCluster):
    """set {what} in the image of {cluster}"""

    rights = (WRITE, *NOTED)
    what: str
    components: Mapping[str, str]
    notes: Mapping[str, str]
    """Component → the note about it."""


@dataclass(frozen=True, kw_only=True)
class PutBack(OfCluster):
    """take {what} out of the image of {cluster}"""

    destructive = True
    rights = (WRITE,)
    uses = (Use.APPLY, Use.DESTROY)
    what: str
    components: Mapping[str, str]
    """Component → the version before bfinfra set it, "" for none."""


@dataclass(frozen=True, kw_only=True)
class Leave(OfCluster):
    """take {host} out of maintenance mode, in which its remediation left it"""

    rights = MAINTENANCE
    uses = (Use.APPLY, Use.DESTROY)
    host: str
    host_moid: str
    stay: bool
    """Whether it is out of it already, or was in it before."""

    def title(self) -> str:
        """The title; without "maintenance mode" if it stays as it is."""
        return f"note that the remediation of {self.host} has ended" if self.stay else super().title()


@dataclass(frozen=True, kw_only=True)
class Remediate(OfCluster):
    """install the image of {cluster} on {hosts}, through maintenance mode"""

    rights = (WRITE, REMEDIATE, *MAINTENANCE)
    uses = (Use.APPLY, Use.DESTROY)
    disruption = Disruption.REBOOT
    why = "each host enters maintenance mode, and may restart"
    hosts: str
    """Their names."""
    moids: tuple[str, ...]
    begun: tuple[str, ...]
    """What is noted on each of them before it begins."""


@dataclass(frozen=True, kw_only=True)
class Commit(OfCluster):
    """note on {cluster} what was applied of its image"""

    rights = NOTED
    notes: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Drop(Step):
    """delete the depot {url}, which this site has imported"""

    rights = (DROP,)
    uses = (Use.DESTROY,)
    url: str
    identity: str


@dataclass(frozen=True, kw_only=True)
class Forget(OfCluster):
    """take the notes about its image off {cluster}"""

    rights = (WRITE, *NOTED)
    uses = (Use.APPLY, Use.DESTROY)
    components: tuple[str, ...]
