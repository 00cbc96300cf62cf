"""Embedded Harbor registries. Source: com.vmware.vcenter.content.registries.Harbor."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.rest.content import moment
from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.shapes import check

if TYPE_CHECKING:
    from bfinfra.sandbox.rest.state import Info, RestState

PATH = "/vcenter/content/registries/harbor"
PRIVILEGE = "ContentLibrary.ManageClusterRegistryResource"
COLLECTION = {"type": ("DAILY", "WEEKLY", "NONE"), "day_of_week?": str, "hour?": int, "minute?": int}
CREATE = {"cluster?": str, "garbage_collection?": COLLECTION, "storage": [{"policy": str, "limit?": int}]}
ROOM = 204800  # MiB
WEEKLY = {"type": "WEEKLY", "day_of_week": "SATURDAY", "hour": 2, "minute": 0}


@route("GET", PATH)
def registries(call: Call) -> Any:
    """All of them."""
    return [
        {
            "cluster": each["cluster"],
            "registry": identity,
            "version": each["version"],
            "ui_access_url": each["ui_access_url"],
        }
        for identity, each in call.state.registries.items()
    ]


@route("GET", PATH + "/{registry}")
def registry(call: Call, registry: str) -> Any:
    """One registry."""
    return _one(call.state, registry)


@route("GET", PATH + "/{registry}/projects")
def projects(call: Call, registry: str) -> Any:
    """Its projects: one a namespace."""
    cluster = _one(call.state, registry)["cluster"]
    names = [name for name, info in call.state.namespaces.items() if info["cluster"] == cluster]
    return [{"project": f"{registry}:{name}", "name": name, "scope": "PRIVATE"} for name in names]


@route("POST", PATH)
def create(call: Call) -> str:
    """Start to create a registry, and return its id; its status is STARTING until it runs."""
    spec = check(call.spec, {"client_token?": str, "spec": CREATE})["spec"]
    cluster = spec.get("cluster", "")
    call.need(PRIVILEGE, cluster, cluster)
    with call.state.lock:
        found = call.state.supervisors().get(cluster)
        if found is None:
            raise Refused("UNSUPPORTED", "vSphere namespaces are not enabled on the cluster.")
        if found[1].network_provider != "NSXT_CONTAINER_PLUGIN":
            raise Refused("UNSUPPORTED", "The embedded registry needs NSX.")
        if any(each["cluster"] == cluster for each in call.state.registries.values()):
            raise Refused("ALREADY_EXISTS", "The cluster has a registry.")
        if unknown := [
            each["policy"] for each in spec["storage"] if each["policy"] not in call.state.policies()
        ]:
            raise Refused(
                "INVALID_ARGUMENT", f"spec.storage: there is no storage policy {', '.join(unknown)}"
            )
        identity, address = str(uuid.uuid4()), found[1].registry or found[1].guest_addresses()[-1]
        call.state.registries[identity] = {
            "cluster": cluster,
            "version": "1.10.6",
            "creation_time": moment(call.inventory),
            "ui_access_url": f"https://{address}",
            "cert_chain": [call.state.pki.ca_pem],
            "garbage_collection": spec.get("garbage_collection", WEEKLY),
            "health": {"status": "STARTING"},
            "storage": [
                {"policy": each["policy"], "capacity": each.get("limit", ROOM), "used": 0}
                for each in spec["storage"]
            ],
        }
    resume(call.state, identity)
    return identity


@route("DELETE", PATH + "/{registry}")
def delete(call: Call, registry: str) -> None:
    """Remove it with every image; its status is DELETING until then."""
    with call.state.lock:
        found = _one(call.state, registry)
        call.need(PRIVILEGE, found["cluster"], found["cluster"])
        call.state.registries[registry] = {**found, "health": {"status": "DELETING"}}
    resume(call.state, registry)


def resume(state: RestState, identity: str) -> None:
    """Go on with one that is not settled."""
    status = state.registries[identity]["health"]["status"]
    if status == "STARTING":
        state.clock.after(state.world.durations["supervisor"], lambda: _started(state, identity))
    elif status == "DELETING":
        state.clock.after(state.world.durations["delete"], lambda: _gone(state, identity))


def _started(state: RestState, identity: str) -> None:
    with state.lock:
        found = state.registries.get(identity)
        if found is not None and found["health"]["status"] == "STARTING":
            found["health"] = {"status": "RUNNING"}


def _gone(state: RestState, identity: str) -> None:
    with state.lock:
        if state.registries.get(identity, {}).get("health", {}).get("status") == "DELETING":
            del state.registries[identity]


def _one(state: RestState, identity: str) -> Info:
    if identity not in state.registries:
        raise missing("The registry", identity)
    return state.registries[identity]
