"""The steps of a cluster made by kubeadm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bfinfra.kinds.machine.base import OnMachines
from bfinfra.model.compare import Unknown
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.mark import Mark
from bfinfra.model.records import dataclass
from bfinfra.model.rights import Use
from bfinfra.model.ssh import LinuxMachine
from bfinfra.model.step import Disruption, Step


@dataclass(frozen=True, kw_only=True)
class OfRole(OnMachines):
    """A play of kubeadm's role on machines."""

    todo: Mapping[str, Mapping[str, Any]]
    """By machine: variables of the role."""


@dataclass(frozen=True, kw_only=True)
class Prepare(OfRole):
    """prepare {names} for Kubernetes"""


@dataclass(frozen=True, kw_only=True)
class Init(OfRole):
    """initialise the control plane on {names}"""


@dataclass(frozen=True, kw_only=True)
class Network(Step):
    """apply the manifest of the pod network"""

    # the objects of the manifest need no privileges of the site's account: the cluster's administrator
    # applies them
    rights = ()
    home: Endpoint | Unknown
    path: str
    sha256: str
    mark: Mark


@dataclass(frozen=True, kw_only=True)
class Join(OfRole):
    """join {names} to the cluster"""

    home: Endpoint | Unknown
    token: str
    """The id of its bootstrap token."""
    left: bool = False
    """Whether a killed run left a token of that id."""


@dataclass(frozen=True, kw_only=True)
class Forget(Step):
    """take away the bootstrap token that a run which died left in the cluster"""

    rights = ()
    home: Endpoint
    token: str


@dataclass(frozen=True, kw_only=True)
class WriteRecord(OfRole):
    """record on {names} what is done"""


@dataclass(frozen=True, kw_only=True)
class Leave(OfRole):
    """empty {names} and take them out of the cluster"""

    disruption = Disruption.POWER_CYCLE
    why = "the pods of a worker that leaves are evicted"
    control_plane: LinuxMachine | None
    nodes: Sequence[str]
    drain: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class Reset(OfRole):
    """take Kubernetes and all that is in it off {names}"""

    destructive = True
    uses = (Use.DESTROY,)
