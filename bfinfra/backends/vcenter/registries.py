"""Embedded Harbor registries over REST. Source: com.vmware.vcenter.content.registries.Harbor (vmware-vcenter
9.1; vSphere 7.0 to 8.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bfinfra.model.errors import Malformed, Missing
from bfinfra.model.records import dataclass

if TYPE_CHECKING:
    from bfinfra.backends.vcenter.rest import Rest

HARBOR = "/api/vcenter/content/registries/harbor"
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Registry:
    """`cluster`: id of the vSphere cluster; `status`: STARTING, RUNNING, WARNING, ERROR or DELETING;
    `authority`: PEM; `storage`: policy's id → bytes.
    """

    id: str
    cluster: str
    status: str
    detail: str
    url: str
    authority: str
    storage: Mapping[str, int]


class Registries:
    """The registries of one vCenter. Raises RemoteError."""

    def __init__(self, rest: Rest) -> None:
        self._rest = rest

    def list(self) -> Mapping[str, Registry]:
        """Cluster's id → registry; {} if the API doesn't exist, or no longer (9.0)."""
        try:
            listed = self._rest.get(HARBOR)
        except Missing:
            return {}
        found = {}
        for each in listed:
            try:
                info = self._rest.get(f"{HARBOR}/{quote(str(each['registry']))}")
            except Missing:
                continue
            found[str(each.get("cluster") or "")] = self._registry(str(each["registry"]), info)
        return found

    def projects(self, identity: str) -> tuple[str, ...]:
        """Names of a registry's projects: one for each namespace, and those that users made."""
        return tuple(
            sorted(str(each["name"]) for each in self._rest.get(f"{HARBOR}/{quote(identity)}/projects"))
        )

    def create(self, cluster: str, policy: str, limit: int | None) -> None:
        """Start to make a registry; `limit` in bytes. Raises Exists if the cluster has one."""
        storage = {"policy": policy, **({} if limit is None else {"limit": limit // MIB})}
        self._rest.post(HARBOR, {"spec": {"cluster": cluster, "storage": [storage]}})

    def delete(self, identity: str) -> None:
        """Start to delete a registry with all its images. One that is already gone is fine."""
        try:
            self._rest.delete(f"{HARBOR}/{quote(identity)}")
        except Missing:
            return

    def _registry(self, identity: str, info: Any) -> Registry:
        try:
            health, storage = (
                info["health"],
                {str(each["policy"]): int(each["capacity"]) * MIB for each in info["storage"]},
            )
            words = str((health.get("details") or {}).get("default_message", ""))
            return Registry(
                identity,
                str(info.get("cluster") or ""),
                str(health["status"]),
                words,
                str(info["ui_access_url"]),
                "\n".join(map(str, info["cert_chain"])),
                storage,
            )
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise Malformed(
                "the registry can't be understood", server=self._rest.server, why=repr(error)
            ) from None
