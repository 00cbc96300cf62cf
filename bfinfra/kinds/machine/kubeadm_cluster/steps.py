"""The steps of a cluster by kubeadm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bfinfra.model.compare import Unknown
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Use
from bfinfra.model.ssh import LinuxMachine
from bfinfra.model.step import Disruption, Step


@dataclass(frozen=True, kw_only=True)
class OnMachines(Step):
    """A play on machines."""

    # accounts of machines are no rights of vCenter or Kubernetes; the cluster's own is its administrator's
    rights = ()
    names: str
    machines: Mapping[str, LinuxMachine]
    todo: Mapping[str, Mapping[str, Any]]
    """By machine: variables of the role."""


@dataclass(frozen=True, kw_only=True)
class Prepare(OnMachines):
    """prepare {names} for Kubernetes"""


@dataclass(frozen=True, kw_only=True)
class Init(OnMachines):
    """initialise the control plane on {names}"""


@dataclass(frozen=True, kw_only=True)
class Network(Step):
    """apply the manifest of the pod network"""

    rights = ()
    home: Endpoint | Unknown
    path: str
    sha256: str
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Join(OnMachines):
    """join {names} to the cluster"""

    home: Endpoint | Unknown
    token: str
    """Its bootstrap token's id."""
    left: bool = False
    """One of that id was left by a run that died."""


@dataclass(frozen=True, kw_only=True)
class Forget(Step):
    """take away the bootstrap token that a run which died left in the cluster"""

    rights = ()
    home: Endpoint
    token: str


@dataclass(frozen=True, kw_only=True)
class Note(OnMachines):
    """record on {names} what is done"""


@dataclass(frozen=True, kw_only=True)
class Leave(OnMachines):
    """empty {names} and take them out of the cluster"""

    disruption = Disruption.POWER_CYCLE
    why = "the pods of a worker that leaves are evicted"
    control_plane: LinuxMachine | None
    nodes: Sequence[str]
    drain: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Reset(OnMachines):
    """take Kubernetes and all that is in it off {names}"""

    destructive = True
    uses = (Use.DESTROY,)
