"""The observed state of a cluster: its conditions and counts, never its phase."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Annotated, Any

from bfinfra.backends.kubernetes.marks import mark_of
from bfinfra.backends.words import safe
from bfinfra.kinds.cluster_locator import Cluster
from bfinfra.kinds.supervisor.base.guests import READY
from bfinfra.kinds.supervisor.base.words import Fields, Object, at
from bfinfra.kinds.supervisor.vks_cluster import manifest as form
from bfinfra.kinds.supervisor.vks_cluster.spec import Spec
from bfinfra.model import resource
from bfinfra.model.endpoint import Endpoint
from bfinfra.model.records import dataclass
from bfinfra.model.refs import Ref

TOPOLOGY, MADE, REACHED, AVAILABLE = (
    "TopologyReconciled",
    "ControlPlaneInitialized",
    "RemoteConnectionProbe",
    "Available",
)
AWAITED = (TOPOLOGY, MADE, REACHED, AVAILABLE)
LEGACY = (TOPOLOGY, MADE, "Ready")
"""The conditions to wait for on supervisors without the newer ones."""
ROLES = ("controlPlane", "workers")
POOL = "topology.cluster.x-k8s.io/deployment-name"
OF_CLUSTER = "cluster.x-k8s.io/cluster-name"


@dataclass(frozen=True)
class Count:
    """Nodes of a role: how many are wanted, exist, are up to date, and are available."""

    wanted: int = 0
    there: int = 0
    up_to_date: int = 0
    available: int = 0

    @property
    def through(self) -> bool:
        """True if all exist, up to date and available, and no others do."""
        return self.wanted == self.there == self.up_to_date == self.available


@dataclass(frozen=True, kw_only=True)
class State(resource.State):
    """`body`: the object's spec in the version `api`; `home`: the API that serves it; `endpoint` is set once
    the cluster's own API can be reached.
    """

    namespace: Annotated[str, Ref("supervisor_namespace")]
    api: str = form.V1BETA2
    body: Fields
    home: Endpoint
    current: bool = True
    """Whether its controllers have seen what was written last."""
    conditions: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Type → status, and why."""
    counts: Mapping[str, Count] | None = None
    """By role; None where the status has none."""
    pools: Mapping[str, Count] | None = None
    """From each pool's MachineDeployment, by pool; None where they were not read."""
    nodes: Mapping[str, str] | None = None
    """Node → its status in the cluster itself; None where it was not read."""
    api_server: str = ""
    endpoint: Endpoint | None = None
    metadata: Fields = field(default_factory=dict)
    """Its uid, and its managedFields, which tell who wrote which field."""

    def answers_at(self) -> str:
        """host:port of its API server."""
        return self.api_server

    @property
    def version(self) -> str:
        """The version that it runs or is upgraded to."""
        return form.version(self.body)

    def view(self) -> Object:
        """Its spec as fields of a site."""
        return form.view(self.body, self.api)

    def missing(self, spec: Spec | None = None) -> str:
        """Return what the last change still waits for; "" where it is complete."""
        if self.going:
            return "deleting"
        if not self.current:
            return "accepted"
        awaited = LEGACY if self.counts is None and AVAILABLE not in self.conditions else AWAITED
        for each in awaited:
            status, why = self.conditions.get(each, ("Unknown", "its status is not reported yet"))
            if status != "True":
                return "; ".join(filter(None, (self._progress(), f"{each}: {why or status}")))
        counts = self.counts or {}
        owed = spec.control_plane.count + sum(each.least for each in spec.workers.values()) if spec else 0
        if any(not each.through for each in counts.values()) or (
            counts and sum(each.there for each in counts.values()) < owed
        ):
            return self._progress() or f"{sum(each.there for each in counts.values())} of {owed} nodes"
        if spec is not None and (behind := next(self._behind(spec), "")):
            return behind
        return self._nodes(sum(each.wanted for each in counts.values()) if counts else owed)

    def _behind(self, spec: Spec) -> Iterator[str]:
        """Pools that are not up to date: the sums in the cluster's status lag behind."""
        for name, nodes in spec.workers.items() if self.pools is not None else ():
            found = (self.pools or {}).get(name)
            if found is None:
                yield f"pool {name} does not exist yet"
            elif (nodes.count is not None and found.wanted != nodes.count) or not found.through:
                yield f"pool {name}: {found.available} of {found.wanted} nodes"

    def _nodes(self, owed: int) -> str:
        """Return which nodes are not ready; "" where all are."""
        if self.nodes is None:
            return ""
        up = sum(status == READY for status in self.nodes.values())
        others = sorted({status for status in self.nodes.values() if status != READY})
        if others or up < owed:
            return "; ".join((f"{up} of {owed} nodes ready", *others[:2]))
        return ""

    def _progress(self) -> str:
        if not self.counts:
            return ""
        wanted = sum(each.wanted for each in self.counts.values())
        done = sum(min(each.up_to_date, each.available, each.wanted) for each in self.counts.values())
        return f"{done} of {wanted} nodes are up to date"


def of(obj: Fields, api: str, cluster: Cluster) -> State:
    """The state that an object shows."""
    status, metadata = at(obj, "status"), at(obj, "metadata")
    newer = status if api == form.V1BETA2 else at(status, "v1beta2")
    observed, written = status.get("observedGeneration"), metadata.get("generation")
    listed = newer.get("conditions") or status.get("conditions")
    conditions = _conditions(listed, written if isinstance(written, int) else 0)
    address = at(obj, "spec", "controlPlaneEndpoint")
    server = f"{address.get('host')}:{address.get('port')}" if address.get("host") else ""
    entered = server and conditions.get(MADE, ("", ""))[0] == "True" and not metadata.get("deletionTimestamp")
    counts = {role: _count(newer[role]) for role in ROLES if isinstance(newer.get(role), Mapping)}
    return State(
        mark=mark_of(obj),
        namespace=cluster.key.name,
        api=api,
        body=at(obj, "spec"),
        home=cluster.endpoint,
        going=bool(metadata.get("deletionTimestamp")),
        current=isinstance(observed, int) and isinstance(written, int) and observed >= written,
        conditions=conditions,
        counts=counts or None,
        api_server=safe(server, 80),
        endpoint=replace(cluster.endpoint, guest=str(metadata.get("name"))) if entered else None,
        metadata={"uid": str(metadata.get("uid", "")), "managedFields": metadata.get("managedFields") or []},
    )


def pools_of(objects: Sequence[Fields]) -> dict[str, Count]:
    """Pool → its nodes, from the MachineDeployments of one cluster. One whose controller has not seen the
    last change counts as having no node that is up to date.
    """
    return {str(at(each, "metadata", "labels").get(POOL)): _pool(each) for each in objects}


def _pool(obj: Fields) -> Count:
    status, metadata = at(obj, "status"), at(obj, "metadata")
    wanted = at(obj, "spec").get("replicas")
    if (status.get("observedGeneration") or 0) < (metadata.get("generation") or 0):
        status = {}
    later = status.get("upToDateReplicas", status.get("updatedReplicas"))
    return _count({**status, "desiredReplicas": wanted, "upToDateReplicas": later})


def _conditions(listed: Any, written: int) -> dict[str, tuple[str, str]]:
    return {
        str(each.get("type")): _condition(each, written) for each in listed or () if isinstance(each, dict)
    }


def _condition(each: Fields, written: int) -> tuple[str, str]:
    """(status, reason) of a condition; "Unknown" where its controller has not updated it since the last
    write. The condition of a control plane that was made stays true, and its controller does not renew it.
    """
    observed = each.get("observedGeneration")
    if isinstance(observed, int) and 0 < observed < written and each.get("type") != MADE:
        return "Unknown", "not updated since the last write"
    text = " ".join(str(each.get("message") or each.get("reason") or "").split())
    return str(each.get("status")), safe(text, 200)


def _count(role: Fields) -> Count:
    def of(name: str) -> int:
        found = role.get(name)
        return found if isinstance(found, int) else 0

    return Count(of("desiredReplicas"), of("replicas"), of("upToDateReplicas"), of("availableReplicas"))
