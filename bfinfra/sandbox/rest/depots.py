"""Offline depots of vSphere Lifecycle Manager. Source: com.vmware.esx.settings.depots.Offline."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from bfinfra.sandbox.rest.cis_tasks import begin
from bfinfra.sandbox.rest.content import moment
from bfinfra.sandbox.rest.errors import Refused, missing
from bfinfra.sandbox.rest.routes import Call, route
from bfinfra.sandbox.rest.shapes import check

if TYPE_CHECKING:
    from bfinfra.sandbox.rest.state import RestState

PATH = "/esx/settings/depots/offline"
SERVICE = "com.vmware.esx.settings.depots.offline"
CREATE = {
    "description?": str,
    "source_type": ("PULL", "PUSH"),
    "location?": str,
    "file_id?": str,
    "ownerdata?": str,
}


@route("GET", PATH)
def depots(call: Call) -> Any:
    """All of them by id."""
    call.need("VcIntegrity.lifecycleSettings.Read", "the depots")
    return {
        identity: {key: value for key, value in each.items() if key != "create_time"}
        for identity, each in call.state.depots.items()
    }


@route("GET", PATH + "/{depot}")
def depot(call: Call, depot: str) -> Any:
    """One of them."""
    call.need("VcIntegrity.lifecycleSettings.Read", "the depots")
    if depot not in call.state.depots:
        raise missing("The depot", depot)
    return call.state.depots[depot]


@route("POST", PATH)
def create(call: Call) -> str:
    """Import one; a task. ALREADY_EXISTS for one that is there."""
    call.need("VcIntegrity.lifecycleSettings.Write", "the depots")
    spec = check(call.spec, CREATE)
    location = spec.get("location", "")
    if spec["source_type"] != "PULL" or not location:
        raise Refused("INVALID_ARGUMENT", "spec.location: the sandbox fetches depots by their location")
    if any(each.get("location") == location for each in call.state.depots.values()):
        raise Refused("ALREADY_EXISTS", f"The content of {location} exists already.")

    def work() -> Any:
        if location not in call.state.world.depots:
            raise Refused("INVALID_ARGUMENT", f"The depot at {location} can't be downloaded.")
        identity = str(uuid.uuid4())
        with call.state.lock:
            call.state.depots[identity] = {
                "description": "",
                **spec,
                "create_time": moment(call.inventory),
                "owner": call.session.user.name,
            }
        return {"depot": identity}

    return begin(call, SERVICE, "create", call.state.world.durations["task"], work)


@route("DELETE", PATH + "/{depot}")
def delete(call: Call, depot: str) -> str:
    """Remove one; a task."""
    call.need("VcIntegrity.lifecycleDepots.Delete", "the depots")
    if depot not in call.state.depots:
        raise missing("The depot", depot)

    def work() -> Any:
        with call.state.lock:
            call.state.depots.pop(depot, None)
        return {}

    return begin(call, SERVICE, "delete", call.state.world.durations["task"], work)


def versions(state: RestState) -> set[tuple[str, str]]:
    """Every component that a depot of this vCenter has, with its version."""
    there = [each.get("location", "") for each in state.depots.values()]
    return {
        (name, version)
        for location in there
        for name, found in state.world.depots.get(location, {}).items()
        for version in found
    }
