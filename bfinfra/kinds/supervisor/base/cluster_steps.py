"""The steps of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bfinfra.backends.kubernetes.contents import LISTED
from bfinfra.model.compare import Unknown
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.records import dataclass
from bfinfra.model.rights import API, Rule, Use, may
from bfinfra.model.step import Disruption, Step

THINGS = "tanzukubernetesclusters.run.tanzu.vmware.com"
CLUSTERS = "clusters.cluster.x-k8s.io"
PLACES = {"TanzuKubernetesCluster": "tanzu", "Cluster": "cluster api"}
"""The place of privileges, by the cluster's kind of object."""


def _both(verbs: str) -> tuple[Rule, ...]:
    return may(verbs, THINGS, "tanzu"), may(verbs, CLUSTERS, "cluster api")


@dataclass(frozen=True, kw_only=True)
class Create(Step):
    """create cluster {name} in {namespace}"""

    rights = _both("create")

    name: str
    namespace: str
    home: Endpoint | Unknown
    manifest: Mapping[str, Any] | Unknown


@dataclass(frozen=True, kw_only=True)
class Update(Step):
    """update cluster {name} in {namespace}"""

    rights = _both("get patch")

    name: str
    namespace: str
    home: Endpoint
    manifest: Mapping[str, Any] | Unknown


@dataclass(frozen=True, kw_only=True)
class Roll(Update):
    """update cluster {name} in {namespace}; its nodes are replaced one after the other"""


@dataclass(frozen=True, kw_only=True)
class Drop(Update):
    """remove the node pool {pools} of cluster {name} in {namespace}, with what is on its nodes alone"""

    destructive = True
    pools: str


@dataclass(frozen=True, kw_only=True)
class Hop(Update):
    """update cluster {name} in {namespace} to {version} on its way; its nodes are replaced one after the
    other
    """

    waits_ready = True
    rights = (*Update.rights, may("list", "nodes", API))
    version: str


@dataclass(frozen=True, kw_only=True)
class Wait(Step):
    """wait until every node of cluster {name} is ready and runs {version}"""

    waits_ready = True
    rights = (may("list", "nodes", API),)
    name: str
    version: str


@dataclass(frozen=True, kw_only=True)
class Delete(Step):
    """delete cluster {name} in {namespace} and all that runs in it"""

    destructive = True
    rights = (*_both("delete"), may("list", LISTED, API))
    uses = (Use.DESTROY,)
    name: str
    namespace: str
    home: Endpoint
    api: str


@dataclass(frozen=True, kw_only=True)
class Move(Delete):
    """delete cluster {name} in {namespace} and all that runs in it, to make it anew in another namespace"""

    disruption = Disruption.REPLACE
    why = "a cluster can't move to another namespace"
    waits_ready = True
