"""An advanced option of clusters' DRS, such as how long VMs with vGPUs may take to leave a host that enters
maintenance mode. (RDG for PVRDMA, "vGPU Deployment and Configuration".)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, StringConstraints

from bfinfra.kinds.attributes import ATTRIBUTES
from bfinfra.kinds.vcenter.base import host_setting
from bfinfra.kinds.vcenter.base.host_setting import Place, State
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.records import dataclass
from bfinfra.model.rights import ROOT, Entity, PrivilegePlaces, holds, path_in
from bfinfra.model.site import Site

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter
    from bfinfra.backends.vcenter.cluster_options import ClusterOptions
    from bfinfra.backends.vcenter.esxi_settings import Noted

NOTED = (holds("clusters", "Global.SetCustomField"), holds("definitions", "Global.ManageCustomFields"))
OPTION = (holds("clusters", "Host.Inventory.EditCluster"), *NOTED)


class Spec(host_setting.SettingSpec):
    """The desired state of one option of clusters."""

    thing = "cluster"

    clusters: Annotated[tuple[str, ...], Field(min_length=1)]
    """The vSphere clusters that get it, by their names."""
    key: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.]{1,60}$")]
    """The option, such as VgpuMMAutomationTimeoutSecs."""
    value: Annotated[str, StringConstraints(min_length=1)]
    """The value; numbers as text."""

    @property
    def settings(self) -> tuple[str, ...]:
        """The option."""
        return (self.key,)

    def wanted(self, place: Place, context: PlanContext) -> str:
        """The value."""
        return self.value


@dataclass(frozen=True, kw_only=True)
class Set(host_setting.Set):
    """set {key} of the cluster {host} to {value}"""

    rights = OPTION


@dataclass(frozen=True, kw_only=True)
class Commit(host_setting.Commit):
    """note on the cluster {host} what was applied of {key}"""

    rights = NOTED


@dataclass(frozen=True, kw_only=True)
class PutBack(host_setting.PutBack):
    """put {key} of the cluster {host} back to {value}"""

    rights = OPTION


class ClusterOption(host_setting.Settings[Spec, State]):
    """An advanced option of DRS, set on clusters."""

    document = Document.PVRDMA
    followed = True
    step_types = (Set, Commit, PutBack)
    name = "cluster_option"
    prefix = ATTRIBUTES["cluster_option"]
    undescribed = "a cluster doesn't tell which of its options were set on purpose"

    def __init__(self, vcenter: VCenter, cluster_options: ClusterOptions, site: Site) -> None:
        super().__init__(vcenter, site)
        self._options = cluster_options

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The clusters, and the root, where custom attributes are defined."""
        found = (
            Entity(path_in(datacenter, "host", each), "ClusterComputeResource") for each in spec.clusters
        )
        return {"clusters": tuple(found), "definitions": (ROOT,)}

    def noted(self, *, everyone: bool, texts: Iterable[str] = ()) -> Mapping[str, Noted]:
        """The clusters by what the site calls them, each with its notes."""
        return self._vcenter.cluster_notes.noted(self.prefix, everyone=everyone, texts=texts)

    def note(self, moid: str, attribute: str, text: str) -> None:
        """Writes a note on a cluster."""
        self._vcenter.cluster_notes.set(moid, attribute, text)

    def forget(self, moid: str, attribute: str) -> None:
        """Removes a note from a cluster. With the last note of an option, the definition of its custom
        attribute goes, too.
        """
        self._vcenter.cluster_notes.drop(moid, attribute)

    def values(self, moids: Iterable[str], keys: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """The options as text, by cluster id and key; "" for an option that is not set."""
        empty = dict.fromkeys(keys, "")
        return {moid: {**empty, **found} for moid, found in self._options.read(moids).items()}

    def write(self, moid: str, key: str, value: str) -> None:
        """Sets an option, in one call."""
        self._options.set(moid, key, value)
