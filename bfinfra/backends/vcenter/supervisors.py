"""Supervisors over REST: listing, enabling, changing, disabling. Source:
com.vmware.vcenter.namespace_management.Clusters and Supervisors (vmware-vcenter 9.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bfinfra.backends.vcenter.zones import SUPERVISORS
from bfinfra.model.errors import Malformed, Missing
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.rest import Rest

CLUSTERS = "/api/vcenter/namespace-management/clusters"
INSTANCES = "/api/vcenter/namespaces/instances"
Body = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Supervisor:
    """`cluster`: id of the vSphere cluster; `status`: CONFIGURING, RUNNING, REMOVING or ERROR; `kubernetes`:
    READY, WARNING or ERROR; `info`: vCenter's whole answer.
    """

    cluster: str
    status: str
    kubernetes: str
    endpoint: str
    messages: tuple[str, ...] = ()
    info: Body = field(default_factory=dict, repr=False, hash=False)


class Supervisors:
    """The supervisors of one vCenter. Raises RemoteError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def read(self, clusters: Iterable[str]) -> Mapping[str, Supervisor]:
        """Cluster's id → supervisor, for these clusters; those without one are left out."""
        found = {}
        for cluster in clusters:
            try:
                info = self._rest.get(f"{CLUSTERS}/{quote(cluster)}")
            except Missing:
                continue
            if not info:
                raise Malformed(
                    f"the answer about the supervisor on {cluster} is empty", server=self._rest.server
                )
            found[cluster] = self._supervisor(cluster, info)
        return found

    def namespaces(self, cluster: str) -> Mapping[str, str]:
        """The namespaces on a cluster's supervisor: name → description."""
        found = self._rest.get(INSTANCES)
        return {
            str(each["namespace"]): str(each.get("description") or "")
            for each in found
            if each.get("cluster") == cluster
        }

    def enable(self, cluster: str, body: Body) -> None:
        """Start to enable one; it is CONFIGURING for tens of minutes. Raises Exists if it is enabled
        already.
        """
        self._rest.post(f"{CLUSTERS}/{quote(cluster)}", body, params={"action": "enable"})

    def enable_on_cluster(self, cluster: str, body: Body) -> None:
        """Start to enable one by the API of supervisors. Raises Exists if it is enabled already."""
        self._rest.post(
            f"{SUPERVISORS}/{quote(cluster)}", body, params={"action": "enable_on_compute_cluster"}
        )

    def enable_on_zones(self, body: Body) -> None:
        """Start to enable one across zones. Raises Exists if one runs in any of them."""
        self._rest.post(SUPERVISORS, body, params={"action": "enable_on_zones"})

    def update(self, cluster: str, body: Body) -> None:
        """Set the given fields."""
        self._rest.patch(f"{CLUSTERS}/{quote(cluster)}", body)

    def disable(self, cluster: str) -> None:
        """Start to remove it with all its namespaces. One that is already gone is fine."""
        try:
            self._rest.post(f"{CLUSTERS}/{quote(cluster)}", params={"action": "disable"})
        except Missing:
            return

    def _supervisor(self, cluster: str, info: Any) -> Supervisor:
        try:
            messages = [*info.get("messages", ()), *info.get("kubernetes_status_messages", ())]
            texts = tuple(
                str((each.get("details") or {}).get("default_message", ""))
                for each in messages
                if each.get("severity") != "INFO"
            )
            return Supervisor(
                cluster,
                str(info["config_status"]),
                str(info["kubernetes_status"]),
                str(info.get("api_server_cluster_endpoint") or ""),
                texts,
                info,
            )
        except (KeyError, TypeError, AttributeError) as error:
            raise Malformed(
                f"the supervisor on {cluster} can't be understood", server=self._rest.server, why=repr(error)
            ) from None
