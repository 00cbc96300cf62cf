"""An advanced option of clusters' DRS, such as how long machines with vGPUs may take to leave a host that
goes into maintenance. (RDG for PVRDMA, "vGPU Deployment and Configuration".)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, StringConstraints

from bfinfra.kinds.vcenter.base import host_setting
from bfinfra.kinds.vcenter.base.host_setting import Place, State, Steps
from bfinfra.model.context import PlanContext, ResolvedRef
from bfinfra.model.document import Document
from bfinfra.model.records import dataclass
from bfinfra.model.rights import ROOT, Entity, PrivilegePlaces, holds
from bfinfra.model.site import Site
from bfinfra.model.step import Step

if TYPE_CHECKING:
    from bfinfra.backends.vcenter import VCenter
    from bfinfra.backends.vcenter.cluster_options import ClusterOptions
    from bfinfra.backends.vcenter.esxi_settings import Noted

NOTED = (holds("clusters", "Global.SetCustomField"), holds("definitions", "Global.ManageCustomFields"))
OPTION = (holds("clusters", "Host.Inventory.EditCluster"), *NOTED)


class Spec(host_setting.SettingSpec):
    """What a user writes for one option of clusters."""

    thing = "cluster"

    clusters: Annotated[tuple[str, ...], Field(min_length=1)]
    """vSphere clusters that it is set on, by their names."""
    key: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.]{1,60}$")]
    """The option, such as VgpuMMAutomationTimeoutSecs."""
    value: Annotated[str, StringConstraints(min_length=1)]
    """Its value; numbers as text."""

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
    """An advanced option of clusters' DRS."""

    document = Document.PVRDMA
    step_types = (Set, Commit, PutBack)
    name = "cluster_option"
    prefix = "bfinfra.drs."
    undescribed = "a cluster doesn't tell which of its options somebody wants"

    def __init__(self, vcenter: VCenter, cluster_options: ClusterOptions, site: Site) -> None:
        super().__init__(vcenter, site)
        self._options = cluster_options

    @staticmethod
    def steps(name: str, spec: Spec | None, state: State | None, context: PlanContext) -> Sequence[Step]:
        """A step a cluster."""
        return host_setting.steps(spec, state, context, Steps(Set, Commit, PutBack))

    @staticmethod
    def places(name: str, spec: Spec, needs: Mapping[str, ResolvedRef], datacenter: str) -> PrivilegePlaces:
        """The clusters; custom attributes are defined at the root."""
        found = (Entity(f"/{datacenter}/host/{each}", "ClusterComputeResource") for each in spec.clusters)
        return {"clusters": tuple(found), "definitions": (ROOT,)}

    def noted(self, *, everyone: bool) -> Mapping[str, Noted]:
        """On clusters."""
        return self._vcenter.cluster_notes.noted(self.prefix, everyone=everyone)

    def note(self, moid: str, attribute: str, text: str) -> None:
        """On a cluster."""
        self._vcenter.cluster_notes.set(moid, attribute, text)

    def forget(self, moid: str, attribute: str) -> None:
        """The last one takes the attribute's definition along."""
        self._vcenter.cluster_notes.drop(moid, attribute)

    def values(self, moids: Iterable[str], keys: Iterable[str]) -> Mapping[str, Mapping[str, str]]:
        """Options as text; one that nobody set is empty."""
        empty = dict.fromkeys(keys, "")
        return {moid: {**empty, **found} for moid, found in self._options.read(moids).items()}

    def write(self, moid: str, key: str, value: str) -> None:
        """One call."""
        self._options.set(moid, key, value)
